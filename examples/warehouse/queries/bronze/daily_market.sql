SELECT CAST(dm_date AS DATE) AS market_date, dm_s_symb AS symbol, dm_close AS close_price, dm_high AS day_high, dm_low AS day_low,
  dm_vol AS volume
FROM staging.daily_market
