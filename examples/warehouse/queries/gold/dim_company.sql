SELECT sk_company_id, company_id, status, name, industry, sp_rating, is_low_grade, ceo, address_line_1, address_line_2, postal_code, city,
  state_province, country, description, founding_date, is_current, effective_ts, end_ts
FROM silver.companies
