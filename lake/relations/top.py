"""Refreshes ORDER BY ... LIMIT n at a view's root from the stored rows.

Let H be the n stored rows, b the last of them in the order, and C the rows of H + Δ with a positive weight. A row of the child that is
not in H sorts after b, or is equal to it. So where n rows of C sort no later than b,

    top(child at until) = top(C)

and otherwise (rows of the top were deleted, and too few were inserted) the child is read in full. Spark itself decides which it is: a
copy of b added to C must not make another top. Where H is shorter than n, it is all of the child, and so is C.

Example: n = 2; of the stored rows 1 and 3, 1 is deleted, and 2 is inserted. A copy of the last row, 3, makes no other top.

    >>> from tests.relations.twin import bag, difference, first, plus
    >>> stored, delta = bag((1,), (3,)), difference(bag((2,)), bag((1,)))
    >>> candidates = plus(stored, delta)
    >>> sorted(first(candidates, 2)), first(plus(candidates, bag((3,))), 2) == first(candidates, 2)
    ([(2,), (3,)], True)
    >>> without = plus(stored, difference(bag(), bag((1,))))  # nothing is inserted: the child is read in full
    >>> first(plus(without, bag((3,))), 2) == first(without, 2)
    False
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from lake.catalyst.nodes import Node
from lake.relations.base import Relation
from lake.relations.frames import Changes
from lake.relations.reading import Reading
from lake.relations.stored import Stored
from lake.spark import zset


class Top(Stored):
    """The first `most` rows in an order."""

    def __init__(self, node: Node, children: Sequence[Relation], subqueries: Mapping[int, Relation] | None = None, *, most: int) -> None:
        super().__init__(node, children, subqueries, keys=[[]])
        self.most = most

    @property
    def rule(self) -> str:  # type: ignore[override]
        return "refreshed from the stored rows; recomputed where too few of them remain"

    def renewed(self, stored: DataFrame, delta: Changes, reading: Reading) -> DataFrame:
        """The top of the stored and inserted rows, or of all rows of the child where that may be another."""
        old = reading.frames.keep_rows(stored)
        summed = zset.consolidate(zset.add([old.frame, delta.frame]))
        candidates = reading.frames.keep_rows(zset.side(summed, 1)).frame
        top = reading.frames.keep_rows(self.run(reading, [candidates])).frame
        if old.count is not None and old.count < self.most:
            return top
        last = reading.catalyst.run(self._sort, [old.frame]).offset(self.most - 1)
        other = self.run(reading, [candidates.unionByName(last)])
        if reading.frames.keep_consolidated(zset.subtract(other, top)) is None:
            return top
        reading.budget.reasons.append("LIMIT was recomputed: rows of the top were deleted, and too few were inserted in their place")
        return self.snapshot(reading)

    @property
    def _sort(self) -> Node:
        return Node("Sort", self.node.spine[-1:], self.node.children, self.node.output)
