-- A version of an account for each change of it or of its customer.
SELECT xxhash64(a.sk_account_version, c.sk_customer_id) AS sk_account_id, a.account_id, c.sk_customer_id, a.customer_id, a.broker_id,
  CASE WHEN c.status_id = 'INAC' THEN 'INAC' ELSE a.status_id END AS status_id, a.tax_status, a.account_desc, c.tier,
  greatest(a.effective_ts, c.effective_ts) AS effective_ts, least(a.end_ts, c.end_ts) AS end_ts
FROM silver.accounts AS a
JOIN silver.customers AS c ON c.customer_id = a.customer_id AND a.effective_ts < c.end_ts AND c.effective_ts < a.end_ts
