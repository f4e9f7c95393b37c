-- What an account held at the end of each day with a transaction.
SELECT a.sk_customer_id, a.sk_account_id, c.account_id, CAST(date_format(c.transaction_date, 'yyyyMMdd') AS INT) AS sk_date_id, c.cash
FROM (
  SELECT account_id, transaction_date,
    sum(cash) OVER (PARTITION BY account_id ORDER BY transaction_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS cash
  FROM silver.daily_cash
) AS c
JOIN gold.dim_account AS a
  ON a.account_id = c.account_id AND date_add(c.transaction_date, 1) > a.effective_ts AND date_add(c.transaction_date, 1) <= a.end_ts
