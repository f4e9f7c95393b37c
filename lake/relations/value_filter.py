"""Filters by the value of a scalar subquery: WHERE day > (SELECT max(day) - 30 FROM t).

Let σ be the filter with the value at `until`, and σ' the one with the value at `since`. Where the value changed,

    changes = σ(A_until) - σ'(A_since) = σ'(ΔA) + σ(A_until) - σ'(A_until)

The last two terms are the rows at `until` for which the two conditions differ. Where a column is compared with the value, these lie between
both values, so files without such rows are not read.

Example: x > 3 becomes x > 5, and 4 and 9 are inserted.

    >>> from tests.relations.twin import bag, difference, plus, shown
    >>> until, delta = bag((4,), (5,), (6,), (9,)), bag((4,), (9,))
    >>> where = lambda rows, least: bag(*[row for row in rows.elements() if row[0] > least])
    >>> shown(plus(where(delta, 3), difference(where(until, 5), where(until, 3))))
    {(5,): -1, (9,): 1}
    >>> shown(difference(where(until, 5), where(difference(until, delta), 3)))
    {(5,): -1, (9,): 1}
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from lake.catalyst.nodes import Expression
from lake.catalyst.thresholds import thresholds
from lake.relations.base import Bounds
from lake.relations.frames import Changes
from lake.relations.linear import Linear
from lake.relations.reading import Reading
from lake.spark import steps, zset
from lake.spark.key_ranges import Ranges, ranges_of

_NOW, _BEFORE = "meets_now", "met_before"


class ValueFilter(Linear):
    """A filter with scalar subqueries in its condition."""

    rule = "applied to the changes"

    def compute_changes(self, reading: Reading) -> Changes | None:
        if all(reading.changes_of(subquery) is None for subquery in self.subqueries.values()):
            return self.own_changes(reading)
        (child,) = self.children
        before, now = (self._condition(reading, since) for since in (True, False))
        rows = child.snapshot_near(_between(before, now, reading), reading)
        parts = [self._differing(rows, before, now, reading)]
        delta = reading.changes_of(child, stored=False)
        if delta is not None:
            parts.append(self.run(reading, [delta.frame], since=True))
        return reading.frames.keep_consolidated(zset.add(parts))

    def _condition(self, reading: Reading, since: bool) -> Expression:
        return reading.catalyst.condition(self.node, {i: reading.value(subquery, since) for i, subquery in self.subqueries.items()})

    def _differing(self, rows: DataFrame, before: Expression, now: Expression, reading: Reading) -> DataFrame:
        """The rows that meet one of two conditions: with weight 1 those that meet it now, -1 those that met it before."""
        both = reading.catalyst.project(rows, {_NOW: now, _BEFORE: before}, keep=True)
        meets, met = (f"coalesce({name}, false)" for name in (_NOW, _BEFORE))
        weight = f"IF({meets}, 1L, -1L) AS {zset.WEIGHT}"
        return steps.over(both, steps.where(f"{meets} <> {met}"), steps.select([*rows.columns, weight]))


def _between(before: Expression, now: Expression, reading: Reading) -> Bounds:
    """A range of a column outside of which the two conditions are the same; none where that is not known."""
    found = thresholds(before, now, reading.catalyst)
    if found is None:
        return ()
    one = reading.catalyst.spark.range(1).toDF("c0")
    ends = [reading.catalyst.project(one, {"k0": end}) for end in (found.before, found.now)]
    (ranges,) = ranges_of(reading.frames.keep_rows(ends[0].unionByName(ends[1])).frame, local=True)
    if ranges is None or ranges.null:
        return ()
    lows, highs = zip(*ranges.intervals, strict=True)
    return ((found.column, Ranges(ranges.data_type, ((min(lows), max(highs)),), null=False)),)
