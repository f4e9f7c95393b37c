SELECT h.trade_id, h.current_trade_id, a.sk_customer_id, a.sk_account_id, s.sk_security_id, s.sk_company_id,
  CAST(date_format(h.closed_ts, 'yyyyMMdd') AS INT) AS sk_date_id, CAST(date_format(h.closed_ts, 'HHmm') AS INT) AS sk_time_id,
  h.trade_price AS current_price, h.current_quantity AS current_holding
FROM silver.holdings AS h
JOIN gold.dim_account AS a ON a.account_id = h.account_id AND h.closed_ts >= a.effective_ts AND h.closed_ts < a.end_ts
JOIN gold.dim_security AS s ON s.symbol = h.symbol AND h.closed_ts >= s.effective_ts AND h.closed_ts < s.end_ts
