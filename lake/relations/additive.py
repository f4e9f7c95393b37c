"""Adds changes to stored sums and counts, where an aggregate is the view's root under projections (trap 10).

Let g be the groups of the child's changes Δ⁺ - Δ⁻ (inserted rows, deleted rows). The view stores, in hidden columns where
the query does not select them, the parts of its aggregates: count(*), and for each argument x the count of its values and their sum. Then

    new(g) = stored(g) + agg(Δ⁺)(g) - agg(Δ⁻)(g)                column by column, by Spark's own aggregate on both sides
    changes = project(new) - stored(g)

No other row of the group is read. A group whose count(*) is 0 is deleted; a sum whose count of values is 0 is NULL. The minimum of a
group (and the maximum) is valid until it is deleted: then the group is looked up and recomputed. So is a group with a sum of decimals
that overflowed, which is NULL outside ANSI mode, and one whose whole numbers add up to more than 2^53 where they are averaged: Spark
adds these up as doubles, which are exact up to there. The rule is exact for whole numbers and decimals; a sum of doubles would drift
(trap 8), so the rule does not apply to it.

Example: stored are the count 2 and the sum 30 of group 1; 5 is inserted, 10 is deleted.

    >>> from tests.relations.twin import bag, group, shown
    >>> stored, inserted, deleted = bag((1, 2, 30)), group(bag((1, 5)), bag()), group(bag((1, 10)), bag())
    >>> columns = zip(*stored, *inserted, *deleted)
    >>> next(columns), *[old + plus - minus for old, plus, minus in columns]
    ((1, 1, 1), 2, 25)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lake.catalyst.guards import LARGEST
from lake.catalyst.nodes import Expression, Measure, Node, column_name
from lake.relations.base import Relation
from lake.relations.frames import Changes
from lake.relations.reading import Reading
from lake.relations.stored import Stored
from lake.spark import zset

_SIGN, _STALE = "sign", "stale"


class AddedAggregate(Stored):
    """An aggregate at a view's root; `measures` are its columns beside the groups."""

    def __init__(
        self, node: Node, children: Sequence[Relation], subqueries: Mapping[int, Relation] | None = None, *, keys: Sequence[Expression]
    ) -> None:
        super().__init__(node, children, subqueries, keys=[keys])
        assert node.measures
        self.measures = node.measures

    @property
    def rule(self) -> str:  # type: ignore[override]
        extremes = any(m.kind in ("min", "max") for m in self.measures)
        return "added to the stored rows" + (", looked up where a group's minimum or maximum is deleted" if extremes else "")

    def renewed(self, stored_rows: DataFrame, delta: Changes, reading: Reading) -> DataFrame:
        """stored + the aggregate of the inserted rows - the aggregate of the deleted rows."""
        parts = [stored_rows.withColumn(_SIGN, F.lit(0)), *_signed(self, delta, reading)]
        overflow = reading.catalyst.spark.conf.get("spark.sql.ansi.enabled") != "true"
        may_overflow = [m for m in self.measures if overflow and m.kind == "sum" and m.data_type.startswith("DECIMAL")]
        added = reading.frames.keep_rows(_added(self, parts, may_overflow))
        if not may_overflow and not any(m.kind in ("min", "max", "average") for m in self.measures):
            return added.frame.drop(_STALE)
        return _with_recomputed(self, added, reading)


def _signed(aggregate: AddedAggregate, delta: Changes, reading: Reading) -> list[DataFrame]:
    """The aggregate of the inserted rows (sign 1), and of the deleted rows (sign -1)."""
    found = []
    for sign in (1, -1):
        rows = zset.weighted(delta.frame, sign).where(F.col(zset.WEIGHT) > 0)
        found.append(aggregate.run(reading, [zset.to_rows(rows, "an aggregate's changes")]).withColumn(_SIGN, F.lit(sign)))
    return found


def _added(aggregate: AddedAggregate, parts: Sequence[DataFrame], may_overflow: Sequence[Measure]) -> DataFrame:
    """stored + inserted - deleted for each group; `stale` where a minimum or maximum may be deleted, or a sum overflowed."""
    frame = parts[0]
    for part in parts[1:]:
        frame = frame.unionByName(part)
    measured = {m.id for m in aggregate.measures}
    groups = [a.column for a in aggregate.output if a.id not in measured]
    columns = [c for m in aggregate.measures for c in _summed(m)]
    stale = [_extreme_deleted(m) for m in aggregate.measures if m.kind in ("min", "max")]
    stale += [F.max(_lost(m, F.col(m.column))) for m in may_overflow]
    grouped = frame.groupBy(*groups).agg(*columns, F.greatest(F.lit(False), F.lit(False), *stale).alias(_STALE))
    remaining = grouped if not groups else grouped.where(F.col(_rows_of(aggregate).column) > 0)
    inexact = [F.col(column_name(m.parts[1])) > LARGEST for m in aggregate.measures if m.parts is not None]
    lost = reduce(Column.__or__, [*[_lost(m, _finished(m)) for m in may_overflow], *inexact], F.col(_STALE))
    return remaining.select(*groups, *[_finished(m) for m in aggregate.measures], lost.alias(_STALE))


def _rows_of(aggregate: AddedAggregate) -> Measure:
    return next(m for m in aggregate.measures if m.kind == "rows")


def _summed(measure: Measure) -> list[Column]:
    value, sign = F.col(measure.column), F.col(_SIGN)
    match measure.kind:
        case "min" | "max":
            function = F.min if measure.kind == "min" else F.max
            return [function(F.when(sign >= 0, value)).alias(measure.column)]
        case "average":
            return []  # of its parts
        case "sum":
            wide = F.coalesce(value, F.lit(0)).cast(f"decimal(38,{measure.scale})")
            return [F.sum(F.when(sign < 0, -wide).otherwise(wide)).alias(measure.column)]
        case _:
            return [F.sum(F.when(sign < 0, -value).otherwise(value)).alias(measure.column)]


def _extreme_deleted(measure: Measure) -> Column:
    """Whether a deleted row was (or equals) the stored or inserted minimum or maximum."""
    value, sign = F.col(measure.column), F.col(_SIGN)
    function = F.min if measure.kind == "min" else F.max
    stored, deleted = function(F.when(sign >= 0, value)), function(F.when(sign < 0, value))
    return F.coalesce(deleted <= stored if measure.kind == "min" else deleted >= stored, deleted.isNotNull())


def _lost(measure: Measure, value: Column) -> Column:
    """Whether a sum of some values is NULL."""
    return (F.col(column_name(measure.count)) > 0) & value.isNull()  # type: ignore[arg-type]


def _finished(measure: Measure) -> Column:
    if measure.kind not in ("sum", "average"):
        return F.col(measure.column)
    count = F.col(column_name(measure.count))  # type: ignore[arg-type]
    present = count > 0
    if measure.parts is not None:
        total = F.col(column_name(measure.parts[0])).cast("double")
        return F.when(present, total / count.cast("double")).alias(measure.column)
    return F.when(present, F.col(measure.column)).cast(measure.data_type).alias(measure.column)


def _with_recomputed(aggregate: AddedAggregate, added: Changes, reading: Reading) -> DataFrame:
    """The added rows, with the stale groups looked up."""
    stale = reading.frames.keep(added.frame.where(_STALE).drop(_STALE))
    fresh = added.frame.where(~F.col(_STALE)).drop(_STALE)
    if stale is None:
        return fresh
    child = aggregate.children[0]
    if aggregate.keys[0]:
        rows = child.lookup(reading.keys([(stale, aggregate.keys[0])]), reading)
    else:
        rows = child.snapshot(reading)
    return fresh.unionByName(aggregate.run(reading, [rows]))
