SELECT d.calendar_month_id, t.is_sell, count(*) AS trades, sum(t.amount) AS amount, sum(t.fee + t.commission) AS revenue,
  max(t.amount) AS largest
FROM gold.fact_trade AS t
JOIN gold.dim_date AS d ON d.sk_date_id = t.sk_create_date_id
GROUP BY d.calendar_month_id, t.is_sell
