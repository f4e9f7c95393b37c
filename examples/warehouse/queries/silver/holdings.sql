SELECT h.trade_id, h.current_trade_id, h.previous_quantity, h.current_quantity, t.symbol, t.account_id, t.trade_price, t.closed_ts
FROM bronze.holding_history AS h
JOIN silver.trades AS t ON t.trade_id = h.current_trade_id
