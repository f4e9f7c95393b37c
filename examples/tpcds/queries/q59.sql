WITH wss AS (
  SELECT d_week_seq, ss_store_sk,
         sum(CASE WHEN d_day_name = 'Sunday' THEN ss_sales_price END) AS sun_sales,
         sum(CASE WHEN d_day_name = 'Monday' THEN ss_sales_price END) AS mon_sales,
         sum(CASE WHEN d_day_name = 'Tuesday' THEN ss_sales_price END) AS tue_sales,
         sum(CASE WHEN d_day_name = 'Wednesday' THEN ss_sales_price END) AS wed_sales,
         sum(CASE WHEN d_day_name = 'Thursday' THEN ss_sales_price END) AS thu_sales,
         sum(CASE WHEN d_day_name = 'Friday' THEN ss_sales_price END) AS fri_sales,
         sum(CASE WHEN d_day_name = 'Saturday' THEN ss_sales_price END) AS sat_sales
  FROM store_sales, date_dim
  WHERE d_date_sk = ss_sold_date_sk
  GROUP BY d_week_seq, ss_store_sk)
SELECT y.s_store_name AS s_store_name1, y.s_store_id AS s_store_id1, y.d_week_seq AS d_week_seq1,
       y.sun_sales / x.sun_sales AS sun, y.mon_sales / x.mon_sales AS mon, y.tue_sales / x.tue_sales AS tue,
       y.wed_sales / x.wed_sales AS wed, y.thu_sales / x.thu_sales AS thu, y.fri_sales / x.fri_sales AS fri,
       y.sat_sales / x.sat_sales AS sat
FROM (
    SELECT s_store_name, s_store_id, wss.*
    FROM wss, store, date_dim d
    WHERE d.d_week_seq = wss.d_week_seq AND ss_store_sk = s_store_sk AND d_month_seq BETWEEN 1212 AND 1212 + 11) AS y,
  (
    SELECT s_store_name, s_store_id, wss.*
    FROM wss, store, date_dim d
    WHERE d.d_week_seq = wss.d_week_seq AND ss_store_sk = s_store_sk AND d_month_seq BETWEEN 1212 + 12 AND 1212 + 23) AS x
WHERE y.s_store_id = x.s_store_id AND y.d_week_seq = x.d_week_seq - 52
ORDER BY s_store_name1, s_store_id1, d_week_seq1, sun, mon, tue, wed, thu, fri, sat
LIMIT 100
