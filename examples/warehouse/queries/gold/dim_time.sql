SELECT sk_time_id, time_value, hour_id, minute_id, market_hours_flag, office_hours_flag FROM staging.time
