SELECT to_timestamp(substr(line, 1, 15), 'yyyyMMdd-HHmmss') AS posted_ts, CAST(substr(line, 19, 4) AS INT) AS fi_year,
  CAST(substr(line, 23, 1) AS INT) AS fi_qtr, to_date(substr(line, 24, 8), 'yyyyMMdd') AS fi_qtr_start_date,
  CAST(trim(substr(line, 40, 17)) AS DECIMAL(15, 2)) AS fi_revenue, CAST(trim(substr(line, 57, 17)) AS DECIMAL(15, 2)) AS fi_net_earn,
  CAST(trim(substr(line, 74, 12)) AS DECIMAL(10, 2)) AS fi_basic_eps, CAST(trim(substr(line, 86, 12)) AS DECIMAL(10, 2)) AS fi_dilut_eps,
  CAST(trim(substr(line, 98, 12)) AS DECIMAL(10, 2)) AS fi_margin, CAST(trim(substr(line, 110, 17)) AS DECIMAL(15, 2)) AS fi_inventory,
  CAST(trim(substr(line, 127, 17)) AS DECIMAL(15, 2)) AS fi_assets, CAST(trim(substr(line, 144, 17)) AS DECIMAL(15, 2)) AS fi_liability,
  CAST(trim(substr(line, 161, 13)) AS BIGINT) AS fi_out_basic, CAST(trim(substr(line, 174, 13)) AS BIGINT) AS fi_out_dilut,
  trim(substr(line, 187, 60)) AS co_name_or_cik
FROM staging.finwire
WHERE substr(line, 16, 3) = 'FIN'
