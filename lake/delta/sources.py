"""The source tables of a view over one interval: their rows, and their changes.

Changes come from the change data feed, or from the data files and deletion vectors that the interval's commits added and removed
(file_changes.py): whichever reads fewer bytes, and always the files where the feed is off, begins too late, or a commit in between
changed the table's schema, and where the table is small: the rows of its files are held then.
Law: rows(until) = rows(since) + changes, as multisets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from lake.core import cost
from lake.core.snapshots import Snapshot
from lake.core.sql import quoted
from lake.delta.file_changes import NO_FILE_CHANGES, FileChanges, file_changes, rows, rows_held, rows_of_feed
from lake.delta.pinned import Pinned
from lake.delta.schema_history import redefined
from lake.delta.tables import Table, expired
from lake.errors import ExpiredError
from lake.spark import zset
from lake.spark.failures import CALL_ERRORS
from lake.spark.key_ranges import Ranges

_ONE_TASK = 4 << 20
"""Changes of at most this many bytes are read and consolidated in one task, without a shuffle."""


def is_small(pinned: Pinned, found: FileChanges) -> bool:
    """Whether a table and its changed files are so small that the rows of its files are held, and give the changes."""
    return max(pinned.bytes, found.size) <= cost.SMALL_TABLE


def by_files(pinned: Pinned, found: FileChanges) -> bool:
    """Whether a table's changes are read from its data files, not from its change feed."""
    return is_small(pinned, found) or not pinned.has_feed or found.redefined or found.bytes <= found.feed_bytes


class PinnedSources:
    """The source tables over one interval, as relations read them (`relations.reading.Sources`).

    `since` is None for a build, which reads no changes.
    """

    def __init__(self, tables: Mapping[str, Table], pins: Mapping[str, Pinned], since: Snapshot | None) -> None:
        self.tables = dict(tables)
        self.pins = dict(pins)
        self.since = since
        self._file_changes: dict[str, FileChanges] = {}

    def rows(self, source: str, among: Mapping[str, Ranges] | None = None) -> DataFrame:
        """All rows at `until`, with the table's own column names; files without keys of `among` (by column) may be skipped."""
        return self.pins[source].rows() if among is None else self.pins[source].rows_among(among)

    def changes(self, source: str, columns: Sequence[str]) -> DataFrame | None:
        """Weighted rows of the columns (as `c<i>` with `w`) over (since, until]; None if there is no newer version.

        They are consolidated, unless `unconsolidated`.
        """
        pinned = self.pins[source]
        if self.since is None or self.since[source] == pinned.version.number:
            return None
        numbered = _numbered(columns)
        held = self._held(source, numbered)
        if held is not None:
            return held
        try:
            changes = self._changes(source, self.since[source], numbered)
            if self.unconsolidated(source):
                return changes
            one = self.changed_bytes(source) <= _ONE_TASK
            return zset.consolidate(changes.coalesce(1) if one else changes)
        except CALL_ERRORS as error:
            raise self._expired(source, error) from error

    def unconsolidated(self, source: str) -> bool:
        """Whether `changes` are not consolidated: the change feed of one large commit, in which few rows are equal."""
        found = self._changes_of_files(source)
        return found.commits == 1 and self.changed_bytes(source) > _ONE_TASK and not by_files(self.pins[source], found)

    def bytes(self, source: str, among: Mapping[str, Ranges] | None = None) -> int:
        """The size of the table's files at `until`, or of those that `rows` reads for some keys."""
        return self.pins[source].bytes if among is None else self.pins[source].bytes_among(among)

    def changed_bytes(self, source: str) -> int:
        """The size of the files that the table's changes are read from; 0 if there are none."""
        found = self._changes_of_files(source)
        return found.bytes if by_files(self.pins[source], found) else found.feed_bytes

    def changed_share(self, source: str) -> float:
        """The size of the changed files as a share of the table's: 0 for none, 1 for all."""
        return min(1.0, self._changes_of_files(source).size / max(1, self.pins[source].bytes))

    def changed_rows(self, source: str) -> int:
        """A lower bound of the rows inserted and deleted over (since, until], from the log."""
        return self._changes_of_files(source).rows

    def count(self, source: str) -> int | None:
        """How many rows the table has at `until`, None if its files have no statistics."""
        return self.pins[source].count

    def redefined(self, source: str) -> bool:
        """Whether the table's definition changed over (since, until] so that changes can't be read from its files."""
        return self.since is not None and self._changes_of_files(source).redefined and redefined(self.pins[source], self.since[source])

    def _changes(self, source: str, since: int, columns: Sequence[str]) -> DataFrame:
        pinned, found = self.pins[source], self._changes_of_files(source)
        return rows(pinned, found, columns) if by_files(pinned, found) else rows_of_feed(pinned, since, columns)

    def _held(self, source: str, columns: Sequence[str]) -> DataFrame | None:
        """The consolidated changes of a small table, on the driver; None where it is not small, or was redefined."""
        pinned, found = self.pins[source], self._changes_of_files(source)
        if found.redefined or not is_small(pinned, found):
            return None
        changes = rows_held(pinned, found, columns, cost.MOST_LOCAL)
        if changes is None or all(zset.is_bitwise(f.dataType) for f in changes.schema.fields):
            return changes  # rows that are equal bit by bit are one already
        return zset.consolidate(changes)

    def _changes_of_files(self, source: str) -> FileChanges:
        pinned = self.pins[source]
        if self.since is None or self.since[source] == pinned.version.number:
            return NO_FILE_CHANGES
        if source not in self._file_changes:
            try:
                self._file_changes[source] = file_changes(pinned, self.since[source])
            except CALL_ERRORS as error:
                raise self._expired(source, error) from error
        return self._file_changes[source]

    def _expired(self, source: str, error: Exception) -> ExpiredError:
        return expired(self.tables[source], self.since[source] if self.since else -1, self.pins[source].version.number, error)


def _numbered(columns: Sequence[str]) -> list[str]:
    """The columns renamed, so that none collides with the weight or the columns of the feed."""
    return [f"{quoted(name)} AS c{i}" for i, name in enumerate(columns)]
