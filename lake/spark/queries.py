"""Runs the text of a query over frames, each under the name that the query has for it, which may have a schema (silver.accounts)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from lake.core.sql import quoted
from lake.spark.jvm.gateway import Java, jvm_of


def query(spark: SparkSession, text: str, tables: Mapping[str, DataFrame]) -> DataFrame:
    """The query over the frames, which become temporary views of the session."""
    place(tables)
    if not any("." in name for name in tables):
        return spark.sql(text)
    session = spark._jsparkSession
    plan = whole_names(spark, session.sessionState().sqlParser().parsePlan(text), list(tables))
    return DataFrame(jvm_of(spark).org.apache.spark.sql.classic.Dataset.ofRows(session, plan), spark)


def place(tables: Mapping[str, DataFrame]) -> None:
    """Make each frame a temporary view under its whole name."""
    for name, frame in tables.items():
        frame.createOrReplaceTempView(quoted(name) if "." in name else name)


def whole_names(spark: SparkSession, parsed: Java, names: Sequence[str]) -> Java:
    """A parsed plan that reads each of these names that has a schema from the temporary view of that whole name."""
    long = [name for name in names if "." in name]
    return jvm_of(spark).own_schema_names.wholeNames(parsed, ",".join(long)) if long else parsed
