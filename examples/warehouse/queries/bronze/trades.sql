SELECT t_id AS trade_id, CAST(t_dts AS TIMESTAMP) AS trade_ts, t_st_id AS status_id, t_tt_id AS trade_type_id, t_is_cash AS cash_flag,
  t_s_symb AS symbol, t_qty AS quantity, t_bid_price AS bid_price, t_ca_id AS account_id, t_exec_name AS executed_by,
  t_trade_price AS trade_price, t_chrg AS fee, t_comm AS commission, t_tax AS tax
FROM staging.trade
