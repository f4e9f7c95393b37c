SELECT agency_id, last_name, first_name, middle_initial, CASE WHEN gender IN ('M', 'F') THEN gender ELSE 'U' END AS gender,
  address_line_1, postal_code, city, state, CAST(nullif(income, '') AS INT) AS income, CAST(nullif(number_cars, '') AS INT) AS number_cars,
  CAST(nullif(number_children, '') AS INT) AS number_children, marital_status, CAST(nullif(age, '') AS INT) AS age,
  CAST(nullif(credit_rating, '') AS INT) AS credit_rating, CAST(nullif(number_credit_cards, '') AS INT) AS number_credit_cards,
  CAST(nullif(net_worth, '') AS INT) AS net_worth
FROM staging.prospect
