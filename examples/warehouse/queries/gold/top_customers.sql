-- The ten customers of each tier who traded most.
SELECT tier, place, customer_id, amount, trades
FROM (
  SELECT tier, customer_id, amount, trades, rank() OVER (PARTITION BY tier ORDER BY amount DESC, customer_id) AS place
  FROM (
    SELECT c.tier, c.customer_id, sum(t.amount) AS amount, count(*) AS trades
    FROM gold.fact_trade AS t
    JOIN gold.dim_customer AS c ON c.sk_customer_id = t.sk_customer_id
    GROUP BY c.tier, c.customer_id
  )
)
WHERE place <= 10
