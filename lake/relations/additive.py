"""Adds changes to sums and counts: those stored in the view, where an aggregate is its root under projections (trap 10), and those kept in
the stamp (total.py).

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

from pyspark.sql import DataFrame

from lake.catalyst.guards import LARGEST
from lake.catalyst.nodes import Expression, Measure, Node, column_name
from lake.relations.base import Relation
from lake.relations.frames import Changes
from lake.relations.keyed import Keyed
from lake.relations.reading import Reading
from lake.relations.stored import Stored
from lake.spark import steps, zset

_SIGN, _STALE = "sign", "stale"


class Added(Keyed):
    """An aggregate that can be added up; `measures` are its columns beside the groups."""

    def __init__(
        self, node: Node, children: Sequence[Relation], subqueries: Mapping[int, Relation] | None = None, *, keys: Sequence[Expression]
    ) -> None:
        super().__init__(node, children, subqueries, keys=[keys])
        assert node.measures
        self.measures = node.measures
        self.has_extremes = any(m.kind in ("min", "max") for m in node.measures)

    def renewed(self, stored_rows: DataFrame, delta: Changes, reading: Reading) -> DataFrame:
        """stored + the aggregate of the inserted rows - the aggregate of the deleted rows."""
        parts = [_signed(self, stored_rows, 0)]
        for sign in (1, -1):
            parts.append(_signed(self, self.run(reading, [zset.side(delta.frame, sign)]), sign))
        overflow = reading.catalyst.spark.conf.get("spark.sql.ansi.enabled") != "true"
        may_overflow = [m for m in self.measures if overflow and m.kind == "sum" and m.data_type.startswith("DECIMAL")]
        added = reading.frames.keep_rows(_added(self, parts, may_overflow))
        if not (may_overflow or self.has_extremes or any(m.kind == "average" for m in self.measures)):
            return added.frame.drop(_STALE)
        return _with_recomputed(self, added, reading)

    def rows_of(self, stale: Changes, reading: Reading) -> DataFrame:
        """The child's rows of the groups that can't be added to."""
        (child,), (keys,) = self.children, self.keys
        return child.lookup(reading.keys([(stale, keys)]), reading) if keys else child.snapshot(reading)


class AddedAggregate(Added, Stored):
    """One at a view's root."""

    @property
    def rule(self) -> str:  # type: ignore[override]
        return "added to the stored rows" + (", looked up where a group's minimum or maximum is deleted" if self.has_extremes else "")


def _signed(aggregate: Added, rows: DataFrame, sign: int) -> DataFrame:
    """The aggregate of the stored rows (sign 0), of the inserted rows (1), or of the deleted rows (-1)."""
    return steps.over(rows, steps.select([*[a.column for a in aggregate.output], f"{sign} AS {_SIGN}"]))


def _added(aggregate: Added, parts: Sequence[DataFrame], may_overflow: Sequence[Measure]) -> DataFrame:
    """stored + inserted - deleted for each group; `stale` where a minimum or maximum may be deleted, or a sum overflowed."""
    measured = {m.id for m in aggregate.measures}
    groups = [a.column for a in aggregate.output if a.id not in measured]
    totals = [f"{_summed(m)} AS {m.column}" for m in aggregate.measures if m.kind != "average"]  # an average is made of its parts
    stale = [_extreme_deleted(m) for m in aggregate.measures if m.kind in ("min", "max")]
    stale += [f"max({_lost(m, m.column)})" for m in may_overflow]
    flag = f"greatest({', '.join(['false', 'false', *stale])}) AS {_STALE}"
    inexact = [f"{column_name(m.parts[1])} > {LARGEST}" for m in aggregate.measures if m.parts is not None]
    lost = " OR ".join([_STALE, *[_lost(m, _finished(m)) for m in may_overflow], *inexact])
    finished = [f"{_finished(m)} AS {m.column}" for m in aggregate.measures]
    return steps.over(
        reduce(lambda a, b: a.unionByName(b), parts),
        steps.group(groups, [*totals, flag]),
        *([steps.where(f"{_rows_of(aggregate).column} > 0")] if groups else []),
        steps.select([*groups, *finished, f"{lost} AS {_STALE}"]),
    )


def _rows_of(aggregate: Added) -> Measure:
    return next(m for m in aggregate.measures if m.kind == "rows")


def _summed(measure: Measure) -> str:
    """A measure of the stored, inserted and deleted rows together, as SQL."""
    value = measure.column
    match measure.kind:
        case "min" | "max":
            return f"{measure.kind}(IF({_SIGN} >= 0, {value}, NULL))"
        case "sum":
            wide = f"CAST(coalesce({value}, 0) AS DECIMAL(38, {measure.scale}))"
            return f"sum(IF({_SIGN} < 0, -{wide}, {wide}))"
        case _:
            return f"sum(IF({_SIGN} < 0, -{value}, {value}))"


def _extreme_deleted(measure: Measure) -> str:
    """Whether a deleted row was (or equals) the stored or inserted minimum or maximum, as SQL."""
    stored, deleted = (f"{measure.kind}(IF({_SIGN} {sign}, {measure.column}, NULL))" for sign in (">= 0", "< 0"))
    return f"coalesce({deleted} {'<=' if measure.kind == 'min' else '>='} {stored}, {deleted} IS NOT NULL)"


def _lost(measure: Measure, value: str) -> str:
    """Whether a sum of some values is NULL, as SQL."""
    return f"({_count_of(measure)} > 0 AND {value} IS NULL)"


def _finished(measure: Measure) -> str:
    """A measure from its totals, as SQL."""
    if measure.parts is not None:
        return f"IF({_count_of(measure)} > 0, CAST({column_name(measure.parts[0])} AS DOUBLE) / CAST({_count_of(measure)} AS DOUBLE), NULL)"
    if measure.kind != "sum":
        return measure.column
    return f"CAST(IF({_count_of(measure)} > 0, {measure.column}, NULL) AS {measure.data_type})"


def _count_of(measure: Measure) -> str:
    """The column with the number of a measure's values."""
    assert measure.count is not None
    return column_name(measure.count)


def _with_recomputed(aggregate: Added, added: Changes, reading: Reading) -> DataFrame:
    """The added rows, with the stale groups looked up."""
    stale = reading.frames.keep(added.frame.where(_STALE).drop(_STALE))
    fresh = added.frame.where(f"NOT {_STALE}").drop(_STALE)
    if stale is None:
        return fresh
    return fresh.unionByName(aggregate.run(reading, [aggregate.rows_of(stale, reading)]))
