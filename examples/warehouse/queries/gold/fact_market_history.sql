SELECT s.sk_security_id, s.sk_company_id, CAST(date_format(m.market_date, 'yyyyMMdd') AS INT) AS sk_date_id, m.symbol,
  CAST(m.close_price / nullif(e.four_quarters_eps, 0) AS DECIMAL(12, 2)) AS pe_ratio,
  CAST(s.dividend / nullif(m.close_price, 0) * 100 AS DECIMAL(12, 2)) AS yield, m.fifty_two_week_high,
  CAST(date_format(m.fifty_two_week_high_date, 'yyyyMMdd') AS INT) AS sk_fifty_two_week_high_date, m.fifty_two_week_low,
  CAST(date_format(m.fifty_two_week_low_date, 'yyyyMMdd') AS INT) AS sk_fifty_two_week_low_date, m.close_price, m.day_high, m.day_low,
  m.volume
FROM silver.daily_market AS m
JOIN gold.dim_security AS s ON s.symbol = m.symbol AND m.market_date >= s.effective_ts AND m.market_date < s.end_ts
LEFT JOIN silver.earnings AS e
  ON e.company_id = s.company_id AND m.market_date >= e.effective_date AND m.market_date < e.end_date
