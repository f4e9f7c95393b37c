"""Few rows on the driver: brought to Python, or added up and paired by LocalRows in the JVM, by one call each and without a job.

Each function that returns a frame returns None where the rows are not all on the driver, or have columns of types for which it is not
simply done (nested ones, VARIANT, collations): Spark then has to do it. Rows are the same bit by bit, as `zset.canonical` says it.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from lake.spark.jvm.gateway import Java, jvm_of


def values_of(frame: DataFrame) -> list[list[Any]]:
    """The rows of a frame, in Spark's internal form.

    A date is a number of days and a timestamp one of microseconds since 1970; bytes in a string that are not UTF-8 become U+FFFD.
    Columns of numbers, strings, bytes, dates and timestamps only.
    """
    spark = frame.sparkSession
    found: list[list[Any]] = pickle.loads(jvm_of(spark).own_plans.values(spark._jsparkSession, frame._jdf))
    return found


def added(frames: Sequence[DataFrame], signs: str) -> DataFrame | None:
    """Weighted rows of frames of the same columns added up, zeros dropped: of each frame times 1, or times -1 where `signs` has a minus at
    its place. Rows without a weight count once."""
    spark = frames[0].sparkSession
    jvm = jvm_of(spark)
    sides = jvm.conversions.listed([frame._jdf for frame in frames])
    return _frame(jvm.own_rows.added(spark._jsparkSession, sides, signs), frames[0])


def repeated(frame: DataFrame, weight: str, sign: int, every: bool) -> DataFrame | None:
    """The rows whose weight (in a column) has a sign, as often as it says, without it. None also where `every`, and one has the other
    sign."""
    spark = frame.sparkSession
    return _frame(jvm_of(spark).own_rows.repeated(spark._jsparkSession, frame._jdf, weight, sign, every), frame)


def by_keys(frame: DataFrame, keys: Sequence[str], names: Sequence[str], weight: str, made: tuple[str, str, str]) -> DataFrame | None:
    """A row for each key of weighted rows: the key's columns (as k0, k1, ...), and under the names `made` how many of its rows are
    inserted, how many are deleted, and the first that is inserted, as a struct of the columns `names`."""
    spark, asked = frame.sparkSession, pickle.dumps([list(keys), list(names), weight, *made], protocol=2)
    return _frame(jvm_of(spark).own_rows.byKeys(spark._jsparkSession, frame._jdf, asked), frame)


def found(
    table: DataFrame, sought: DataFrame, names: Sequence[str], own: Sequence[str], others: Sequence[str], most: bool
) -> DataFrame | None:
    """The rows of a table that are among those sought by the columns `names`: these columns, some of the `own` of the rows sought, and
    some `others` of the table's. `most`: of equal rows no more than the first of `own` says."""
    spark, asked = table.sparkSession, pickle.dumps([list(names), list(own), list(others)], protocol=2)
    return _frame(jvm_of(spark).own_rows.found(spark._jsparkSession, table._jdf, sought._jdf, asked, most), table)


def _frame(made: Java | None, like: DataFrame) -> DataFrame | None:
    return None if made is None else DataFrame(made, like.sparkSession)
