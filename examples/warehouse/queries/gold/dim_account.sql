SELECT a.sk_account_id, a.account_id, b.sk_broker_id, a.sk_customer_id, s.st_name AS status, a.account_desc, a.tax_status, a.tier,
  a.effective_ts, a.end_ts, a.end_ts = TIMESTAMP'9999-12-31 00:00:00' AS is_current
FROM silver.account_customers AS a
JOIN staging.status_type AS s ON s.st_id = a.status_id
LEFT JOIN gold.dim_broker AS b ON b.broker_id = a.broker_id
