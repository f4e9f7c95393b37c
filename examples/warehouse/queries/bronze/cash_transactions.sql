SELECT ct_ca_id AS account_id, CAST(ct_dts AS TIMESTAMP) AS transaction_ts, CAST(ct_amt AS DECIMAL(12, 2)) AS amount, ct_name AS description
FROM staging.cash_transaction
