SELECT th_t_id AS trade_id, CAST(th_dts AS TIMESTAMP) AS status_ts, th_st_id AS status_id FROM staging.trade_history
