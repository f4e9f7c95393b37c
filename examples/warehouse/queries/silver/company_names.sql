-- What the newswire may call a company: its number (CIK) or its name.
SELECT company_id AS co_name_or_cik, sk_company_id, company_id, effective_ts, end_ts FROM silver.companies
UNION ALL
SELECT name, sk_company_id, company_id, effective_ts, end_ts FROM silver.companies
