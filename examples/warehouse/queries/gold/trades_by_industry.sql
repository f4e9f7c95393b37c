SELECT c.industry, d.calendar_year_id, count(*) AS trades, sum(t.quantity) AS quantity, sum(t.amount) AS amount,
  min(t.trade_price) AS lowest_price, max(t.trade_price) AS highest_price
FROM gold.fact_trade AS t
JOIN gold.dim_company AS c ON c.sk_company_id = t.sk_company_id
JOIN gold.dim_date AS d ON d.sk_date_id = t.sk_create_date_id
GROUP BY c.industry, d.calendar_year_id
