"""A refresh computes a frame once, and stores its rows: on the driver where they are few."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Expression
from lake.relations.reading import Keys, Reading
from lake.spark.session import own_session
from tests.relations.laws import ListedSources


@pytest.mark.parametrize(("changed", "tried"), [(0, 1), (10, 0)])
def test_changes_that_the_log_says_are_many_are_not_tried_for_few(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, changed: int, tried: int
) -> None:
    """That would be to compute them twice."""
    own, tries, collected = own_session(spark), list[int](), Catalyst.collected

    def noted(catalyst: Catalyst, frame: DataFrame, limit: int) -> tuple[DataFrame, int] | None:
        tries.append(limit)
        return collected(catalyst, frame, limit)

    rows = own.range(10).select(F.col("id").alias("c0"), F.lit(1).cast("long").alias("w"))
    monkeypatch.setattr(ListedSources, "changes", lambda *_: rows)
    monkeypatch.setattr(ListedSources, "changed_rows", lambda *_: changed)
    monkeypatch.setattr(Catalyst, "collected", noted)
    with Reading(Catalyst(own), ListedSources(own, {}, {}, {}), local_limit=3) as reading:
        kept = reading.tables.changes("a", ["id"])
    assert kept is not None
    assert (kept.count, kept.local, len(tries)) == (10, False, tried)


@pytest.mark.parametrize(("rows", "local"), [(10, False), (2, True), (0, True)])
def test_after_many_rows_a_stored_frame_is_computed_once(spark: SparkSession, rows: int, local: bool) -> None:
    seen = spark.sparkContext.accumulator(0)

    def note(value: int) -> int:
        seen.add(1)
        return value

    own = own_session(spark)
    frame = own.range(rows).select(F.udf(note, "long", useArrow=False)("id").alias("c1"))
    with Reading(Catalyst(own), ListedSources(own, {}, {}, {}), local_limit=3) as reading:
        reading.frames.expect_many()
        kept = reading.frames.keep(frame)
        found = [] if kept is None else sorted(row[0] for row in [*kept.frame.collect(), *kept.frame.collect()])
    assert found == sorted([*range(rows), *range(rows)])
    assert seen.value == rows
    assert (kept is None) == (rows == 0)
    assert kept is None or (kept.count, kept.local) == (rows, local)


@pytest.mark.parametrize("rows", [10, 2])
def test_a_stored_frame_is_not_stored_again(spark: SparkSession, rows: int) -> None:
    own = own_session(spark)
    with Reading(Catalyst(own), ListedSources(own, {}, {}, {}), local_limit=3) as reading:
        kept = reading.frames.keep(own.range(rows))
        assert kept is not None
        assert reading.frames.keep(kept.frame) is kept


def test_keys_without_nulls_keep_nan(spark: SparkSession) -> None:
    """NaN matches NaN in a join, NULL nothing unless the join is null-safe."""
    frame = spark.sql("SELECT * FROM VALUES (double('NaN'), 1.0D), (NULL, 2.0D), (3.0D, NULL) t(k0, k1)")
    column = Expression(None, frozenset(), None, plain=True)
    keys = Keys((column, column), frame, (None, None), local=True)
    assert sorted(row.k1 for row in keys.without_nulls([False, True]).frame.where("k1 IS NOT NULL").collect()) == [1.0]
    assert keys.without_nulls([False, False]).frame.count() == 1
    assert keys.without_nulls([True, True]).frame.count() == 3
