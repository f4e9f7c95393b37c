-- The highest and lowest price of the last 52 weeks, and the first day that had it.
SELECT market_date, symbol, close_price, day_high, day_low, volume, high.price AS fifty_two_week_high,
  date_from_unix_date(-high.day) AS fifty_two_week_high_date, low.price AS fifty_two_week_low,
  date_from_unix_date(low.day) AS fifty_two_week_low_date
FROM (
  SELECT *, max(named_struct('price', day_high, 'day', -unix_date(market_date))) OVER last_year AS high,
    min(named_struct('price', day_low, 'day', unix_date(market_date))) OVER last_year AS low
  FROM bronze.daily_market
  WINDOW last_year AS (PARTITION BY symbol ORDER BY market_date RANGE BETWEEN INTERVAL '364' DAY PRECEDING AND CURRENT ROW)
)
