-- The changes of accounts, and for each account of a customer who becomes inactive one more.
SELECT action_seq, action_type, action_ts, account_id, customer_id, tax_status, broker_id, account_desc
FROM bronze.customer_actions
WHERE action_type IN ('NEW', 'ADDACCT', 'UPDACCT', 'CLOSEACCT')
UNION ALL
SELECT i.action_seq, i.action_type, i.action_ts, a.account_id, i.customer_id, NULL, NULL, NULL
FROM bronze.customer_actions AS i
JOIN bronze.customer_actions AS a ON a.customer_id = i.customer_id AND a.action_ts < i.action_ts
WHERE i.action_type = 'INACT' AND a.action_type IN ('NEW', 'ADDACCT')
