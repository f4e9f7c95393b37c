-- The last status of each trade.
SELECT trade_id, status_id, status_ts, created_ts
FROM (
  SELECT trade_id, status_id, status_ts, min(status_ts) OVER (PARTITION BY trade_id) AS created_ts,
    row_number() OVER (PARTITION BY trade_id ORDER BY status_ts DESC, status_id) AS place
  FROM bronze.trade_history
)
WHERE place = 1
