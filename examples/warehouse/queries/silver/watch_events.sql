SELECT DISTINCT customer_id, symbol, watch_ts, action FROM bronze.watch_history
