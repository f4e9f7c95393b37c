SELECT c.account_id, a.customer_id, a.sk_account_id, c.transaction_ts, CAST(c.transaction_ts AS DATE) AS transaction_date, c.amount,
  c.description
FROM bronze.cash_transactions AS c
JOIN silver.account_customers AS a
  ON a.account_id = c.account_id AND c.transaction_ts >= a.effective_ts AND c.transaction_ts < a.end_ts
