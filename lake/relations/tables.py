"""Reads source tables for one refresh: changes, rows and lookups, each once, and counts what lookups cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame

from lake.core import cost
from lake.core.phases import phase
from lake.relations.budget import Budget
from lake.relations.frames import Changes, Frames
from lake.relations.lookup_keys import Keys
from lake.spark import zset
from lake.spark.key_ranges import Ranges


class Sources(Protocol):
    """Where source relations read: one pinned interval of the tables that a view reads (delta/)."""

    def rows(self, source: str, among: Mapping[str, Ranges] | None = None) -> DataFrame:
        """All rows at `until`, with the table's own column names; those of files without keys of `among` (by column) may be left out."""

    def changes(self, source: str, columns: Sequence[str]) -> DataFrame | None:
        """Weighted rows of the columns (as c0, c1, ... and `w`) over (since, until]; None if there are none.

        They are consolidated, unless `unconsolidated`.
        """

    def unconsolidated(self, source: str) -> bool:
        """Whether `changes` may contain equal rows and rows that cancel each other."""

    def bytes(self, source: str, among: Mapping[str, Ranges] | None = None) -> int:
        """The size of the table's files at `until`, or of those that `rows` reads for some keys."""

    def changed_bytes(self, source: str) -> int:
        """The size of the files that the table's changes are read from; 0 if there are none."""

    def changed_share(self, source: str) -> float:
        """The size of the files with changes, as a share of the table's: 0 for none, 1 for all."""

    def changed_rows(self, source: str) -> int:
        """A lower bound of the rows inserted and deleted, from the log."""

    def count(self, source: str) -> int | None:
        """How many rows the table has at `until`, None if the log does not say."""


@dataclass
class Tables:
    """The source tables of one refresh. `rows_read`: the changes of sources that were read so far."""

    sources: Sources
    frames: Frames
    budget: Budget
    rows_read: int = 0
    _changes: dict[tuple[str, ...], Changes | None] = field(default_factory=dict)
    _small: dict[object, Changes | None] = field(default_factory=dict)
    _lookups: dict[object, list[tuple[frozenset[object], Changes]]] = field(default_factory=dict)

    @phase("read changes")
    def changes(self, source: str, columns: Sequence[str]) -> Changes | None:
        """A table's changes in some columns (as c0, c1, ...), read once, however often the query reads the table."""
        if (source, *columns) not in self._changes:
            frame = self.sources.changes(source, columns)
            if self.sources.changed_rows(source) > self.frames.local_limit:
                self.frames.expect_many()
            changes = None if frame is None else self.frames.keep(frame)
            if changes is not None and self.sources.unconsolidated(source) and (changes.local or zset.repeats(changes.frame)):
                changes = self.frames.keep_consolidated(changes.frame)
            self._changes[source, *columns] = changes
            self.rows_read += (changes.count or 0) if changes is not None else 0
        return self._changes[source, *columns]

    def rows(self, source: str, among: Mapping[str, Ranges] | None = None) -> DataFrame:
        """Rows of a table at `until`, all or those of files that may hold some keys (by column); their cost is counted."""
        if self.budget.limit:
            self.budget.go_on(cost.of_lookup(self.sources.bytes(source, among)), "reading tables for lookups")
        return self.sources.rows(source, among)

    def small(self, table: object, rows: Callable[[], DataFrame]) -> Changes | None:
        """All rows of a small table, brought to the driver once; None where they are too many."""
        if table not in self._small:
            self._small[table] = self.frames.held(rows())
        return self._small[table]

    def looked_up(self, table: object, keys: Keys, rows: Callable[[], DataFrame], narrowed: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """The `rows` of a table that have some keys, read once: those of an earlier lookup with all of these keys, `narrowed` to them."""
        wanted = keys.values
        if wanted is None:
            return rows()
        earlier = self._lookups.setdefault(table, [])
        for had, found in earlier:
            if wanted <= had:
                return found.frame if wanted == had else narrowed(found.frame)
        found = self.frames.keep_rows(rows())
        earlier.append((wanted, found))
        return found.frame
