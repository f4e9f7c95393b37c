SELECT action_seq, action_type, CAST(action_ts AS TIMESTAMP) AS action_ts, c_id AS customer_id, c_tax_id AS tax_id,
  CASE WHEN upper(c_gndr) IN ('M', 'F') THEN upper(c_gndr) WHEN c_gndr IS NOT NULL THEN 'U' END AS gender,
  CAST(c_tier AS INT) AS tier, CAST(c_dob AS DATE) AS dob, c_l_name AS last_name, c_f_name AS first_name, c_m_name AS middle_initial,
  c_adline1 AS address_line_1, c_zipcode AS postal_code, c_city AS city, c_state_prov AS state_prov, c_ctry AS country,
  c_prim_email AS email_1,
  CASE WHEN c_local IS NULL THEN NULL
    WHEN c_ctry_code IS NOT NULL AND c_area_code IS NOT NULL THEN concat('+', c_ctry_code, ' (', c_area_code, ') ', c_local)
    WHEN c_area_code IS NOT NULL THEN concat('(', c_area_code, ') ', c_local)
    ELSE c_local END AS phone_1,
  c_lcl_tx_id AS local_tax_id, c_nat_tx_id AS national_tax_id,
  ca_id AS account_id, CAST(ca_tax_st AS INT) AS tax_status, ca_b_id AS broker_id, ca_name AS account_desc
FROM staging.customer_mgmt
