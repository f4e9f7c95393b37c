SELECT agency_id, last_name, first_name, middle_initial, gender, address_line_1, postal_code, city, state, income, number_cars,
  number_children, marital_status, age, credit_rating, number_credit_cards, net_worth,
  concat_ws('|', upper(last_name), upper(first_name), upper(address_line_1), upper(postal_code)) AS matching,
  nullif(concat_ws('+',
    CASE WHEN net_worth > 1000000 OR income > 200000 THEN 'HighValue' END,
    CASE WHEN number_children > 3 OR number_credit_cards > 5 THEN 'Expenses' END,
    CASE WHEN age > 45 THEN 'Boomer' END,
    CASE WHEN income < 50000 OR credit_rating < 600 OR net_worth < 100000 THEN 'MoneyAlert' END,
    CASE WHEN number_cars > 3 OR number_credit_cards > 7 THEN 'Spender' END,
    CASE WHEN age < 25 AND net_worth > 1000000 THEN 'Inherited' END), '') AS marketing_nameplate
FROM bronze.prospects
