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

from lake.catalyst.first_rows import MOST
from lake.catalyst.nodes import Node
from lake.relations import first_rows
from lake.relations.base import Relation
from lake.relations.first_rows import ALL, Known, candidates, first_in_order, packed_within, rows_after
from lake.relations.frames import Changes
from lake.relations.reading import Reading
from lake.relations.stored import Stored
from lake.spark import zset

_CHARACTERS = 4_000
"""Of the margin in a stamp, at the most. Half a margin is kept where all of it is longer."""


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
        first = first_in_order(rows, self._sort, self.most + first_rows.MARGIN, reading)
        return self._parted(Known(first, (first.count or 0) < self.most + first_rows.MARGIN), reading)

    def unchanged(self, reading: Reading) -> None:
        reading.totals.carry(self.node.margin)

    def renewed(self, stored: DataFrame, delta: Changes, reading: Reading) -> DataFrame:
        """The top of the rows held and inserted, or of all rows of the child where that may be another."""
        known = reading.totals.since.get(self.node.margin)
        held = stored.unionByName(reading.catalyst.unpacked(known[1], self.node)) if known is not None and known[1] else stored
        few = self._has_margin(reading)
        old = reading.frames.keep_rows(reading.catalyst.run(self._sort, [held]) if few else held)
        since = Known(old, (known is not None and known[0] == ALL) or (old.count is not None and old.count < self.most))
        if not few:
            return self._of_many(since, delta, reading)
        _, first = candidates(since, delta, self._sort, self.most + first_rows.MARGIN, reading)
        return self._parted(first, reading) if since.every or (first.rows.count or 0) >= self.most else self._recomputed(reading)

    def _of_many(self, since: Known, delta: Changes, reading: Reading) -> DataFrame:
        """The same where the rows are too many for a margin: a copy of the last stored row must not make another top."""
        rows = rows_after(since, delta, self._sort, reading)
        top = reading.frames.keep_rows(self.run(reading, [rows])).frame
        if since.every:
            return top
        last = reading.catalyst.run(self._sort, [since.rows.frame]).offset((since.rows.count or 0) - 1)
        other = self.run(reading, [rows.unionByName(last)])
        if reading.frames.keep_consolidated(zset.subtract(other, top)) is None:
            return top
        return self._recomputed(reading)

    def _recomputed(self, reading: Reading) -> DataFrame:
        reading.budget.reasons.append("LIMIT was recomputed: rows of the top were deleted, and too few were inserted in their place")
        return self.snapshot(reading)

    def _has_margin(self, reading: Reading) -> bool:
        return self.most <= MOST and self.most + first_rows.MARGIN < reading.frames.local_limit

    def _parted(self, first: Known, reading: Reading) -> DataFrame:
        """The top of the first rows; those after it are kept, or half of them, where they are too long."""
        frame, count = first.rows.frame, first.rows.count or 0
        start = min(self.most, count)
        text, end = packed_within(_CHARACTERS, frame, (start, start, count), reading)
        reading.totals.keep(self.node.margin, (ALL if first.every and end == count else "", text), _CHARACTERS)
        return reading.frames.keep_rows(frame.limit(self.most)).frame

    @property
    def _sort(self) -> Node:
        return Node("Sort", self.node.spine[-1:], self.node.children, self.node.output)
