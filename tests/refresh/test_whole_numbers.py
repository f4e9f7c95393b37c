"""Averages of whole numbers and of narrow decimals, which Spark adds up as doubles: exact up to 2^53, order-dependent beyond."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.lakes import TestLake
from tests.relations.laws import Rows, View

LARGE = 2**53
ROWS = f"SELECT * FROM VALUES (1, {LARGE + 2}), (1, {LARGE + 2}), (1, {LARGE + 2}), (2, 5), (2, 6), (3, NULL), (NULL, 7) AS t(k, v)"
QUERIES = {
    "root": "SELECT k, avg(v) AS m FROM t GROUP BY k",
    "having": "SELECT k, avg(v) AS m FROM t GROUP BY k HAVING count(*) > 1",
    "window": "SELECT k, v, avg(v) OVER (PARTITION BY k) AS m FROM t",
    "limit": "SELECT k, avg(v) AS m FROM t GROUP BY k ORDER BY k LIMIT 2",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_averages_of_whole_numbers_are_those_of_spark_below_and_beyond_what_a_double_holds(lake: TestLake, name: str) -> None:
    lake.table("t", ROWS)
    lake.view("v", QUERIES[name], refresh_mode="auto" if name == "limit" else "incremental")
    assert lake.open.explain("v").warning == ""
    lake.refresh("v")
    lake.sql(f"INSERT INTO {{t}} VALUES (1, {LARGE + 2}), (2, 6)", "UPDATE {t} SET k = 3 WHERE v = 5", "DELETE FROM {t} WHERE k IS NULL")
    assert lake.refresh("v").mode == ("recompute" if name == "limit" else "incremental")
    lake.assert_exact("v")
    lake.sql(f"DELETE FROM {{t}} WHERE v > {LARGE}", "INSERT INTO {t} VALUES (1, -3)")
    lake.refresh("v")
    lake.assert_exact("v")
    lake.sql("INSERT INTO {t} VALUES (1, 4)")
    assert lake.refresh("v").mode == "incremental"
    lake.assert_exact("v")


def test_a_group_that_comes_back_below_the_bound_is_added_to_again(spark: SparkSession) -> None:
    view = View(spark, {"t": "k int, v bigint"}, QUERIES["root"])
    beyond: Rows = [(1, LARGE), (1, 1), (1, -LARGE), (1, 3)]  # the sum is small, the sum of magnitudes is not
    view.assert_law({"t": [(1, LARGE), (1, 3)]}, {"t": [(1, 3), (1, 4)]})
    view.assert_law({"t": beyond}, {"t": beyond[1::2]})
    view.assert_law({"t": beyond[1::2]}, {"t": [*beyond[1::2], (2, LARGE), (2, LARGE)]})


@pytest.mark.parametrize(
    ("query", "warned"),
    [
        ("SELECT s, avg(p) AS m FROM a GROUP BY s ORDER BY s LIMIT 5", False),
        ("SELECT s, avg(p) AS m FROM a GROUP BY s ORDER BY m DESC, s LIMIT 5 OFFSET 1", False),
        ("SELECT s, avg(p) AS m FROM a GROUP BY s ORDER BY m LIMIT 5", True),
        ("SELECT s, avg(d) AS m FROM a GROUP BY s ORDER BY s LIMIT 5", True),
        ("SELECT id, s FROM a ORDER BY id LIMIT 5", False),
        ("SELECT id, s FROM a ORDER BY s LIMIT 5", True),
        ("SELECT s FROM b ORDER BY s LIMIT 5", False),
        ("SELECT s FROM a LIMIT 5", True),
        ("SELECT s, avg(p), avg(DISTINCT p) FROM a GROUP BY s", False),
    ],
)
def test_only_what_may_depend_on_the_order_of_rows_is_warned_of(spark: SparkSession, query: str, warned: bool) -> None:
    view = View(spark, {"a": "id int, s string, p decimal(7,2), d double", "b": "s string, d double"}, query, keys={"a": ["id"]})
    assert bool(view.definition.relation.order_dependent) == warned
