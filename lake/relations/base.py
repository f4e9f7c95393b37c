"""What a relation is.

    snapshot(reading)         all rows at `until`
    lookup(keys, reading)     the rows at `until` whose key expressions are among `keys`
    changes(reading)          weighted rows over (since, until], None where there are none

under one law, which each relation's tests check:

    snapshot(until) = snapshot(since) + changes(since, until)        as multisets

Read from the other end, it says that the old side never needs to be read:

    lookup(keys, since) = lookup(keys, until) - changes restricted to keys

Example: the row 1 is replaced by 2.

    >>> from tests.relations.twin import bag, difference, plus, shown
    >>> since, until = bag((1,), (3,)), bag((2,), (3,))
    >>> changes = difference(until, since)
    >>> shown(changes)
    {(1,): -1, (2,): 1}
    >>> plus(since, changes) == until
    True
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import DataFrame

from lake.catalyst.nodes import Attribute, Expression, Node
from lake.relations.frames import Changes
from lake.relations.lookup_keys import Keys
from lake.relations.reading import Reading
from lake.spark import zset
from lake.spark.key_ranges import Ranges, null_safe

Bounds = Sequence[tuple[Expression, Ranges]]
"""Columns of a relation, and ranges of their values."""


class Relation(ABC):
    """One node of a view's tree with its child relations. Immutable; what a refresh computes is stored in its `Reading`.

    `order_dependent`: what in it, or below it, makes its rows depend on the order of its inputs' rows, empty where nothing does: its
    rows at `since` can then not be recomputed, and `own_changes` must not be called (see order_dependent.py). `looks_up`: whether its
    changes need more than the changes of its children.
    """

    rule = ""
    reason = ""
    looks_up = False

    def __init__(self, node: Node, children: Sequence[Relation], subqueries: Mapping[int, Relation] | None = None) -> None:
        self.node = node
        self.children = tuple(children)
        self.subqueries = dict(subqueries or {})
        inner = (r.order_dependent for r in [*self.children, *self.subqueries.values()] if r.order_dependent)
        self.order_dependent: str = node.order_dependent or next(inner, "")

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.node.output

    def walk(self) -> Iterator[Relation]:
        """This relation and all below it, outermost first, with those in its subqueries."""
        yield self
        for inner in (*self.children, *self.subqueries.values()):
            yield from inner.walk()

    @property
    def sources(self) -> list[tuple[Relation, str]]:
        """The source tables below, each as often as it is read: (relation, name)."""
        return [(r, r.node.source) for r in self.walk() if r.node.source is not None]

    @abstractmethod
    def own_changes(self, reading: Reading) -> Changes | None:
        """The relation's changes, where the values of its subqueries did not change."""

    @abstractmethod
    def lookup(self, keys: Keys, reading: Reading, exact: bool = True) -> DataFrame:
        """The rows at `until` whose key expressions are among `keys`; more than those only where not `exact`."""

    def snapshot(self, reading: Reading) -> DataFrame:
        """All rows at `until`."""
        return self.run(reading, [child.snapshot(reading) for child in self.children])

    def snapshot_near(self, bounds: Bounds, reading: Reading) -> DataFrame:
        """All rows at `until`; those with a value outside of some columns' bounds may be left out."""
        return self.snapshot(reading)

    def snapshot_since(self, reading: Reading) -> DataFrame:
        """All rows at `since`, from the newer end (the law, read backwards)."""
        return self.rows_since(reading, self.snapshot(reading))

    def rows_since(self, reading: Reading, rows: DataFrame) -> DataFrame:
        """The rows at `since` of some rows at `until`, which must include all rows of each key that changed."""
        changes = reading.changes_of(self)
        if changes is None:
            return rows
        return zset.to_rows(zset.difference(rows, changes.frame), self.node.kind)

    def compute_changes(self, reading: Reading) -> Changes | None:
        """The relation's changes by its rule, or recomputed where a subquery in its expressions has another value now."""
        if any(reading.changes_of(subquery) is not None for subquery in self.subqueries.values()):
            return self.recomputed(reading)
        return self.own_changes(reading)

    def recomputed(self, reading: Reading, reason: str = "the value of a subquery changed") -> Changes | None:
        """op(children at until) - op(children at since): exact for every operator, as expensive as running it twice.

        Raises FallBackToRecompute where the whole query would be cheaper: it is run once.
        """
        size = sum(reading.bytes_of(child) for child in self.children)  # what its subqueries read, they count themselves
        reading.budget.recompute_operator(size, f"{self.node.kind} was recomputed: {self.reason or reason}")
        new = self.run(reading, [child.snapshot(reading) for child in self.children])
        old = self.run(reading, [child.snapshot_since(reading) for child in self.children], since=True)
        return reading.frames.keep_consolidated(zset.subtract(new, old))

    def run(self, reading: Reading, frames: Sequence[DataFrame], since: bool = False) -> DataFrame:
        """Spark's own operator on the given rows, with the values of its subqueries at `until` (or at `since`)."""
        values = {i: reading.value(subquery, since) for i, subquery in self.subqueries.items()}
        return reading.catalyst.run(self.node, frames, values)

    def restricted(self, rows: DataFrame, keys: Keys, reading: Reading) -> DataFrame:
        """The rows whose key expressions are among the keys: a null-safe left semi join."""
        safe = [null_safe(ranges) for ranges in keys.ranges]
        return reading.catalyst.among(rows, keys.on, keys.frame, safe, keys.local)
