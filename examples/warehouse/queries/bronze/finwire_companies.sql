SELECT to_timestamp(substr(line, 1, 15), 'yyyyMMdd-HHmmss') AS posted_ts, trim(substr(line, 19, 60)) AS name,
  trim(substr(line, 79, 10)) AS company_id, trim(substr(line, 89, 4)) AS status_id, trim(substr(line, 93, 2)) AS industry_id,
  trim(substr(line, 95, 4)) AS sp_rating, to_date(substr(line, 99, 8), 'yyyyMMdd') AS founding_date,
  trim(substr(line, 107, 80)) AS address_line_1, nullif(trim(substr(line, 187, 80)), '') AS address_line_2,
  trim(substr(line, 267, 12)) AS postal_code, trim(substr(line, 279, 25)) AS city, trim(substr(line, 304, 20)) AS state_province,
  trim(substr(line, 324, 24)) AS country, trim(substr(line, 348, 46)) AS ceo, trim(substr(line, 394, 150)) AS description
FROM staging.finwire
WHERE substr(line, 16, 3) = 'CMP'
