SELECT xxhash64(broker_id) AS sk_broker_id, broker_id, manager_id, manager_last_name, first_name, last_name, middle_initial, branch, office,
  phone
FROM silver.brokers
