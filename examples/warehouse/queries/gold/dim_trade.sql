-- A trade with the versions of its account and security that were current when it was created.
SELECT t.trade_id, a.sk_broker_id, CAST(date_format(t.created_ts, 'yyyyMMdd') AS INT) AS sk_create_date_id,
  CAST(date_format(t.created_ts, 'HHmm') AS INT) AS sk_create_time_id,
  CAST(date_format(t.closed_ts, 'yyyyMMdd') AS INT) AS sk_close_date_id, CAST(date_format(t.closed_ts, 'HHmm') AS INT) AS sk_close_time_id,
  t.status, t.type, t.is_sell, t.cash_flag, s.sk_security_id, s.sk_company_id, t.quantity, t.bid_price, a.sk_customer_id, a.sk_account_id,
  t.executed_by, t.trade_price, t.fee, t.commission, t.tax
FROM silver.trades AS t
JOIN gold.dim_account AS a ON a.account_id = t.account_id AND t.created_ts >= a.effective_ts AND t.created_ts < a.end_ts
JOIN gold.dim_security AS s ON s.symbol = t.symbol AND t.created_ts >= s.effective_ts AND t.created_ts < s.end_ts
