SELECT xxhash64(c.company_id, c.posted_ts) AS sk_company_id, c.company_id, s.st_name AS status, c.name, i.in_name AS industry,
  CASE WHEN c.sp_rating IN ('AAA', 'AA', 'A+', 'A', 'A-', 'BBB', 'BB', 'BB-', 'B', 'CCC', 'CC', 'C', 'D') THEN c.sp_rating END AS sp_rating,
  substr(c.sp_rating, 1, 1) NOT IN ('A') AND c.sp_rating NOT LIKE 'BBB%' AS is_low_grade, c.ceo, c.address_line_1, c.address_line_2,
  c.postal_code, c.city, c.state_province, c.country, c.description, c.founding_date, c.posted_ts AS effective_ts, c.end_ts,
  c.end_ts = TIMESTAMP'9999-12-31 00:00:00' AS is_current
FROM (
  SELECT *, coalesce(lead(posted_ts) OVER (PARTITION BY company_id ORDER BY posted_ts), TIMESTAMP'9999-12-31 00:00:00') AS end_ts
  FROM bronze.finwire_companies
) AS c
JOIN staging.status_type AS s ON s.st_id = c.status_id
JOIN staging.industry AS i ON i.in_id = c.industry_id
