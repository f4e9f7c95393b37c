"""Operators on frames, as SQL text: however many there are, they are one call to the JVM, and are analysed once.

    over(frame, where("w <> 0"), select(["id", "-w AS w"]))

PySpark calls the JVM for each column of each operator, and Spark analyses the plan after each. For few rows that takes longer than the
rows themselves do.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame

from lake.spark.jvm.gateway import jvm_of

Step = list[Any]
"""An operator: its kind, and its expressions as SQL."""


def select(expressions: Iterable[str]) -> Step:
    """The rows with these columns instead of their own."""
    return ["select", list(expressions)]


def where(condition: str) -> Step:
    """The rows for which the condition is true."""
    return ["where", condition]


def group(keys: Iterable[str], aggregates: Iterable[str]) -> Step:
    """A row for each group: the keys, then the aggregates. Both may be given other names with AS."""
    return ["group", list(keys), list(aggregates)]


def over(frame: DataFrame, *steps: Step) -> DataFrame:
    """The frame after the steps. Raises Spark's AnalysisException."""
    spark = frame.sparkSession
    return DataFrame(jvm_of(spark).own_steps.over(spark._jsparkSession, frame._jdf, pickle.dumps(list(steps), protocol=2)), spark)


def joined(left: DataFrame, right: DataFrame, condition: str, few: bool) -> DataFrame:
    """The inner join of two frames that have no name of a column in common. `few`: the right rows are broadcast."""
    spark = left.sparkSession
    return DataFrame(jvm_of(spark).own_steps.joined(spark._jsparkSession, left._jdf, right._jdf, condition, few), spark)


def added(frames: Sequence[DataFrame], signs: str) -> DataFrame:
    """Weighted rows of frames of the same columns, added up: of each frame times 1, or times -1 where `signs` has a minus at its place.
    Rows without a weight count once."""
    spark = frames[0].sparkSession
    jvm = jvm_of(spark)
    sides = jvm.conversions.listed([frame._jdf for frame in frames])
    return DataFrame(jvm.own_steps.added(spark._jsparkSession, sides, signs), spark)
