SELECT t.trade_id, t.sk_broker_id, t.sk_customer_id, t.sk_account_id, t.sk_security_id, t.sk_company_id, t.sk_create_date_id,
  t.sk_close_date_id, m.market_hours_flag, t.is_sell, t.quantity, t.trade_price,
  CAST(t.quantity * t.trade_price AS DECIMAL(18, 2)) AS amount, t.fee, t.commission, t.tax
FROM gold.dim_trade AS t
JOIN gold.dim_time AS m ON m.sk_time_id = t.sk_close_time_id
WHERE t.status = 'Completed'
