SELECT t.trade_id, h.created_ts, CASE WHEN h.status_id IN ('CMPT', 'CNCL') THEN h.status_ts END AS closed_ts, h.status_id,
  s.st_name AS status, y.tt_name AS type, y.tt_is_sell = 1 AS is_sell, t.cash_flag, t.symbol, t.quantity, t.bid_price, t.account_id,
  t.executed_by, t.trade_price, t.fee, t.commission, t.tax
FROM bronze.trades AS t
JOIN silver.trade_statuses AS h ON h.trade_id = t.trade_id
JOIN staging.trade_type AS y ON y.tt_id = t.trade_type_id
JOIN staging.status_type AS s ON s.st_id = h.status_id
