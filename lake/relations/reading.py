"""One refresh as its relations see it: source tables, stored frames, the budget, and what each relation computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import DataFrame

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Expression, Literal
from lake.core import cost
from lake.relations.budget import Budget, FallBackToRecompute
from lake.relations.frames import Changes, Frames
from lake.relations.lookup_keys import Keys
from lake.relations.tables import Sources, Tables
from lake.relations.total_rows import TotalRows
from lake.spark.key_ranges import ranges_of

__all__ = ["Cache", "Changes", "Keys", "Reading", "Sources"]


class Cache(Protocol):
    """Rows that lookups found in earlier batches of the real-time path, updated to `until` (lookup_cache.py)."""

    def lookup(self, source: Any, keys: Keys, reading: Reading, looked_up: Callable[[Keys], DataFrame], /) -> DataFrame | None:
        """The rows of a source with one of the keys, None where such keys are not cached; `looked_up`: rows of keys, from the table."""


class Computed(Protocol):
    """What a reading needs of a relation (base.Relation)."""

    @property
    def sources(self) -> Sequence[tuple[object, str]]: ...
    def compute_changes(self, reading: Reading, /) -> Changes | None: ...
    def snapshot(self, reading: Reading, /) -> DataFrame: ...
    def snapshot_since(self, reading: Reading, /) -> DataFrame: ...


@dataclass
class Reading:
    """One refresh. What a relation computed is stored, or a deep tree would compute its leaves again and again (trap 24).

    `local_limit`: the most rows that are brought to the driver; `on_many`: called when there are more; `totals`: what stamps keep.
    """

    catalyst: Catalyst
    sources: Sources
    local_limit: int = cost.MOST_LOCAL
    budget: Budget = field(default_factory=Budget)
    cache: Cache | None = None
    on_many: Callable[[], None] | None = None
    totals: TotalRows = field(default_factory=TotalRows)
    frames: Frames = field(init=False)
    tables: Tables = field(init=False)
    _changes: dict[int, Changes | None] = field(default_factory=dict)
    _values: dict[tuple[int, bool], Literal] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.frames = Frames(self.catalyst, self.local_limit, self.on_many)
        self.tables = Tables(self.sources, self.frames, self.budget)

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *exc: object) -> None:
        self.frames.unpersist()

    def changes_of(self, relation: Computed, stored: bool = True) -> Changes | None:
        """The relation's changes over the interval, computed once. `stored` false: for a caller that reads them once, as they are."""
        if id(relation) not in self._changes:
            self._changes[id(relation)] = relation.compute_changes(self)
        changes = self._changes[id(relation)]
        if changes is not None and stored and not changes.stored:
            changes = self._changes[id(relation)] = self.frames.keep(changes.frame, changes.passed)
        return changes

    def value(self, subquery: Computed, since: bool) -> Literal:
        """The value of a scalar subquery at one end of the interval, computed once."""
        since = since and self.changes_of(subquery) is not None
        if (id(subquery), since) not in self._values:
            rows = subquery.snapshot_since(self) if since else subquery.snapshot(self)
            self._values[id(subquery), since] = self.catalyst.value(rows)
        return self._values[id(subquery), since]

    def small_table(self, table: object, rows: Callable[[], DataFrame], size: int) -> Changes | None:
        """All rows of a table of `size` bytes, brought to the driver once; None where it is too large, or its size is not known."""
        return self.tables.small(table, rows) if 0 < size <= cost.SMALL_TABLE else None

    def fall_back(self, why: FallBackToRecompute) -> None:
        """From here on the query is recomputed, whatever it costs."""
        self.budget.fall_back(why)
        self.totals.forget()
        self._values.clear()
        self.frames.expect_many()

    def bytes_of(self, relation: Computed) -> int:
        """The size of the tables below a relation, each as often as it is read."""
        return sum(self.sources.bytes(source) for _, source in relation.sources)

    def keys(self, parts: Sequence[tuple[Changes, Sequence[Expression]]]) -> Keys:
        """The keys that occur in changes: for each part the values of its expressions, all parts together.

        The keys' `on` are the first part's expressions; `pick` moves them to another relation.
        """
        frames = [self.catalyst.project(changes.frame, {f"k{i}": e for i, e in enumerate(on)}) for changes, on in parts]
        frame = frames[0]
        for other in frames[1:]:
            frame = frame.unionByName(other)
        local = all(changes.local for changes, _ in parts)
        if not local:  # many changes may still be of few keys
            distinct = self.frames.keep_rows(frame.distinct())
            frame, local = distinct.frame, distinct.local
        return Keys(tuple(parts[0][1]), frame, ranges_of(frame, local), local)
