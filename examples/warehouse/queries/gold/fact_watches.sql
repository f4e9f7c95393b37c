SELECT c.sk_customer_id, s.sk_security_id, w.customer_id, w.symbol, CAST(date_format(w.placed_ts, 'yyyyMMdd') AS INT) AS sk_date_id_placed,
  CAST(date_format(w.removed_ts, 'yyyyMMdd') AS INT) AS sk_date_id_removed
FROM silver.watches AS w
JOIN gold.dim_customer AS c ON c.customer_id = w.customer_id AND w.placed_ts >= c.effective_ts AND w.placed_ts < c.end_ts
JOIN gold.dim_security AS s ON s.symbol = w.symbol AND w.placed_ts >= s.effective_ts AND w.placed_ts < s.end_ts
