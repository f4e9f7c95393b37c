"""What `explain --why-not` says to change makes the view incremental: each suggestion is followed here."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from lake.views import explain
from tests.relations.laws import View

TABLES = {"a": "id int, s string, v int", "c": "k int, x double", "total": "m double, n bigint"}
KEYS = {"a": ["id"], "c": ["k"]}
FOLLOWED = {
    "SELECT count(DISTINCT v) AS n, count(DISTINCT s) AS k, max(s) AS m FROM a": (
        "a view of the aggregates of DISTINCT values",
        ["SELECT count(DISTINCT v) AS n, count(DISTINCT s) AS k FROM a", "SELECT t.n, u.n AS k FROM total t CROSS JOIN total u"],
    ),
    "SELECT count(DISTINCT v) AS n, sum(CAST(v AS DECIMAL(30))) AS k FROM a": (
        "and one of the others",
        ["SELECT sum(CAST(v AS DECIMAL(30))) AS k FROM a"],
    ),
    "SELECT s, avg(x) AS m, stddev(x) AS d FROM a JOIN c ON id = k GROUP BY s ORDER BY m, s LIMIT 3": (
        "with no LIMIT above",
        ["SELECT s, avg(x) AS m, stddev(x) AS d FROM a JOIN c ON id = k GROUP BY s"],
    ),
    "SELECT sum(x) AS total FROM c": ("CAST floating-point numbers AS DECIMAL", ["SELECT sum(CAST(x AS DECIMAL(20, 2))) AS total FROM c"]),
    "SELECT id, rank() OVER (ORDER BY v) AS r FROM a": ("PARTITION BY", ["SELECT id, rank() OVER (PARTITION BY s ORDER BY v) AS r FROM a"]),
    "SELECT id, rank() OVER (ORDER BY v, id) AS r FROM a": (
        "filter them by their rank",
        ["SELECT id, r FROM (SELECT id, rank() OVER (ORDER BY v, id) AS r FROM a) WHERE r <= 10"],
    ),
    "SELECT id FROM a ORDER BY v, id LIMIT 3 OFFSET 998": (
        "at the most 1,000 rows",
        ["SELECT id FROM a ORDER BY v, id LIMIT 3 OFFSET 997"],
    ),
    "SELECT n, s FROM (SELECT n FROM total ORDER BY m LIMIT 3) JOIN a ON n = id": (
        "until no two rows can be equal",
        ["SELECT n FROM total ORDER BY m, n LIMIT 3", "SELECT t.n, a.s FROM total t JOIN a ON t.n = a.id"],
    ),
    "SELECT id FROM (SELECT id FROM a ORDER BY v LIMIT 3) JOIN c ON id = k": (
        "until no two rows can be equal",
        ["SELECT id FROM (SELECT id FROM a ORDER BY v, id LIMIT 3) JOIN c ON id = k"],
    ),
}


@pytest.mark.parametrize("query", FOLLOWED)
def test_what_is_suggested_makes_the_view_incremental(spark: SparkSession, query: str) -> None:
    said, instead = FOLLOWED[query]
    told = explain.explain(View(spark, TABLES, query, KEYS).definition, {})
    assert not told.incremental
    assert any(said in each for each in told.suggestions), told.suggestions
    for better in instead:
        found = explain.explain(View(spark, TABLES, better, KEYS).definition, {})
        assert found.incremental, (better, found.reason)
        assert found.suggestions == ()


def test_a_reason_that_comes_several_times_is_said_once(spark: SparkSession) -> None:
    twice = "(SELECT count(DISTINCT v) + sum(CAST(v AS DECIMAL(30))) FROM a WHERE id {} 3)"
    query = f"SELECT id FROM a WHERE v > {twice.format('>')} OR v < {twice.format('<')}"
    view = View(spark, TABLES, query, KEYS)
    told = explain.explain(view.definition, {})
    assert told.reason == "Aggregate (2 times) is recomputed, since it is one group over all rows"
    assert told.why_not.splitlines()[1:] == [f"to change it: {told.suggestions[0]}"]
