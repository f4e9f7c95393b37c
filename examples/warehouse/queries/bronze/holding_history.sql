SELECT hh_h_t_id AS trade_id, hh_t_id AS current_trade_id, hh_before_qty AS previous_quantity, hh_after_qty AS current_quantity
FROM staging.holding_history
