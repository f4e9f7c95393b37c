"""Outer, semi and anti joins of which both sides changed; judged by plain Spark at both ends."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from pyspark.sql import DataFrame, SparkSession

from lake.spark.key_ranges import Ranges
from tests.relations.laws import ListedSources, Rows, View

SCHEMAS = {"a": "k int, g int, v int", "b": "k bigint, g int, w int"}
ONE, BOTH = "a.k, a.v", "a.k, a.v, b.k AS bk, b.w"
KINDS = {"LEFT JOIN": BOTH, "RIGHT JOIN": BOTH, "FULL JOIN": BOTH, "LEFT SEMI JOIN": ONE, "LEFT ANTI JOIN": ONE}


def some(draw: random.Random, number: int) -> Rows:
    return [(draw.choice([1, 2, 3, 4, 5, 6, None]), draw.choice([1, 2, None]), draw.randrange(5)) for _ in range(number)]


def changed(draw: random.Random, rows: Rows) -> Rows:
    """The rows with some replaced (also by those of other keys), one less, two more."""
    after = list(rows)
    for _ in range(draw.randrange(1, 4)):
        after[draw.randrange(len(after))] = some(draw, 1)[0]
    del after[draw.randrange(len(after))]
    return after + some(draw, 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("on", ["a.k = b.k AND a.v < b.w", "a.k <=> b.k", "a.k = b.k AND a.g <=> b.g"])
def test_random_histories_of_both_sides(spark: SparkSession, kind: str, on: str) -> None:
    view = View(spark, SCHEMAS, f"SELECT {KINDS[kind]} FROM a {kind} b ON {on}")
    draw = random.Random(len(kind) + len(on))
    for limit in (40_000, 40_000, 0):
        since = {"a": some(draw, 14), "b": some(draw, 9)}
        view.assert_law(since, {name: changed(draw, rows) for name, rows in since.items()}, limit)


def test_rows_of_keys_that_changed_on_one_side_only_are_looked_up_on_the_other(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Orders came for customer 1, and customer 2 is another: the orders of customer 2 are read, and those of customer 1 are not."""
    view = View(spark, SCHEMAS, "SELECT a.k, a.v, b.w FROM a LEFT JOIN b ON a.k = b.k")
    asked: list[tuple[str, tuple[object, ...] | None]] = []
    own = ListedSources.rows

    def rows(self: ListedSources, source: str, among: Mapping[str, Ranges] | None = None) -> DataFrame:
        asked.extend((source, ranges.values) for ranges in (among or {}).values())
        return own(self, source, among)

    monkeypatch.setattr(ListedSources, "rows", rows)
    a: Rows = [(k, 1, v) for k in (1, 2, 3) for v in range(4)]
    b: Rows = [(k, 1, 10 * k) for k in (1, 2, 3)]
    view.assert_law({"a": a, "b": b}, {"a": [*a, (1, 1, 9)], "b": [b[0], (2, 1, 21), b[2]]})
    assert sorted(asked) == [("a", (2,)), ("b", (1,)), ("b", (2,))]
