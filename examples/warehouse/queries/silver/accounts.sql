SELECT xxhash64(account_id, action_seq) AS sk_account_version, account_id, customer_id,
  CASE WHEN action_type IN ('CLOSEACCT', 'INACT') THEN 'INAC' ELSE 'ACTV' END AS status_id,
  last_value(tax_status) IGNORE NULLS OVER so_far AS tax_status, last_value(broker_id) IGNORE NULLS OVER so_far AS broker_id,
  last_value(account_desc) IGNORE NULLS OVER so_far AS account_desc,
  action_ts AS effective_ts, coalesce(lead(action_ts) OVER versions, TIMESTAMP'9999-12-31 00:00:00') AS end_ts
FROM silver.account_actions
WINDOW versions AS (PARTITION BY account_id ORDER BY action_ts, action_seq),
  so_far AS (PARTITION BY account_id ORDER BY action_ts, action_seq ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
