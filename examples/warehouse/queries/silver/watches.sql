SELECT customer_id, symbol, min(CASE WHEN action = 'ACTV' THEN watch_ts END) AS placed_ts,
  max(CASE WHEN action = 'CNCL' THEN watch_ts END) AS removed_ts, count(*) AS events
FROM silver.watch_events
GROUP BY customer_id, symbol
