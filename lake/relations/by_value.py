"""Filters and projections by the value of a scalar subquery: WHERE day > (SELECT max(day) - 30 FROM t).

Let op be the operator with the value at `until`, and op' the one with the value at `since`. Where the value changed,

    changes = op(A_until) - op'(A_since) = op'(ΔA) + op(A_until) - op'(A_until)

The last two terms come from the rows at `until` for which the two operators differ: they are read once, and the others are dropped at once.
Where a filter compares a column with the value, they lie between both values, so files without such rows are not read.

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

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from lake.catalyst.nodes import Expression, Literal
from lake.catalyst.thresholds import thresholds
from lake.relations.base import Bounds
from lake.relations.frames import Changes
from lake.relations.linear import Linear
from lake.relations.reading import Reading
from lake.spark import steps, zset
from lake.spark.failures import SPARK_ERRORS, of_rows
from lake.spark.key_ranges import Ranges, ranges_of
from lake.spark.zset import is_bitwise

Values = Mapping[int, Literal]
"""The values of subqueries by their expression ids."""


class ByValue(Linear):
    """One with scalar subqueries in its expressions."""

    def compute_changes(self, reading: Reading) -> Changes | None:
        if all(reading.changes_of(subquery) is None for subquery in self.subqueries.values()):
            return self.own_changes(reading)
        before, now = ({i: reading.value(subquery, since) for i, subquery in self.subqueries.items()} for since in (True, False))
        changed = [i for i in self.subqueries if not reading.catalyst.same_bits(before[i], now[i])]
        if not changed:
            return self.own_changes(reading)
        if len(changed) > 1 or reading.catalyst.equal(before[changed[0]], now[changed[0]]):
            # Catalyst may take the expressions with the values before and now for the same, and evaluate one for both: it reorders sums, in
            # which two values may have changed places
            return self.recomputed(reading)
        try:
            return self._changes(before, now, reading)
        except SPARK_ERRORS as error:
            if not of_rows(error):
                raise
            return self.recomputed(reading)  # rows of one end fail with the value of the other

    def _changes(self, before: Values, now: Values, reading: Reading) -> Changes | None:
        parts = [self.differing(before, now, reading)]
        delta = reading.changes_of(self.children[0], stored=False)
        if delta is not None:
            parts.append(self.run(reading, [delta.frame], since=True))
        return reading.frames.keep_consolidated(zset.add(parts))

    @abstractmethod
    def differing(self, before: Values, now: Values, reading: Reading) -> DataFrame:
        """op(A_until) - op'(A_until), weighted; rows that are the same in both may be left out."""


class ValueFilter(ByValue):
    """A filter."""

    def differing(self, before: Values, now: Values, reading: Reading) -> DataFrame:
        old, new = (reading.catalyst.condition(self.node, values) for values in (before, now))
        rows = self.children[0].snapshot_near(_between(old, new, reading), reading)
        both = reading.catalyst.project(rows, {"n0": new, "o0": old}, keep=True)
        meets, met = ("coalesce(n0, false)", "coalesce(o0, false)")
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


class ValueProject(ByValue):
    """A projection."""

    def differing(self, before: Values, now: Values, reading: Reading) -> DataFrame:
        old, new = (reading.catalyst.projected(self.node, values) for values in (before, now))
        rows = self.children[0].snapshot(reading)
        named = {f"n{i}": e for i, e in enumerate(new)} | {f"o{i}": e for i, e in enumerate(old)}
        both = reading.catalyst.project(rows, named)
        made = self._made(reading)
        changed = [f"NOT n{i} <=> o{i}" for i in made if is_bitwise(reading.catalyst.type_of(new[i]))]
        every = len(changed) < len(made)  # a column whose equal values may be different ones
        columns = {a.column: i for i, a in enumerate(self.output)}
        structs = [_struct([f"{end}{i} AS {column}" for column, i in columns.items()], weight) for end, weight in (("n", 1), ("o", -1))]
        kept = [] if every else [steps.where(" OR ".join(changed))]
        return steps.over(both, *kept, steps.select([f"inline(array({', '.join(structs)}))"]))

    def _made(self, reading: Reading) -> list[int]:
        """The places of the columns with a subquery in them."""
        return [i for i, e in enumerate(reading.catalyst.expressions(self.node.plan.projectList())) if reading.catalyst.has_subquery(e)]


def _struct(columns: Sequence[str], weight: int) -> str:
    return f"struct({', '.join([*columns, f'{weight}L AS {zset.WEIGHT}'])})"
