SELECT to_timestamp(substr(line, 1, 15), 'yyyyMMdd-HHmmss') AS posted_ts, trim(substr(line, 19, 15)) AS symbol,
  trim(substr(line, 34, 6)) AS issue, trim(substr(line, 40, 4)) AS status_id, trim(substr(line, 44, 70)) AS name,
  trim(substr(line, 114, 6)) AS exchange_id, CAST(trim(substr(line, 120, 13)) AS BIGINT) AS shares_outstanding,
  to_date(substr(line, 133, 8), 'yyyyMMdd') AS first_trade, to_date(substr(line, 141, 8), 'yyyyMMdd') AS first_trade_on_exchange,
  CAST(trim(substr(line, 149, 12)) AS DECIMAL(10, 2)) AS dividend, trim(substr(line, 161, 60)) AS co_name_or_cik
FROM staging.finwire
WHERE substr(line, 16, 3) = 'SEC'
