"""ORDER BY ... LIMIT n [OFFSET m] and rank() OVER (ORDER BY ...) <= n inside a query, refreshed from the first rows of their child, which
the stamp keeps: those that decide what is let through, and some more.

Let H be these rows, b the last of them, and C the rows of H + Δ with a positive weight. A row of the child that is not in H sorts after b,
or as b does. So the rows K of C that sort before b, and those that tie with it, come first in the child as well, and

    op(child at until) = op(K)       if K has n + m rows (of a LIMIT), or if the last row of K has a rank after n

since what comes after K has no smaller rank. Otherwise the child is read in full. Where H is all of the child, so
is C. top.py does the same at a view's root, where the view's table has the first n rows.

Example: the two smallest of all rows, of which three are kept. 1 is deleted, 2 and 7 are inserted. Nothing is known of rows after 5.

    >>> from tests.relations.twin import bag, difference, first, plus, shown
    >>> held, delta = bag((1,), (3,), (5,)), difference(bag((2,), (7,)), bag((1,)))
    >>> known = bag(*[row for row in first(plus(held, delta), 9) if row <= (5,)])
    >>> shown(difference(first(known, 2), first(held, 2)))
    {(1,): -1, (2,): 1}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from lake.catalyst.nodes import Node
from lake.relations.base import Relation
from lake.relations.frames import Changes
from lake.relations.keyed import Keyed
from lake.relations.reading import Reading
from lake.spark import steps, zset

MARGIN = 50
"""Rows beyond those that an operator lets through, at the most."""
ALL = "all"
"""In a stamp: the rows that it keeps are all rows of the child."""
_SHARED = 10
"""Margins that are looked at to find the last row of a rank."""
_CHARACTERS = 8_000
"""Of the rows of one operator in a stamp, at the most. Of an operator with longer rows none are kept."""


@dataclass(frozen=True)
class Known:
    """The first rows of a relation in an order, on the driver; `every`: they are all of its rows."""

    rows: Changes
    every: bool


class FirstRows(Keyed):
    """An operator that lets through the first rows in an order, inside a query. `sort`: the order, over the columns that are kept."""

    looks_up = False

    def __init__(self, node: Node, children: Sequence[Relation], subqueries: Mapping[int, Relation] | None = None, *, sort: Node) -> None:
        super().__init__(node, children, subqueries, keys=[[]])
        self._sort = sort

    @property
    def rule(self) -> str:  # type: ignore[override]
        return "computed from the first rows, which the stamp keeps; recomputed where too few of them remain, or they are too long for it"

    def own_changes(self, reading: Reading) -> Changes | None:
        if reading.changes_of(self.children[0]) is None:
            reading.totals.carry(self.node.margin)
            return None
        known = self._since(reading)
        if known is not None:
            old = known.rows.frame
        else:
            why = f"{self._name} was recomputed: the stamp does not have its first rows"
            reading.budget.recompute_operator(reading.bytes_of(self), why)
            old = self.children[0].snapshot_since(reading)
        new = reading.totals.frame(self, lambda: self._until(known, reading))
        return reading.frames.keep_consolidated(zset.subtract(new, self.run(reading, [old])))

    def snapshot(self, reading: Reading) -> DataFrame:
        """The rows at `until`, computed at once."""
        return reading.totals.frame(self, lambda: self._until(self._since(reading), reading))

    @property
    def _name(self) -> str:
        return "LIMIT" if self.node.kind == "Limit" else "Filter of ranks"

    @property
    def _most(self) -> int:
        """How many rows are looked at: of ranks, which rows may share, so many that they and a margin are likely among them."""
        return self.node.most + (MARGIN if self.node.kind == "Limit" else _SHARED * MARGIN)

    def _since(self, reading: Reading) -> Known | None:
        """The first rows at `since` that the stamp has; None where it has none, or they can't be used."""
        found = None if self.order_dependent or not self._kept(reading) else reading.totals.since.get(self.node.margin)
        if found is None:
            return None
        rows = reading.catalyst.unpacked(found[1] or "", self._sort)
        return Known(reading.frames.keep_rows(rows), found[0] == ALL)

    def _kept(self, reading: Reading) -> bool:
        return self._most < reading.frames.local_limit

    def _until(self, since: Known | None, reading: Reading) -> DataFrame:
        (child,) = self.children
        if since is None:
            return self._of_child(reading)
        delta = reading.changes_of(child)
        if delta is None:
            reading.totals.carry(self.node.margin)
            return self.run(reading, [since.rows.frame])
        rows, known = candidates(since, delta, self._sort, self._most, reading)
        result = self._result(known, reading)
        if result is not None:
            return result
        if since.every:
            return self.run(reading, [rows])
        why = f"{self._name} was recomputed: of its first rows too many were deleted, and too few inserted in their place"
        reading.budget.recompute_operator(reading.bytes_of(self), why, times=1 if self.node.kind == "Limit" else 2)
        return self._of_child(reading)

    def _of_child(self, reading: Reading) -> DataFrame:
        rows = self.children[0].snapshot(reading)
        if self.order_dependent or not self._kept(reading):
            return self.run(reading, [rows])
        first = first_in_order(rows, self._sort, self._most, reading)
        result = self._result(Known(first, (first.count or 0) < self._most), reading)
        return self.run(reading, [rows]) if result is None else result

    def _result(self, known: Known, reading: Reading) -> DataFrame | None:
        """The operator's rows, if these first rows of the child decide what they are: what it needs of them is then noted for the stamp."""
        rows, count = known.rows, known.rows.count or 0
        found = reading.frames.keep_rows(self.run(reading, [rows.frame]))
        ranks = self.node.kind != "Limit"
        let_through = found.count or 0 if ranks else self.node.most
        if not known.every and count < let_through + ranks:
            return None
        room = reading.totals.room(_CHARACTERS)
        text, kept = packed_within(room, rows.frame, (0, let_through, min(count, let_through + MARGIN)), reading)
        reading.totals.keep(self.node.margin, (ALL if known.every and kept == count else "", text), room)
        return found.frame


def packed_within(room: int, frame: DataFrame, places: tuple[int, int, int], reading: Reading) -> tuple[str, int]:
    """(rows of a frame on the driver as a text, the place of their end). `places`: of their start, of the least end, and of the end that
    they have, unless the text is longer than the room: what lies beyond the least end is then halved, until it fits or is gone."""
    start, least, end = places
    while len(text := reading.catalyst.packed(frame, start, end)) + len(ALL) > room and end > least:
        end = least + (end - least) // 2
    return text, end


def first_in_order(rows: DataFrame, sort: Node, most: int, reading: Reading) -> Changes:
    """At the most so many first rows in an order, on the driver."""
    ordered = steps.over(reading.catalyst.run(sort, [rows]), steps.select(a.column for a in sort.output))
    return reading.frames.keep_rows(ordered.limit(most))


def rows_after(since: Known, delta: Changes, sort: Node, reading: Reading) -> DataFrame:
    """Rows that may be among the first at `until`, of those at `since` and the changes."""
    summed = zset.consolidate(zset.add([since.rows.frame, delta.frame]))
    # where not all rows are known, one that is not may be deleted: it sorts after those that are
    rows = zset.to_rows(summed, sort.kind) if since.every else zset.side(summed, 1)
    return reading.frames.keep_rows(rows).frame


def candidates(since: Known, delta: Changes, sort: Node, most: int, reading: Reading) -> tuple[DataFrame, Known]:
    """(`rows_after`, those of them that certainly come first at `until`: at the most so many, and all where these are fewer). The rows at
    `since` are in their order."""
    rows = rows_after(since, delta, sort, reading)
    first = first_in_order(rows, sort, most, reading)
    count = first.count or 0
    if since.every:
        return rows, Known(first, count < most)
    last = reading.frames.keep_rows(since.rows.frame.offset((since.rows.count or 0) - 1)).frame
    with_last = reading.frames.keep_rows(reading.catalyst.run(sort, [first.frame.unionByName(last)])).frame
    known = min(count, reading.catalyst.up_to(with_last, last) - 1)  # without the copy of the last one
    return rows, Known(reading.frames.keep_rows(first.frame.limit(known)), False)
