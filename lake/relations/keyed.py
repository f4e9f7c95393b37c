"""Rule 2, the affected-keys rule, for every keyed operator: outer, semi and anti joins, aggregates, distinct, windows.

Let K be the keys that occur in the children's changes. Then

    changes(op) = op(children.lookup(K, until)) - op(children.lookup(K, since))

since the rows of all other keys are the same at both ends, and cancel. No state, no match counters, no retractions. NULL is a
key like any other here; the operator itself decides what it matches. Where there is no key (a global aggregate, a LIMIT, a
range-only outer join) everything is affected: the operator is recomputed at both ends and subtracted.

Example: count and sum by the first column. A row of key 1 is deleted: only rows of key 1 are read.

    >>> from tests.relations.twin import bag, difference, group, lookup, shown
    >>> until = bag((1, 5), (1, 6), (2, 7))
    >>> delta = difference(bag(), bag((1, 4)))
    >>> new = lookup(until, {1})
    >>> old = difference(new, delta)
    >>> shown(difference(group(new, bag()), group(old, bag())))
    {(1, 2, 11): 1, (1, 3, 15): -1}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Expression, Node
from lake.relations.base import Relation
from lake.relations.frames import Changes
from lake.relations.lookup_keys import Keys
from lake.relations.reading import Reading
from lake.spark import zset


class Keyed(Relation):
    """Any operator whose result for a key depends on the rows of that key only. `keys[i]`: the key expressions over child i; `reason`:
    why there are none."""

    looks_up = True

    def __init__(
        self,
        node: Node,
        children: Sequence[Relation],
        subqueries: Mapping[int, Relation] | None = None,
        *,
        keys: Sequence[Sequence[Expression]],
        reason: str = "",
    ) -> None:
        super().__init__(node, children, subqueries)
        self.keys = tuple(tuple(k) for k in keys)
        self.reason = reason

    @property
    def rule(self) -> str:  # type: ignore[override]
        return "affected keys: looked up and recomputed" if self.keys[0] else "recomputed at both ends"

    def own_changes(self, reading: Reading) -> Changes | None:
        deltas = [reading.changes_of(child) for child in self.children]
        parts = [(delta, on) for delta, on in zip(deltas, self.keys, strict=True) if delta is not None]
        if not parts:
            return None
        if not self.keys[0]:
            return self.recomputed(reading)
        keys = reading.keys(parts)
        new, old = [], []
        for child, on in zip(self.children, self.keys, strict=True):
            rows = reading.frames.keep_rows(child.lookup(keys.pick(dict(enumerate(on))), reading)).frame
            new.append(rows)
            old.append(child.rows_since(reading, rows))
        return reading.frames.keep_consolidated(zset.subtract(self.run(reading, new), self.run(reading, old)))

    def lookup(self, keys: Keys, reading: Reading, exact: bool = True) -> DataFrame:
        """Only keys of the operator itself are looked up in its child; the rest is a semi join on its result."""
        pushed = self.pushed(keys.on, reading.catalyst)
        if not pushed:
            rows = self.snapshot(reading)
        else:
            rows = self.run(reading, [self.children[0].lookup(keys.pick(pushed), reading)])
        return self.restricted(rows, keys, reading) if exact and len(pushed) < len(keys.on) else rows

    def pushed(self, on: Sequence[Expression], catalyst: Catalyst) -> dict[int, Expression]:
        """Position of a looked-up key → the operator's own key that it is."""
        found = {}
        for i, expression in enumerate(on):
            below = catalyst.below(self.node, expression) if self.node.kind == "Aggregate" else expression
            for own in self.keys[0]:
                widened = own.plain and own.attribute == below.attribute
                if widened or catalyst.same(below, own):
                    found[i] = own
        return found
