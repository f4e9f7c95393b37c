SELECT c.sk_company_id, c.company_id, f.fi_year, f.fi_qtr, f.fi_qtr_start_date, f.fi_revenue, f.fi_net_earn, f.fi_basic_eps, f.fi_dilut_eps,
  f.fi_margin, f.fi_inventory, f.fi_assets, f.fi_liability, f.fi_out_basic, f.fi_out_dilut
FROM bronze.finwire_financials AS f
JOIN silver.company_names AS c
  ON c.co_name_or_cik = f.co_name_or_cik AND f.posted_ts >= c.effective_ts AND f.posted_ts < c.end_ts
