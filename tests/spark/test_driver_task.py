"""Plans that read little run in the driver: under the settings of the view's session, as in a job of its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest
from pyspark.sql import DataFrame, SparkSession

from lake.spark.local_rows import values_of
from tests.relations.laws import Rows, View

SCHEMAS = {"a": "id int, s string", "b": "d date, x int"}


@pytest.fixture
def lenient(spark: SparkSession) -> SparkSession:
    """Its parser of dates, that of Spark 2, is the only one that takes a month of one digit for `MM`."""
    found = spark.newSession()
    found.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    found.conf.set("spark.sql.session.timeZone", "UTC")
    return found


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id, b.x FROM a JOIN b ON to_date(a.s, 'yyyy-MM-dd') = b.d",
        "SELECT to_date(s, 'yyyy-MM-dd') AS d, count(*) AS n FROM a GROUP BY to_date(s, 'yyyy-MM-dd')",
    ],
)
def test_functions_read_the_settings_of_the_session(lenient: SparkSession, query: str) -> None:
    view = View(lenient, SCHEMAS, query)
    since: dict[str, Rows] = {"a": [(1, "2026-1-5"), (2, "2026-01-06")], "b": [(date(2026, 1, 5), 50), (date(2026, 1, 6), 60)]}
    until: dict[str, Rows] = {"a": [(1, "2026-1-6"), (3, "2026-1-5")], "b": since["b"]}
    view.assert_law(since, until)


def of_a_range(session: SparkSession) -> DataFrame:
    """What it reads is not known, so a job runs it."""
    return session.range(2)


def of_rows(session: SparkSession) -> DataFrame:
    """Sorted, so that the optimiser does not evaluate them."""
    return session.createDataFrame([(0,), (1,)], "id long").sort("id")


@pytest.mark.parametrize("rows", [of_a_range, of_rows])
def test_so_they_do_in_a_job(lenient: SparkSession, rows: Callable[[SparkSession], DataFrame]) -> None:
    parsed = rows(lenient).selectExpr("to_date(concat('2026-1-', id + 1), 'yyyy-MM-dd') AS d")
    assert [days for (days,) in values_of(parsed)] == [(date(2026, 1, day) - date(1970, 1, 1)).days for day in (1, 2)]
