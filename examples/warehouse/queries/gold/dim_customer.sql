-- A current version is also marketed: the agency's prospect with the same name and address.
SELECT c.sk_customer_id, c.customer_id, c.tax_id, s.st_name AS status, c.last_name, c.first_name, c.middle_initial, c.gender, c.tier, c.dob,
  c.address_line_1, c.postal_code, c.city, c.state_prov, c.country, c.phone_1, c.email_1, n.tx_name AS national_tax_rate_desc,
  n.tx_rate AS national_tax_rate, l.tx_name AS local_tax_rate_desc, l.tx_rate AS local_tax_rate, p.agency_id, p.credit_rating, p.net_worth,
  p.marketing_nameplate, c.is_current, c.effective_ts, c.end_ts
FROM silver.customers AS c
JOIN staging.status_type AS s ON s.st_id = c.status_id
LEFT JOIN staging.tax_rate AS n ON n.tx_id = c.national_tax_id
LEFT JOIN staging.tax_rate AS l ON l.tx_id = c.local_tax_id
LEFT JOIN silver.prospects AS p
  ON p.matching = concat_ws('|', upper(c.last_name), upper(c.first_name), upper(c.address_line_1), upper(c.postal_code)) AND c.is_current
