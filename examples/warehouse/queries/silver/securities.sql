SELECT xxhash64(s.symbol, s.posted_ts, c.sk_company_id) AS sk_security_id, s.symbol, s.issue, t.st_name AS status, s.name, s.exchange_id,
  c.sk_company_id, c.company_id, s.shares_outstanding, s.first_trade, s.first_trade_on_exchange, s.dividend,
  greatest(s.posted_ts, c.effective_ts) AS effective_ts, least(s.end_ts, c.end_ts) AS end_ts
FROM (
  SELECT *, coalesce(lead(posted_ts) OVER (PARTITION BY symbol ORDER BY posted_ts), TIMESTAMP'9999-12-31 00:00:00') AS end_ts
  FROM bronze.finwire_securities
) AS s
JOIN silver.company_names AS c ON c.co_name_or_cik = s.co_name_or_cik AND s.posted_ts < c.end_ts AND c.effective_ts < s.end_ts
JOIN staging.status_type AS t ON t.st_id = s.status_id
