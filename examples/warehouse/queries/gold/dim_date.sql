SELECT sk_date_id, date_value, calendar_year_id, calendar_qtr_desc, calendar_month_id, calendar_month_desc, day_of_week_num, fiscal_year_id,
  holiday_flag
FROM staging.date
