"""NOT IN (also under OR): an anti or existence join by `a = b OR (a = b) IS NULL`, where a NULL on either side matches every row.

If no row that can matter has a NULL there, at either end, `a = b` alone decides, and rule 2 holds by that equality. Otherwise any row may
be affected: the join is recomputed at both ends, or, where only the left side changed, its changes are joined with all of the right side.

Example: 7 is added on the right, which affects the rows of key 7; then NULL, which affects all rows.

    >>> from tests.relations.twin import bag, not_in, shown
    >>> left = bag((6, 'x'), (7, 'y'))
    >>> [shown(not_in(left, right)) for right in (bag((1,)), bag((1,), (7,)), bag((1,), (7,), (None,)))]
    [{(6, 'x'): 1, (7, 'y'): 1}, {(6, 'x'): 1}, {}]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Node
from lake.relations.base import Relation
from lake.relations.frames import Changes
from lake.relations.joins import KeyedJoin
from lake.relations.lookup_keys import Keys
from lake.relations.reading import Reading


class NullAwareJoin(KeyedJoin):
    """A join whose only equalities between the sides are null-aware; `keys` are their two sides."""

    rule = "affected keys: looked up and recomputed; recomputed in full where there is a NULL"

    def __init__(
        self, node: Node, children: Sequence[Relation], subqueries: Mapping[int, Relation] | None = None, *, catalyst: Catalyst
    ) -> None:
        super().__init__(node, children, subqueries, catalyst=catalyst)
        pairs = catalyst.null_aware_keys(node)
        self.keys = (tuple(left for left, _ in pairs), tuple(right for _, right in pairs))
        self.reason = ""

    @property
    def equalities(self) -> tuple[str, ...]:
        return tuple(f"{a} = {b} or NULL" for a, b in zip(*self.keys, strict=True))

    def other(self, side: int, driving: Changes, reading: Reading) -> DataFrame:
        """The rows of one side that rows of the other can match: rows of their keys, all rows where there is a NULL on either side."""
        keys = reading.keys([(driving, self.keys[1 - side])]).pick(dict(enumerate(self.keys[side])))
        child = self.children[side]
        if keys.hold_null() or self._holds_null(side, reading):
            return child.snapshot(reading)
        return child.lookup(keys, reading, exact=False)

    def own_changes(self, reading: Reading) -> Changes | None:
        deltas = [reading.changes_of(child) for child in self.children]
        moved = [(delta, on) for delta, on in zip(deltas, self.keys, strict=True) if delta is not None]
        if deltas[1] is not None and (reading.keys(moved).hold_null() or self._holds_null(0, reading) or self._holds_null(1, reading)):
            return self.recomputed(reading, "there is a NULL in its NOT IN")
        return super().own_changes(reading)

    def _holds_null(self, side: int, reading: Reading) -> bool:
        """Whether a row of one side, at `until`, has a NULL among its keys."""
        found = (self.children[side].lookup(Keys.null(key, reading.catalyst), reading).limit(1) for key in self.keys[side])
        return any(reading.frames.keep(rows) is not None for rows in found)
