"""Windows that look a limited way: the affected-keys rule (keyed.py), for the rows near a change only.

Let every frame be RANGE BETWEEN a PRECEDING AND f FOLLOWING. A row whose order is x is in the frames of rows with an order from x - f to
x + a, and these see rows from x - f - a to x + a + f. So with K the partitions of the child's changes, and x each of their orders,

    changes(op) = op(child.lookup(K, until) near x) - op(child.lookup(K, since) near x)       rows of x - f ... x + a only

Rows between the two ranges see only a part of their frames: their results are dropped on both sides. What is appended to a long history
costs as much as the frames are long, and a source that has its files in the window's order is read there only. Without PARTITION BY (or
where it can't be looked up) all rows are read, and those near x are computed.

Example: sums over the last 10 (a = 10, f = 0). 25 is inserted: rows from 25 to 35 change, and for these those from 15 on are read.

    >>> order = [1, 12, 20, 25]
    >>> total = lambda rows, at: sum(x for x in rows if at - 10 <= x <= at)
    >>> near = [x for x in order if 25 - 10 <= x <= 25 + 10]
    >>> near, [total(near, at) for at in near if 25 <= at <= 35], total(order, 25)
    ([20, 25], [45], 45)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lake.catalyst.nodes import Expression, Node, column_name
from lake.catalyst.window_range import WindowRange
from lake.relations.base import Relation
from lake.relations.frames import Changes
from lake.relations.keyed import Keyed
from lake.relations.reading import Reading
from lake.spark import steps, zset
from lake.spark.key_ranges import ranges_of


class RangedWindow(Keyed):
    """A window of which each row sees the rows of its partition up to some distance in the order."""

    def __init__(
        self,
        node: Node,
        children: Sequence[Relation],
        subqueries: Mapping[int, Relation] | None = None,
        *,
        keys: Sequence[Expression],
        looked: WindowRange,
    ) -> None:
        super().__init__(node, children, subqueries, keys=[keys])
        self.looked = looked

    @property
    def rule(self) -> str:  # type: ignore[override]
        return f"{'affected keys' if self.keys[0] else 'all rows'}: those within reach of its frames looked up and recomputed"

    def own_changes(self, reading: Reading) -> Changes | None:
        (child,), order = self.children, self.looked.order
        delta = reading.changes_of(child)
        if delta is None:
            return None
        (moved,) = ranges_of(reading.catalyst.project(delta.frame, {"k0": order}), delta.local)
        if moved is None or order.attribute is None:
            return super().own_changes(reading)
        before, after, column = self.looked.before, self.looked.after, column_name(order.attribute)
        affected, seen = moved.widened(before, after), moved.widened(before + after, before + after)
        if self.keys[0]:
            found = child.lookup(replace(reading.keys([(delta, self.keys[0])]), within=((order, seen),)), reading)
        else:
            found = child.snapshot(reading)
        rows = reading.frames.keep_rows(steps.over(found, steps.where(seen.condition(column)))).frame
        sides = [self.run(reading, [side]) for side in (rows, child.rows_since(reading, rows))]
        new, old = (steps.over(side, steps.where(affected.condition(column))) for side in sides)
        return reading.frames.keep_consolidated(zset.subtract(new, old))
