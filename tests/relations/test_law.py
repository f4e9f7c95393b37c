"""The law, for every kind of operator, on tables with duplicates, NULL keys, rows that move to another key, and rows deleted on
both sides at once. Judged by plain Spark at both ends."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from lake.spark.session import settings
from tests.conftest import COMPILED
from tests.relations.cases import ADDED, AFTER, BEFORE, EMPTY, NOT_ADDED, QUERIES, SCHEMAS, SCOPED, TOP, UNSCOPED
from tests.relations.laws import Rows, View
from tests.relations.matrix import DOCUMENT, line

FAST = [
    "filter",
    "filter_that_guards_a_cast",
    "explode",
    "union_all",
    "inner_join",
    "inner_join_null_safe",
    "self_join",
    "range_only_join",
    "three_way",
    "maps",
    "left_join_residual",
    "full_join",
    "anti_join",
    "not_in_with_nulls",
    "group_by",
    "count_distinct",
    "window",
    "scalar_subquery",
    "order_by_limit",
    "added",
    "extremes",
    "row_number_by_what_is_not_selected",
    "averages_with_a_row_of_another_key",
]


@pytest.fixture(autouse=True)
def compiled(spark: SparkSession) -> Iterator[None]:
    """Expressions are compiled here, as they are outside of the tests."""
    with settings(spark, COMPILED):
        yield


@pytest.mark.parametrize("name", FAST)
def test_snapshot_until_is_snapshot_since_plus_changes(spark: SparkSession, name: str) -> None:
    View(spark, SCHEMAS, QUERIES[name]).assert_law(BEFORE, AFTER)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_law_holds_whichever_tables_moved_for_many_changes_and_down_to_empty_tables(spark: SparkSession, name: str) -> None:
    view = View(spark, SCHEMAS, QUERIES[name])
    sources = view.definition.sources
    for table in sources if len(sources) > 1 else ():
        view.assert_law(BEFORE, {**BEFORE, table: AFTER[table]})
    view.assert_law(AFTER, BEFORE, local_limit=0)  # changes too many to be local
    view.assert_law(AFTER, EMPTY)
    assert line(name, view) in DOCUMENT.read_text().splitlines(), "docs/reference/sql.md is stale: make docs"


@pytest.mark.parametrize("name", [*SCOPED, *UNSCOPED])
def test_what_depends_on_the_order_of_rows_is_refreshed_by_a_scope_where_there_is_one(spark: SparkSession, name: str) -> None:
    definition = View(spark, SCHEMAS, {**SCOPED, **UNSCOPED}[name]).definition
    assert definition.relation.order_dependent
    assert bool(definition.scope) == (name in SCOPED)


def test_what_is_equal_in_one_input_of_a_union_may_tie_above_it(spark: SparkSession) -> None:
    """A union has the ids of its first input; of its other rows a join in that says nothing."""
    query = """SELECT v, w, row_number() OVER (PARTITION BY n ORDER BY v) AS r FROM (SELECT v, w, count(*) AS n FROM
               (SELECT v, w FROM a JOIN b ON v = w {}) GROUP BY v, w)"""
    definitions = [View(spark, SCHEMAS, query.format(more)).definition for more in ("", "UNION ALL SELECT id, w FROM b")]
    alone, united = (definition.relation.order_dependent for definition in definitions)
    assert alone == ""
    assert "equal sort keys" in united


def test_a_sum_of_decimals_that_overflowed_is_recomputed(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "false")
    view = View(session, {"t": "k int, x decimal(38,0)"}, "SELECT k, sum(x) AS t, avg(x) AS m, count(*) AS n FROM t GROUP BY k")
    assert view.definition.carried
    large, few = (1, Decimal(9 * 10**37)), [(1, Decimal(1)), (2, None)]
    for since, until in ((1, 2), (2, 1), (2, 3), (1, 0)):
        view.assert_law({"t": [*few, *[large] * since]}, {"t": [*few, *[large] * until]})
    assert view.truth({"t": [*few, large, large]}) == {(1, None, None, 3): 1, (2, None, None, 1): 1}


@pytest.mark.parametrize("name", [*ADDED, *NOT_ADDED, *TOP, "order_by_limit_offset"])
def test_aggregates_and_limits_at_the_root_are_refreshed_from_the_stored_rows(spark: SparkSession, name: str) -> None:
    assert bool(View(spark, SCHEMAS, QUERIES[name]).definition.carried) == (name in {**ADDED, **TOP})


def test_a_top_is_refreshed_from_the_stored_rows_until_too_few_remain(spark: SparkSession) -> None:
    view = View(spark, {"t": "v int, s string"}, "SELECT v, s FROM t ORDER BY v, s LIMIT 3")
    since: Rows = [(1, "a"), (2, "b"), (3, "c"), (3, "c"), (4, "d"), (5, "e")]
    histories: list[tuple[Rows, bool]] = [
        ([*since, (0, "z")], False),
        ([*since, (9, "z")], False),
        ([(0, "a"), *since[1:]], False),  # an update within the top
        (since[1:], True),
        ([*since[1:], (2, "y")], False),  # one is deleted, one is inserted before the last
        ([*since[1:], (9, "y")], True),  # one is deleted, one is inserted, but after the last
        ([*since[:2], *since[3:]], True),  # one copy of the last is deleted, and the other copy is not stored
        (since[:4], False),
        ([], True),
    ]
    for until, recomputed in histories:
        view.assert_law({"t": since}, {"t": until})
        assert bool(view.recomputed) == recomputed, until
    view.assert_law({"t": since[:2]}, {"t": since[1:2]})
    assert not view.recomputed


def test_a_value_that_changed_recomputes_no_filter_above_a_window(spark: SparkSession) -> None:
    numbered = "SELECT s, v, row_number() OVER (PARTITION BY s ORDER BY v, id) AS r FROM a"
    query = f"SELECT * FROM ({numbered}) WHERE r < (SELECT min(w) FROM b WHERE w > 0)"
    view = View(spark, SCHEMAS, query)
    view.assert_law(BEFORE, {**BEFORE, "a": AFTER["a"]})
    assert not view.recomputed
    view.assert_law(BEFORE, {**BEFORE, "b": [(1, 2)]})
    assert not any("Filter" in reason or "Window" in reason for reason in view.recomputed)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in QUERIES if n.startswith("groups_of")])
def test_groups_of_outer_joins_whose_changed_keys_hold_no_null(spark: SparkSession, name: str) -> None:
    view = View(spark, SCHEMAS, QUERIES[name])
    a, b = BEFORE["a"], BEFORE["b"]
    for until in (
        {"a": [*a[1:], (2, "y", 21)]},
        {"b": [row for row in b if row != (2, 201)]},
        {"a": [row for row in a if row[0] != 2], "b": [*b, (3, 300), (4, 400)]},
    ):
        view.assert_law(BEFORE, {**BEFORE, **until})


def test_rows_stored_of_a_lookup_are_those_of_the_keys_that_were_looked_up(spark: SparkSession) -> None:
    """The key (1, NULL) can match nothing and is not looked up: what was found is not all rows of 1."""
    schemas = {"t": "a int, b int", "u": "a int, x int", "w": "x int, b int"}
    joined = "t LEFT JOIN (SELECT u.a, w.b FROM u JOIN w ON u.x = w.x) p ON t.a = p.a AND t.b = p.b"
    view = View(spark, schemas, f"SELECT t.a, count(*) AS n, count(p.b) AS m FROM {joined} GROUP BY t.a HAVING count(*) > 0")
    since: dict[str, Rows] = {"t": [(1, 3), (2, 5)], "u": [(1, 6), (2, 7)], "w": [(6, 3), (7, 5)]}
    view.assert_law(since, {**since, "t": [*since["t"], (1, None), (2, 5)]})


def test_intervals_within_a_query_are_told_apart(spark: SparkSession) -> None:
    joined = "SELECT a.t + x.i AS due, a.n FROM a LEFT JOIN (SELECT n, make_interval(0, m, 0, d) AS i FROM b) x ON a.n = x.n"
    view = View(spark, {"a": "n int, t timestamp", "b": "n int, m int, d int"}, joined)
    rows: Rows = [(1, datetime(2026, 1, 31)), (2, datetime(2026, 2, 28)), (3, None)]
    view.assert_law({"a": rows, "b": [(1, 1, 0), (2, 0, 30)]}, {"a": rows, "b": [(1, 0, 30), (2, 0, 30), (3, 1, 1)]})


def test_nothing_changed_is_no_changes(spark: SparkSession) -> None:
    assert View(spark, SCHEMAS, QUERIES["three_way"]).changes(BEFORE, BEFORE) == {}


def test_many_keys_that_are_casts_are_not_pruned_by_ranges_of_another_order(spark: SparkSession) -> None:
    """'10' comes before '9' among strings, not among numbers: a range of the one says nothing of the other."""
    query = "SELECT a.id, b.s FROM a JOIN b ON CAST(a.id AS string) = b.s"
    view = View(spark, {"a": "id int", "b": "s string"}, query)
    since: dict[str, Rows] = {"a": [(n,) for n in range(200)], "b": []}
    view.assert_law(since, {**since, "b": [(str(n),) for n in range(0, 200, 3)]})
