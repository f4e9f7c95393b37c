WITH inv AS (
  SELECT w_warehouse_name, w_warehouse_sk, i_item_sk, d_moy, stdev, mean, CASE mean WHEN 0 THEN NULL ELSE stdev / mean END AS cov
  FROM (
    SELECT w_warehouse_name, w_warehouse_sk, i_item_sk, d_moy, stddev_samp(inv_quantity_on_hand) AS stdev,
           avg(inv_quantity_on_hand) AS mean
    FROM inventory, item, warehouse, date_dim
    WHERE inv_item_sk = i_item_sk AND inv_warehouse_sk = w_warehouse_sk AND inv_date_sk = d_date_sk AND d_year = 2001
    GROUP BY w_warehouse_name, w_warehouse_sk, i_item_sk, d_moy) AS foo
  WHERE CASE mean WHEN 0 THEN 0 ELSE stdev / mean END > 1)
SELECT inv1.w_warehouse_sk AS warehouse1, inv1.i_item_sk AS item1, inv1.d_moy AS moy1, inv1.mean AS mean1, inv1.cov AS cov1,
       inv2.w_warehouse_sk AS warehouse2, inv2.i_item_sk AS item2, inv2.d_moy AS moy2, inv2.mean AS mean2, inv2.cov AS cov2
FROM inv inv1, inv inv2
WHERE inv1.i_item_sk = inv2.i_item_sk AND inv1.w_warehouse_sk = inv2.w_warehouse_sk AND inv1.d_moy = 1 AND inv2.d_moy = 1 + 1
  AND inv1.cov > 1.5
ORDER BY warehouse1, item1, moy1, mean1, cov1, moy2, mean2, cov2
