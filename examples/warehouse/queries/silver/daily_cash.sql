SELECT account_id, transaction_date, sum(amount) AS cash, count(*) AS transactions
FROM silver.cash_transactions
GROUP BY account_id, transaction_date
