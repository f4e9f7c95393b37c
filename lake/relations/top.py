"""Refreshes ORDER BY ... LIMIT n at a view's root from the stored rows, and from some rows after them, which the stamp keeps: the margin.

Let H be the stored rows and the margin, together the first rows of the child in the order, b the last of them, and C the rows of H + Δ with
a positive weight. A row of the child that is not in H sorts after b, or is equal to it. So where n rows of C sort no later than b,

    top(child at until) = top(C)

and those after the n-th that sort no later than b are the next margin. Otherwise (more rows of H were deleted than the margin and Δ had to
give) the child is read in full. Where H is all of the child, so is C.

Example: n = 2, and the margin has one row. Of the rows 1, 3 and 5, 1 is deleted, and 2 and 7 are inserted. Nothing is known of rows
after 5, so the 7 is not kept.

    >>> from tests.relations.twin import bag, difference, first, plus
    >>> held, delta = bag((1,), (3,), (5,)), difference(bag((2,), (7,)), bag((1,)))
    >>> candidates = first(plus(held, delta), 9)
    >>> known = [row for row in sorted(candidates) if row <= (5,)]
    >>> known[:2], known[2:]
    ([(2,), (3,)], [(5,)])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from lake.catalyst.nodes import Node
from lake.relations.base import Relation
from lake.relations.frames import Changes
from lake.relations.reading import Reading
from lake.relations.stored import Stored
from lake.spark import steps, zset

_MARGIN = 50
"""Rows of the margin, at the most."""
_CHARACTERS = 4_000
"""Of the margin in a stamp, at the most. Half a margin is kept where all of it is longer."""
_MOST = 1_000
"""Of a larger LIMIT no margin is kept, and its rows are not brought to the driver."""
_ALL = "all"
"""In a stamp: stored rows and margin are all rows of the child."""


class Top(Stored):
    """The first `most` rows in an order."""

    def __init__(self, node: Node, children: Sequence[Relation], subqueries: Mapping[int, Relation] | None = None, *, most: int) -> None:
        super().__init__(node, children, subqueries, keys=[[]])
        self.most = most

    @property
    def rule(self) -> str:  # type: ignore[override]
        return "refreshed from the stored rows and some that the stamp keeps; recomputed where too few of them remain"

    def snapshot(self, reading: Reading) -> DataFrame:
        """The first rows of the child; those after them are kept."""
        rows = self.children[0].snapshot(reading)
        if not self._has_margin(reading):
            return self.run(reading, [rows])
        first = self._first(rows, reading)
        return self._parted(first, first.count or 0, self._is_all(first), reading)

    def unchanged(self, reading: Reading) -> None:
        reading.totals.carry(self.node.margin)

    def renewed(self, stored: DataFrame, delta: Changes, reading: Reading) -> DataFrame:
        """The top of the rows held and inserted, or of all rows of the child where that may be another."""
        known = reading.totals.since.get(self.node.margin)
        held = stored.unionByName(reading.catalyst.unpacked(known[1], stored)) if known is not None and known[1] else stored
        old = reading.frames.keep_rows(held)
        summed = zset.consolidate(zset.add([old.frame, delta.frame]))
        every = (known is not None and known[0] == _ALL) or (old.count is not None and old.count < self.most)
        # where not all rows are known, one that is not may be deleted: it sorts after those that are
        rows = zset.to_rows(summed, self.node.kind) if every else zset.side(summed, 1)
        candidates = reading.frames.keep_rows(rows).frame
        last = None if every else reading.catalyst.run(self._sort, [old.frame]).offset((old.count or 0) - 1)
        if not self._has_margin(reading):
            return self._of_many(candidates, last, reading)
        first = self._first(candidates, reading)
        if last is None:
            return self._parted(first, first.count or 0, self._is_all(first), reading)
        last = reading.frames.keep_rows(last).frame
        with_last = reading.frames.keep_rows(reading.catalyst.run(self._sort, [first.frame.unionByName(last)])).frame
        known_rows = reading.catalyst.up_to(with_last, last) - 1  # without the copy
        if known_rows < self.most:
            return self._recomputed(reading)
        return self._parted(first, min(known_rows, first.count or 0), False, reading)

    def _of_many(self, candidates: DataFrame, last: DataFrame | None, reading: Reading) -> DataFrame:
        """The same where the rows are too many for a margin: a copy of the last stored row must not make another top."""
        top = reading.frames.keep_rows(self.run(reading, [candidates])).frame
        if last is None:
            return top
        other = self.run(reading, [candidates.unionByName(last)])
        if reading.frames.keep_consolidated(zset.subtract(other, top)) is None:
            return top
        return self._recomputed(reading)

    def _recomputed(self, reading: Reading) -> DataFrame:
        reading.budget.reasons.append("LIMIT was recomputed: rows of the top were deleted, and too few were inserted in their place")
        return self.snapshot(reading)

    def _has_margin(self, reading: Reading) -> bool:
        return self.most <= _MOST and self.most + _MARGIN < reading.frames.local_limit

    def _first(self, rows: DataFrame, reading: Reading) -> Changes:
        """The first rows in the order, on the driver: those of the top, and as many as a margin has."""
        ordered = steps.over(reading.catalyst.run(self._sort, [rows]), steps.select(a.column for a in self.output))
        return reading.frames.keep_rows(ordered.limit(self.most + _MARGIN))

    def _is_all(self, first: Changes) -> bool:
        return (first.count or 0) < self.most + _MARGIN

    def _parted(self, first: Changes, end: int, every: bool, reading: Reading) -> DataFrame:
        """The top of the first rows; those after it, up to `end`, are kept. `every`: that is all of the child."""
        start = min(self.most, end)
        while len(text := reading.catalyst.packed(first.frame, start, end)) + len(_ALL) > _CHARACTERS:
            end, every = start + (end - start) // 2, False
        reading.totals.keep(self.node.margin, (_ALL if every else "", text), _CHARACTERS)
        return reading.frames.keep_rows(first.frame.limit(self.most)).frame

    @property
    def _sort(self) -> Node:
        return Node("Sort", self.node.spine[-1:], self.node.children, self.node.output)
