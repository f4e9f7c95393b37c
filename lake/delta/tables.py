"""The only reader of Delta tables: heads, pinned rows, changes over an interval, retention.

Changes come from the change data feed, or from the data files and deletion vectors that the interval's commits added and removed
(deltafiles.py): whichever reads fewer bytes, and always the files where the feed is off, begins too late, or a commit in between
changed the table's schema.
Law: rows(until) = rows(since) + changes, as multisets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lake.core.kinds import PathKind
from lake.core.snapshots import Snapshot, Version
from lake.core.sql import quoted
from lake.delta.file_changes import NOTHING, Moved, moved, rows, rows_of_feed
from lake.delta.log import Log, Pinned
from lake.delta.schema_history import redefined
from lake.errors import ExpiredError, SourceError
from lake.spark import zset
from lake.spark.key_ranges import Ranges

_DAY = timedelta(days=1)
_MEANT = 'If that is meant, run "lakejoin rebuild VIEW" for the views that read it.'
_ONE_TASK = 4 << 20
"""Changes in files of no more bytes are read and added up in one task, without a shuffle."""
_BACK = (1, 10, 100)
"""How many commits back the newest is looked for that changes rows: so many at once, then more."""


@dataclass(frozen=True)
class Table:
    """Where a table is: a path or a catalog name, under the name that queries give it. `kind`: of a view's, the path that it belongs to."""

    label: str
    path: str | None
    name: str | None
    primary_key: tuple[str, ...] = ()
    kind: PathKind = "strong"

    def __str__(self) -> str:
        return f"{self.label} ({self.path or self.name})"

    @property
    def sql(self) -> str:
        """The table in a SQL statement."""
        return f"delta.`{self.path}`" if self.path is not None else str(self.name)

    @property
    def anew(self) -> str:
        """The command that makes a view's table anew."""
        verb = {"strong": "rebuild {}", "eventual": "realtime {} --reset", "replay": "backfill {} --restart"}[self.kind]
        return f"lakejoin {verb.format(self.label)}"

    @property
    def first(self) -> str:
        """The command that makes a view's table at first."""
        verb = {"strong": "refresh", "eventual": "realtime", "replay": "backfill"}[self.kind]
        return f"lakejoin {verb} {self.label}"

    @property
    def eventual(self) -> bool:
        """Whether it is a view's real-time table."""
        return self.kind == "eventual"

    def log(self, spark: SparkSession) -> Log:
        """The table's log. Raises SourceError where there is no Delta table."""
        try:
            log = Log(spark, self.path, self.name)
            exists = log.exists
        except (PySparkException, Py4JJavaError) as error:
            raise SourceError(f"{self} can't be opened: {reason(error)}. Check `tables.{self.label}` in the configuration.") from error
        if not exists:
            raise SourceError(
                f"{self} is not a Delta table: there is no transaction log. Check `tables.{self.label}` in the configuration, "
                "or create the table first."
            )
        return log

    def head(self, spark: SparkSession) -> Pinned:
        """The table's newest version. Raises SourceError."""
        log = self.log(spark)
        try:
            return log.head()
        except (PySparkException, Py4JJavaError) as error:
            raise SourceError(f"The log of {self} can't be read: {reason(error)}.") from error


def by_files(pinned: Pinned, found: Moved) -> bool:
    """Whether a table's changes are read from its data files, not from its change feed."""
    return not pinned.has_feed or found.redefined or found.bytes <= found.feed_bytes


def snapshot_of(pins: Mapping[str, Pinned]) -> Snapshot:
    """The vector of the pinned versions."""
    return Snapshot({label: pinned.version for label, pinned in pins.items()})


def marked(snapshot: Snapshot, pins: Mapping[str, Pinned]) -> Snapshot:
    """A snapshot of the pinned versions with the marks of their commits, as a stamp keeps it. Raises SourceError."""
    return Snapshot({label: replace(v, mark=_mark(label, pins[label], v.number)) for label, v in snapshot.versions.items()})


def _mark(table: Table | str, pinned: Pinned, number: int) -> str:
    try:
        return pinned.log.mark(number)
    except Py4JJavaError as error:
        raise SourceError(f"Version {number} of the log of {table} can't be read: {reason(error)}.") from error


def pin_at(pinned: Pinned, label: str, until: int | datetime, or_first: bool = False) -> Pinned:
    """The table at an older version or time (`or_first`: at its oldest, where it was not there yet).

    Raises SourceError, or ExpiredError where it can't be read any more.
    """
    newest = pinned.version.number
    try:
        number = until if isinstance(until, int) else pinned.log.version_at(until, or_first)
        if number == newest:
            return pinned
        if number > newest or number < 0:
            raise SourceError(f"{label} has no version {number}: its newest is {newest}.")
        return pinned.log.at(number)
    except (PySparkException, Py4JJavaError) as error:
        raise ExpiredError(
            f"{label} {'version' if isinstance(until, int) else 'as of'} {until} can no longer be read ({reason(error)}). "
            f"Its newest version is {newest}."
        ) from error


class PinnedSources:
    """The source tables over one interval, as relations read them (`relations.reading.Sources`).

    `since` is None for a build, which reads no changes.
    """

    def __init__(self, tables: Mapping[str, Table], pins: Mapping[str, Pinned], since: Snapshot | None) -> None:
        self.tables = dict(tables)
        self.pins = dict(pins)
        self.since = since
        self._moved: dict[str, Moved] = {}

    def rows(self, source: str, among: Mapping[str, Ranges] | None = None) -> DataFrame:
        """All rows at `until`, with the table's own column names; those of files without keys of `among` (by column) may be left out."""
        return self.pins[source].rows() if among is None else self.pins[source].rows_among(among)

    def changes(self, source: str, columns: Sequence[str]) -> DataFrame | None:
        """Weighted rows of the columns (as `c<i>` with `w`) over (since, until]; None if no version passed.

        Consolidated, unless they are `raw`.
        """
        pinned = self.pins[source]
        if self.since is None or self.since[source] == pinned.version.number:
            return None
        try:
            changes = self._changes(source, self.since[source], _numbered(columns))
            if self.raw(source):
                return changes
            one = self.moved(source) <= _ONE_TASK
            return zset.consolidate(changes.coalesce(1) if one else changes)
        except (PySparkException, Py4JJavaError) as error:
            raise self._expired(source, error) from error

    def raw(self, source: str) -> bool:
        """Whether `changes` are what one large commit has in the change feed: of these few add up, unless it wrote rows as they were."""
        found = self._moved_files(source)
        return found.commits == 1 and self.moved(source) > _ONE_TASK and not by_files(self.pins[source], found)

    def bytes(self, source: str, among: Mapping[str, Ranges] | None = None) -> int:
        """The size of the table's files at `until`, or of those that `rows` reads for some keys."""
        return self.pins[source].bytes if among is None else self.pins[source].bytes_among(among)

    def moved(self, source: str) -> int:
        """The size of the files that the table's changes are read from; 0 where there are none."""
        found = self._moved_files(source)
        return found.bytes if by_files(self.pins[source], found) else found.feed_bytes

    def spread(self, source: str) -> float:
        """The files that changes lie in, by size, as a share of the table's: 0 for none, 1 for all."""
        return min(1.0, self._moved_files(source).size / max(1, self.pins[source].bytes))

    def changed(self, source: str) -> int:
        """How many rows came and went over (since, until] at the least, as far as the log says."""
        return self._moved_files(source).rows

    def count(self, source: str) -> int | None:
        """How many rows the table has at `until`, None where its files carry no statistics."""
        return self.pins[source].count

    def redefined(self, source: str) -> bool:
        """Whether the table was defined anew over (since, until], so that changes can't be told from its files."""
        return self.since is not None and self._moved_files(source).redefined and redefined(self.pins[source], self.since[source])

    def _changes(self, source: str, since: int, columns: Sequence[str]) -> DataFrame:
        pinned, found = self.pins[source], self._moved_files(source)
        return rows(pinned, found, columns) if by_files(pinned, found) else rows_of_feed(pinned, since, columns)

    def _moved_files(self, source: str) -> Moved:
        pinned = self.pins[source]
        if self.since is None or self.since[source] == pinned.version.number:
            return NOTHING
        if source not in self._moved:
            try:
                self._moved[source] = moved(pinned, self.since[source])
            except (PySparkException, Py4JJavaError) as error:
                raise self._expired(source, error) from error
        return self._moved[source]

    def _expired(self, source: str, error: Exception) -> ExpiredError:
        return expired(self.tables[source], self.since[source] if self.since else -1, self.pins[source].version.number, error)


def expired(table: Table | str, since: int, until: int, error: Exception) -> ExpiredError:
    """The error for an interval whose commits, or their files, are gone."""
    return ExpiredError(
        f"{table} versions {since + 1} to {until} can no longer be read ({reason(error)}). "
        'Run "lakejoin rebuild VIEW" for the views that read it.'
    )


def way_of(pinned: Pinned) -> str:
    """How a table's changes are read; of the two, whichever reads fewer bytes."""
    return "change data feed or data files" if pinned.has_feed else "data files"


def _numbered(columns: Sequence[str]) -> list[str]:
    """The columns under names of ours, so that none can collide with the weight's or the feed's own."""
    return [f"{quoted(name)} AS c{i}" for i, name in enumerate(columns)]


def check_identity(table: Table, pinned: Pinned, since: Version) -> None:
    """Raise SourceError where the log is not the one that was read before (trap 20).

    CREATE OR REPLACE gives a new id while versions go on: an ordinary change, if its commit lies within the interval. A backup that was
    put back has the same id; while it has not so many commits as were read, that is seen here, later by `check_history`.
    """
    here = pinned.version
    if here.table_id == since.table_id:
        newest = here.number if here.number >= since.number else pinned.log.head().version.number  # as it is now: others may refresh, too
        if newest < since.number:
            raise SourceError(
                f"{table} was put back: version {since.number} was read of it, and its newest is {newest} now, under the same id. {_MEANT}"
            )
        return
    if here.number >= since.number:
        try:
            ids = [c.table_id for c in pinned.log.commits(since.number, here.number) if c.table_id is not None]
        except (PySparkException, Py4JJavaError) as error:
            raise expired(table, since.number, here.number, error) from error
        if here.table_id in ids and _was(pinned, since):
            return
    raise SourceError(
        f"{table} was replaced: version {since.number} was read of table id {since.table_id}, now it is version {here.number} of "
        f"{here.table_id}. {_MEANT}"
    )


def check_same(table: Table, pinned: Pinned, since: Version) -> None:
    """Raise SourceError where the log is not the one that version `since` was read of, as far as can be told."""
    check_identity(table, pinned, since)
    check_history(table, pinned, since)


def check_history(table: Table, pinned: Pinned, since: Version) -> None:
    """Raise SourceError where the log's commit of the version that was read is another one: a backup was put back, or the folder is a copy,
    and other commits came since."""
    there = _mark(table, pinned, since.number) if since.mark else ""
    if there and there != since.mark:
        raise SourceError(
            f"{table} has another history now (a backup put back, or a copy, with commits of its own): version {since.number} of it is not "
            f"the commit that was read. {_MEANT}"
        )


def _was(pinned: Pinned, since: Version) -> bool:
    """Whether the log's version of that number is of the same table, as far as it can still be read: a table made again may have
    versions as high, one of which defines it anew."""
    with suppress(PySparkException, Py4JJavaError):
        return pinned.log.at(since.number).version.table_id == since.table_id
    return True


def expires_in(pinned: Pinned, since: int, now: datetime) -> timedelta | None:
    """How long until the commits since+1.. may be cleaned from the log (or vacuumed); None where nothing is waiting."""
    until = pinned.version.number
    if since >= until:
        return None
    committed = committed_after(pinned, since)
    if committed is None:
        return timedelta(0)
    return committed + changes_kept(pinned) - now


def changes_kept(pinned: Pinned) -> timedelta:
    """How long a change stays readable: until its commit may be cleaned from the log, or its files vacuumed."""
    return min(_duration(pinned.properties, "delta.logRetentionDuration", 30), files_kept(pinned.properties))


def feed_gap(pinned: Pinned, since: int) -> str:
    """Why the change data feed can't be read for the commits since+1.. up to the pinned one; empty where it can, or none is waiting."""
    if since >= pinned.version.number:
        return ""
    try:
        rows_of_feed(pinned, since, [])
    except (PySparkException, Py4JJavaError) as error:
        return reason(error)
    return ""


def committed_after(pinned: Pinned, since: int) -> datetime | None:
    """When the first commit after version `since` was made, None where it is no longer in the log."""
    try:
        first = next(iter(pinned.log.commits(since, since + 1)))
    except (PySparkException, Py4JJavaError):
        return None
    return first.time


def changed_last(pinned: Pinned) -> datetime:
    """When the newest commit that changes rows was made (OPTIMIZE does not); where none of those looked at does: the oldest of them."""
    until, found = pinned.version.number, pinned.time
    for back in _BACK:
        try:
            commits = list(pinned.log.commits(max(-1, until - back), until))
        except (PySparkException, Py4JJavaError):  # the log does not reach back so far
            break
        changing = [commit for commit in commits if commit.changes_data]
        if changing:
            return changing[-1].time
        found = commits[0].time
    return found


def files_kept(properties: Mapping[str, str]) -> timedelta:
    """How long a vacuum keeps the files of old versions."""
    return _duration(properties, "delta.deletedFileRetentionDuration", 7)


def _duration(properties: Mapping[str, str], name: str, days: int) -> timedelta:
    """A Delta interval property such as `interval 30 days`; months and years never stand in one."""
    words = properties.get(name, f"interval {days} days").lower().replace("interval", "").split()
    units = {"week": 7 * _DAY, "day": _DAY, "hour": _DAY / 24, "minute": _DAY / 1440, "second": _DAY / 86400}
    total = timedelta()
    for amount, unit in zip(words[::2], words[1::2], strict=False):
        total += float(amount) * units.get(unit.rstrip("s"), timedelta())
    return total


def reason(error: Exception) -> str:
    """The first line of what Spark says, without its stack."""
    text = str(error.java_exception.getMessage()) if isinstance(error, Py4JJavaError) else str(error)
    return text.strip().splitlines()[0].removesuffix(".")[:300] if text.strip() else type(error).__name__
