"""Linear operators: applied to changes, they give changes.

    changes(op(A)) = op(changes(A))            weights pass through
    changes(A ∪ B) = changes(A) + changes(B)

Example: the filter x > 1 over an update of 1 to 2.

    >>> from tests.relations.twin import bag, difference
    >>> changes = difference(bag((2,)), bag((1,)))
    >>> {row: weight for row, weight in changes.items() if row[0] > 1}
    {(2,): 1}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Expression
from lake.relations.base import Bounds, Relation
from lake.relations.frames import Changes
from lake.relations.lookup_keys import Keys
from lake.relations.reading import Reading
from lake.relations.source import renamed
from lake.spark import zset
from lake.spark.key_ranges import Ranges

PASS_THROUGH = frozenset(
    {"Filter", "Sort", "Repartition", "RepartitionByExpression", "RebalancePartitions", "BatchEvalPython", "ArrowEvalPython"}
)
LINEAR = PASS_THROUGH | {"Project", "Generate", "Expand"}
CHEAP = frozenset({"Filter", "Project"})
"""Their result is not stored where it is most of their input, and the input is stored."""


class Linear(Relation):
    """Filter, Project, Generate (explode), Expand (grouping sets): one child, each row by itself."""

    rule = "applied to the changes"

    def own_changes(self, reading: Reading) -> Changes | None:
        changes = reading.changes_of(self.children[0], stored=False)
        if changes is None:
            return None
        result = self.run(reading, [changes.frame])
        if changes.local:
            return reading.frames.keep(result)
        passed = changes.passed or changes.count
        return Changes(result, None, local=False, passed=passed if self.node.kind in CHEAP and not self.subqueries else None)

    def lookup(self, keys: Keys, reading: Reading, exact: bool = True) -> DataFrame:
        """Keys that are expressions over the child's columns are looked up there; the rest is a semi join here."""
        pushed = self.pushed(keys.on, reading.catalyst)
        if not pushed:
            rows = self.snapshot(reading)
        else:
            child_exact = exact and len(pushed) == len(keys.on)
            below = replace(keys.pick(pushed), within=self._within(keys.within, reading.catalyst))
            rows = self.run(reading, [self.children[0].lookup(below, reading, child_exact)])
        return self.restricted(rows, keys, reading) if exact and len(pushed) < len(keys.on) else rows

    def pushed(self, on: Sequence[Expression], catalyst: Catalyst) -> dict[int, Expression]:
        """Position of a key → the same key over the child's output."""
        found = {}
        for i, expression in enumerate(on):
            below = self._below(expression, catalyst)
            if below is not None:
                found[i] = below
        return found

    def snapshot_near(self, bounds: Bounds, reading: Reading) -> DataFrame:
        return self.run(reading, [self.children[0].snapshot_near(self._within(bounds, reading.catalyst), reading)])

    def _within(self, bounds: Bounds, catalyst: Catalyst) -> tuple[tuple[Expression, Ranges], ...]:
        """Of the ranges outside of which no rows are needed, those of columns of the child."""
        found = [(self._below(column, catalyst), ranges) for column, ranges in bounds]
        return tuple((below, ranges) for below, ranges in found if below is not None and below.plain)

    def _below(self, expression: Expression, catalyst: Catalyst) -> Expression | None:
        child = self.children[0].node.output_ids
        match self.node.kind:
            case "Project":
                below = catalyst.below(self.node, expression)
                return None if self.subqueries and catalyst.has_subquery(below) else below
            case "Expand":
                return expression if expression.references <= catalyst.unexpanded(self.node) else None
            case _:  # below a filter or a generator only what can't throw: the rows that they drop are still there (trap 4)
                return expression if expression.attribute is not None and expression.references <= child else None


class UnionAll(Relation):
    """UNION ALL: columns match by position."""

    rule = "applied to the changes of each input"

    def snapshot(self, reading: Reading) -> DataFrame:
        frames = [renamed(c.snapshot(reading), c.node.output, self.output) for c in self.children]
        return _together(frames)

    def own_changes(self, reading: Reading) -> Changes | None:
        found = [(child, reading.changes_of(child, stored=False)) for child in self.children]
        moved = [(child, changes) for child, changes in found if changes is not None]
        if not moved:
            return None
        frame = zset.add(renamed(changes.frame, child.node.output, self.output) for child, changes in moved)
        return Changes(frame, None, local=False)

    def lookup(self, keys: Keys, reading: Reading, exact: bool = True) -> DataFrame:
        frames = []
        for side, child in enumerate(self.children):
            below = keys.pick(dict(enumerate(self.below(keys.on, side, reading.catalyst))))
            frames.append(renamed(child.lookup(below, reading, exact), child.node.output, self.output))
        return _together(frames)

    def below(self, on: Sequence[Expression], side: int, catalyst: Catalyst) -> list[Expression]:
        """Expressions over the union as expressions over one of its children."""
        return [catalyst.moved(e, self.node.output, self.children[side].node.output) for e in on]


def _together(frames: list[DataFrame]) -> DataFrame:
    result = frames[0]
    for frame in frames[1:]:
        result = result.unionByName(frame)
    return result
