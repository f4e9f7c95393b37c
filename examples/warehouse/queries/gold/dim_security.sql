SELECT sk_security_id, symbol, issue, status, name, exchange_id, sk_company_id, company_id, shares_outstanding, first_trade,
  first_trade_on_exchange, dividend, effective_ts, end_ts, end_ts = TIMESTAMP'9999-12-31 00:00:00' AS is_current
FROM silver.securities
