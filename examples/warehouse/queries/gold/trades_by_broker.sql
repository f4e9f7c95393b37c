SELECT b.broker_id, b.branch, b.last_name, count(*) AS trades, count(DISTINCT t.sk_account_id) AS accounts, sum(t.commission) AS commission
FROM gold.fact_trade AS t
JOIN gold.dim_broker AS b ON b.sk_broker_id = t.sk_broker_id
GROUP BY b.broker_id, b.branch, b.last_name
