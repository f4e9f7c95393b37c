"""Brings few rows of a frame to Python in Spark's internal form, by one call and without a job if the optimiser knows the rows."""

from __future__ import annotations

import pickle
from typing import Any

from pyspark.sql import DataFrame

from lake.spark.jvm.gateway import jvm_of


def values_of(frame: DataFrame) -> list[list[Any]]:
    """The rows of a frame, in Spark's internal form.

    A date is a number of days and a timestamp one of microseconds since 1970; bytes in a string that are not UTF-8 become U+FFFD.
    Columns of numbers, strings, bytes, dates and timestamps only.
    """
    spark = frame.sparkSession
    found: list[list[Any]] = pickle.loads(jvm_of(spark).own_plans.values(spark._jsparkSession, frame._jdf))
    return found
