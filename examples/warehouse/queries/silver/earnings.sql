-- The earnings per share of a company's last four quarters, from the start of the next quarter on.
SELECT company_id, fi_year, fi_qtr,
  sum(fi_basic_eps) OVER (PARTITION BY company_id ORDER BY fi_qtr_start_date ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS four_quarters_eps,
  add_months(fi_qtr_start_date, 3) AS effective_date,
  coalesce(lead(add_months(fi_qtr_start_date, 3)) OVER (PARTITION BY company_id ORDER BY fi_qtr_start_date), DATE'9999-12-31') AS end_date
FROM silver.financials
