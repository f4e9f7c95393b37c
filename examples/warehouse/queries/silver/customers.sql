-- A version of a customer for each change; what a change leaves out is as it was.
SELECT xxhash64(customer_id, action_seq) AS sk_customer_id, customer_id,
  CASE WHEN action_type = 'INACT' THEN 'INAC' ELSE 'ACTV' END AS status_id,
  last_value(tax_id) IGNORE NULLS OVER so_far AS tax_id, last_value(last_name) IGNORE NULLS OVER so_far AS last_name,
  last_value(first_name) IGNORE NULLS OVER so_far AS first_name, last_value(middle_initial) IGNORE NULLS OVER so_far AS middle_initial,
  last_value(gender) IGNORE NULLS OVER so_far AS gender, last_value(tier) IGNORE NULLS OVER so_far AS tier,
  last_value(dob) IGNORE NULLS OVER so_far AS dob, last_value(address_line_1) IGNORE NULLS OVER so_far AS address_line_1,
  last_value(postal_code) IGNORE NULLS OVER so_far AS postal_code, last_value(city) IGNORE NULLS OVER so_far AS city,
  last_value(state_prov) IGNORE NULLS OVER so_far AS state_prov, last_value(country) IGNORE NULLS OVER so_far AS country,
  last_value(email_1) IGNORE NULLS OVER so_far AS email_1, last_value(phone_1) IGNORE NULLS OVER so_far AS phone_1,
  last_value(local_tax_id) IGNORE NULLS OVER so_far AS local_tax_id,
  last_value(national_tax_id) IGNORE NULLS OVER so_far AS national_tax_id,
  action_ts AS effective_ts, coalesce(lead(action_ts) OVER versions, TIMESTAMP'9999-12-31 00:00:00') AS end_ts,
  lead(action_ts) OVER versions IS NULL AS is_current
FROM bronze.customer_actions
WHERE action_type IN ('NEW', 'UPDCUST', 'INACT')
WINDOW versions AS (PARTITION BY customer_id ORDER BY action_ts, action_seq),
  so_far AS (PARTITION BY customer_id ORDER BY action_ts, action_seq ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
