SELECT p.agency_id, p.last_name, p.first_name, p.city, p.state, p.income, p.age, p.net_worth, p.marketing_nameplate,
  EXISTS (SELECT 1 FROM gold.dim_customer AS c WHERE c.agency_id = p.agency_id AND c.status = 'Active') AS is_customer
FROM silver.prospects AS p
