WITH year_total AS (
  SELECT c_customer_id AS customer_id, c_first_name AS first_name, c_last_name AS last_name, d_year AS year,
         sum(ss_net_paid) AS total, 's' AS sale_type
  FROM customer, store_sales, date_dim
  WHERE c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk AND d_year IN (2001, 2001 + 1)
  GROUP BY c_customer_id, c_first_name, c_last_name, d_year
  UNION ALL
  SELECT c_customer_id, c_first_name, c_last_name, d_year, sum(ws_net_paid), 'w'
  FROM customer, web_sales, date_dim
  WHERE c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk AND d_year IN (2001, 2001 + 1)
  GROUP BY c_customer_id, c_first_name, c_last_name, d_year)
SELECT s2.customer_id, s2.first_name, s2.last_name
FROM year_total s1, year_total s2, year_total w1, year_total w2
WHERE s2.customer_id = s1.customer_id AND s1.customer_id = w2.customer_id AND s1.customer_id = w1.customer_id
  AND s1.sale_type = 's' AND w1.sale_type = 'w' AND s2.sale_type = 's' AND w2.sale_type = 'w'
  AND s1.year = 2001 AND s2.year = 2001 + 1 AND w1.year = 2001 AND w2.year = 2001 + 1 AND s1.total > 0 AND w1.total > 0
  AND CASE WHEN w1.total > 0 THEN w2.total / w1.total END > CASE WHEN s1.total > 0 THEN s2.total / s1.total END
ORDER BY customer_id, first_name, last_name
LIMIT 100
