"""TPC-DS's date_dim and time_dim: six years of days, and a day's minutes."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pyarrow as pa

from examples.tpcds.draw import DAYS, FIRST_DAY, FIRST_SK, identifier, rows


def dates() -> pa.Table:
    """A row a day; months count from 1900 (1200 is January 2000), weeks begin on Sunday."""
    days = [FIRST_DAY + timedelta(days=n) for n in range(DAYS)]
    sks, years = np.arange(DAYS) + FIRST_SK, [day.year for day in days]
    quarters, months = [(day.month - 1) // 3 + 1 for day in days], [(day.year - 1900) * 12 + day.month - 1 for day in days]
    weekdays, weeks = [day.isoweekday() % 7 for day in days], [(int(sk) - 2_415_019) // 7 for sk in sks]
    quarter_numbers = [(year - 1900) * 4 + quarter for year, quarter in zip(years, quarters, strict=True)]
    firsts = [int(sk) - day.day + 1 for sk, day in zip(sks, days, strict=True)]
    return rows(
        "date_dim",
        {
            "d_date_sk": sks,
            "d_date_id": [identifier(int(sk)) for sk in sks],
            "d_date": days,
            "d_month_seq": months,
            "d_week_seq": weeks,
            "d_quarter_seq": quarter_numbers,
            "d_year": years,
            "d_dow": weekdays,
            "d_moy": [day.month for day in days],
            "d_dom": [day.day for day in days],
            "d_qoy": quarters,
            "d_fy_year": years,
            "d_fy_quarter_seq": quarter_numbers,
            "d_fy_week_seq": weeks,
            "d_day_name": [f"{day:%A}" for day in days],
            "d_quarter_name": [f"{year}Q{quarter}" for year, quarter in zip(years, quarters, strict=True)],
            "d_holiday": ["Y" if (day.month, day.day) in ((1, 1), (12, 25)) else "N" for day in days],
            "d_weekend": ["Y" if weekday in (0, 6) else "N" for weekday in weekdays],
            "d_following_holiday": ["Y" if (day.month, day.day) in ((1, 2), (12, 26)) else "N" for day in days],
            "d_first_dom": firsts,
            "d_last_dom": [first + 27 for first in firsts],
            "d_same_day_ly": sks - 365,
            "d_same_day_lq": sks - 91,
            **{f"d_current_{period}": ["N"] * DAYS for period in ("day", "week", "month", "quarter", "year")},
        },
    )


def times() -> pa.Table:
    """A row a minute, by the second at which it begins."""
    seconds = np.arange(0, 86_400, 60)
    hours = seconds // 3600
    return rows(
        "time_dim",
        {
            "t_time_sk": seconds,
            "t_time_id": [identifier(int(second)) for second in seconds],
            "t_time": seconds,
            "t_hour": hours,
            "t_minute": seconds // 60 % 60,
            "t_second": seconds % 60,
            "t_am_pm": np.where(hours < 12, "AM", "PM"),
            "t_shift": np.select([hours < 8, hours < 16], ["third", "first"], "second"),
            "t_sub_shift": np.select([hours < 6, hours < 12, hours < 18], ["night", "morning", "afternoon"], "evening"),
            "t_meal_time": [{7: "breakfast", 8: "breakfast", 12: "lunch", 18: "dinner", 19: "dinner"}.get(int(hour)) for hour in hours],
        },
    )
