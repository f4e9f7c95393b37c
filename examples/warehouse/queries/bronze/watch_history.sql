SELECT w_c_id AS customer_id, w_s_symb AS symbol, CAST(w_dts AS TIMESTAMP) AS watch_ts, w_action AS action
FROM staging.watch_history
WHERE w_action IN ('ACTV', 'CNCL')
