"""What the commits of an interval did to a table's data files, net, and the rows that came and went with them.

A file that came holds rows that came, one that went rows that went. Of a file that stayed under another deletion vector, only the
rows count that one of the two vectors marks and the other does not. Each file is read once, however many commits touched it.

Law: rows(until) = rows(since) + rows(moved), as multisets. Files of commits that change no data (OPTIMIZE) are left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

from pyspark.sql import DataFrame

from lake.delta.actions import Commit, FileAction
from lake.delta.log import Log
from lake.delta.pinned import Pinned
from lake.spark import zset
from lake.spark.jvm.gateway import Java

Body = dict[str, Any]

_READER = "org.apache.spark.sql.delta.commands.cdc.CDCReader"
FEED_COLUMNS = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
"""What Delta adds to the rows of a change feed; no table with a feed has columns so named."""
_WEIGHT = f"IF(_change_type IN ('insert', 'update_postimage'), 1L, -1L) AS {zset.WEIGHT}"
_DESCRIBED = frozenset({"size", "partitionValues"})
"""What the log may leave out of a file that is removed, and reading it needs."""
_UNREADABLE = 1 << 60
_OPENING = 1 << 20
"""What opening a file costs, in bytes read."""


@dataclass(frozen=True)
class Moved:
    """Files that came, files that went, and (before, after) of files that stayed under another deletion vector.

    `feed_bytes`: what the change data feed of the same commits reads; `redefined`: whether one of them changed the table's metadata;
    `commits`: how many of them changed rows.
    """

    came: tuple[FileAction, ...]
    went: tuple[FileAction, ...]
    marked: tuple[tuple[FileAction, FileAction], ...]
    feed_bytes: int
    redefined: bool
    commits: int

    @property
    def files(self) -> list[FileAction]:
        """All of them."""
        return [*self.came, *self.went, *(file for pair in self.marked for file in pair)]

    @property
    def rows(self) -> int:
        """How many rows came and went at the least, by the log; 0 where a file went whole, whose rows may have come again in another."""
        if self.went:
            return 0
        return sum(file.rows or 0 for file in self.came) + sum(abs(after.deleted - before.deleted) for before, after in self.marked)

    @property
    def bytes(self) -> int:
        """What reading the files costs."""
        return _cost(file.bytes for file in self._touched)

    @property
    def size(self) -> int:
        """The size of the data files, each counted once."""
        return sum(file.bytes for file in self._touched)

    @property
    def _touched(self) -> list[FileAction]:
        return [*self.came, *self.went, *(after for _, after in self.marked)]


NOTHING = Moved((), (), (), feed_bytes=0, redefined=False, commits=0)


def moved(pinned: Pinned, since: int) -> Moved:
    """What the commits since+1..(the pinned version) did. Raises where one is no longer in the log."""
    balance = Counter[tuple[str, str]]()  # a file counts as often as it came: RESTORE adds again what OPTIMIZE, left out, took away
    actions: dict[tuple[tuple[str, str], bool], FileAction] = {}
    feed_bytes, redefined, commits = 0, False, 0
    for commit in pinned.commits(since):
        commits += commit.changes_data
        feed_bytes += _feed_bytes(commit)
        redefined |= commit.table_id is not None
        for action in commit.files:
            balance[action.key] += 1 if action.added else -1
            actions[action.key, action.added] = action
    came = [actions[key, True] for key, count in balance.items() for _ in range(count)]
    went = _described(pinned, since, actions, [key for key, count in balance.items() for _ in range(-count)])
    before = {file.path: file for file in went}
    after = {file.path: file for file in came}
    marked = tuple((before[path], after[path]) for path in after if path in before)  # only one pair of each path
    alone = [_without(came, {new.key for _, new in marked}), _without(went, {old.key for old, _ in marked})]
    return Moved(alone[0], alone[1], marked, feed_bytes, redefined, commits)


def _without(files: Iterable[FileAction], paired: set[tuple[str, str]]) -> tuple[FileAction, ...]:
    """The files without one of each of the paired, by their keys."""
    left = []
    for file in files:
        if file.key in paired:
            paired.remove(file.key)
        else:
            left.append(file)
    return tuple(left)


def _described(
    pinned: Pinned, since: int, actions: Mapping[tuple[tuple[str, str], bool], FileAction], gone: Sequence[tuple[str, str]]
) -> list[FileAction]:
    """The files that went, by their keys: what the log says of each where it was added, if the commit that removed it says no more than its
    path."""
    found = {key: actions[key, False] for key in gone}
    bare = {key for key, file in found.items() if not file.body.keys() >= _DESCRIBED}
    if bare:
        there = {file.key: file for file in pinned.log.at(since).data_files()}
        added = {key: actions.get((key, True)) or there.get(key) for key in bare}
        found |= {key: replace(file, added=False) for key, file in added.items() if file is not None}
    return [found[key] for key in gone]


def rows(pinned: Pinned, found: Moved, columns: Sequence[str]) -> DataFrame:
    """The rows that came (weight 1) and went (-1): SQL expressions `columns` of the table's columns, and `w`; not consolidated."""
    if FEED_COLUMNS & {name.lower() for name in pinned.schema.names}:
        return _rows_of_whole_files(pinned, found, columns)
    log, scala = pinned.log, pinned.log.scala
    reader = _reader(log.jvm)
    spec = getattr(log.jvm, f"{_READER}$CDCDataSpec")
    specs: tuple[list[Java], list[Java]] = ([], [])
    for version, sides in enumerate(_versions(pinned, found)):
        for into, kind, files in zip(specs, ("add", "remove"), sides, strict=True):
            into.append(spec(version, None, scala.seq([_action(log.jvm, kind, f) for f in files]), scala.none))
    arguments = (log.java, pinned.snapshot, False, log.spark._jsparkSession)
    parts = reader.getDeletedAndAddedRows(*[scala.seq(s) for s in specs], *arguments)
    frames = [_listed(log, part).selectExpr(*columns, _WEIGHT) for part in scala.list(parts)]
    if not frames:
        return pinned.rows_of([]).selectExpr(*columns, f"1L AS {zset.WEIGHT}")
    return reduce(lambda a, b: a.unionByName(b), frames)


def rows_of_feed(pinned: Pinned, since: int, columns: Sequence[str]) -> DataFrame:
    """The same rows by the change data feed of the commits since+1..(the pinned version), none of which redefined the table; not net.

    Delta's public reader would look up two more snapshots, and carry each row through the JVM's objects.
    """
    log, some, none = pinned.log, pinned.log.scala.some, pinned.log.scala.none
    interval = (since + 1, pinned.version.number)
    here = some(pinned.snapshot)  # its metadata are those of the interval's start
    feed = _reader(log.jvm).changesToBatchDF(log.java, *interval, log.spark._jsparkSession, none, here, False, here)
    return _listed(log, feed).selectExpr(*columns, _WEIGHT)


def _listed(log: Log, frame: Java) -> DataFrame:
    return DataFrame(log.jvm.own_changes.listed(log.spark._jsparkSession, frame), log.spark)


def _reader(jvm: Any) -> Java:
    return getattr(getattr(jvm, f"{_READER}$"), "MODULE$")


def _rows_of_whole_files(pinned: Pinned, found: Moved, columns: Sequence[str]) -> DataFrame:
    """The same, of a table with columns of its own under the names that Delta gives its feed's."""
    new = [*found.came, *(after for _, after in found.marked)]
    old = [*found.went, *(before for before, _ in found.marked)]
    return zset.subtract(*[_whole(pinned, files).selectExpr(*columns) for files in (new, old)])


def _whole(pinned: Pinned, files: Sequence[FileAction]) -> DataFrame:
    """The rows of files of which some may be there several times, or under several vectors."""
    frames = [pinned.rows_of([_action(pinned.log.jvm, "add", file.body) for file in some]) for some in _apart(files)]
    return reduce(lambda a, b: a.unionByName(b), frames) if frames else pinned.rows_of([])


def _apart(files: Iterable[FileAction]) -> list[list[FileAction]]:
    """The files in groups that have each path once at the most."""
    seen = Counter[str]()
    groups: list[list[FileAction]] = []
    for file in files:
        if seen[file.path] == len(groups):
            groups.append([])
        groups[seen[file.path]].append(file)
        seen[file.path] += 1
    return groups


def _versions(pinned: Pinned, found: Moved) -> list[tuple[list[Body], list[Body]]]:
    """(files to add, files to remove) of made-up versions, such that Delta finds in them what came and what went: in each a path at most
    once on a side, on both where only marked rows count.

    Of a file added under a vector and removed without one, Delta reads the rows that the vector marks as deleted; the other way round as
    inserted. With a vector on both sides it would read the file twice, even where nothing came back.
    """
    versions: list[tuple[list[Body], list[Body]]] = [([], []), ([], [])]
    vectors = _Vectors(pinned)
    for before, after in found.marked:
        bare = {**after.body, "deletionVector": None, "extendedFileMetadata": True}
        gone, again = vectors.differences(before, after)
        for (added, removed), vector, flipped in ((versions[0], gone, False), (versions[1], again, True)):
            if vector is not None:
                with_vector = {**bare, "deletionVector": vector}
                added.append(bare if flipped else with_vector)
                removed.append(with_vector if flipped else bare)
    for group in _apart([*found.came, *found.went]):
        came, went = ([file.body for file in group if file.added is added] for added in (True, False))
        versions.append((came, went))
    return versions


class _Vectors:
    """Deletion vectors of one table's files, read from its storage where one is laid over another."""

    def __init__(self, pinned: Pinned) -> None:
        self._jvm, self._log = pinned.log.jvm, pinned.log.java
        self._delta = self._jvm.org.apache.spark.sql.delta

    @cached_property
    def _store(self) -> Java:
        return self._delta.storage.dv.HadoopFileSystemDVStore(self._log.newDeltaHadoopConf())

    def differences(self, before: FileAction, after: FileAction) -> tuple[Body | None, Body | None]:
        """Vectors as JSON: of the rows marked after and not before, and the other way round; None where there are none."""
        if not before.vector or not after.vector:
            return after.body.get("deletionVector"), before.body.get("deletionVector")
        old, new = self._bitmap(before), self._bitmap(after)
        gone = new.copy()
        gone.diff(old)
        old.diff(new)
        return self._inline(gone), self._inline(old)

    def _bitmap(self, file: FileAction) -> Java:
        return self._store.read(_action(self._jvm, "add", file.body).deletionVector(), self._log.dataPath())

    def _inline(self, bitmap: Java) -> Body | None:
        if bitmap.isEmpty():
            return None
        portable = self._delta.deletionvectors.RoaringBitmapArrayFormat.Portable()
        vector = self._delta.actions.DeletionVectorDescriptor.inlineInLog(bitmap.serializeAsByteArray(portable), bitmap.cardinality())
        return {
            "storageType": vector.storageType(),
            "pathOrInlineDv": vector.pathOrInlineDv(),
            "sizeInBytes": vector.sizeInBytes(),
            "cardinality": vector.cardinality(),
        }


def _action(jvm: Any, kind: str, body: Body) -> Java:
    """An AddFile (`kind` add) or a RemoveFile (remove) of the same file."""
    times = {"modificationTime": 0, "deletionTimestamp": 0, "dataChange": True}
    return jvm.org.apache.spark.sql.delta.actions.Action.fromJson(json.dumps({kind: {**times, **body}}))


def _feed_bytes(commit: Commit) -> int:
    """What the change data feed reads of a commit: its change files if it has any, else the files that it added and removed, which it can't
    where the log says no more than the path of one."""
    if commit.change_files:
        return _cost(commit.change_files.values())
    if not all(file.body.keys() >= _DESCRIBED for file in commit.files):
        return _UNREADABLE
    before = {f.path: f for f in commit.files if not f.added}
    after = {f.path: f for f in commit.files if f.added}
    twice = [f.bytes for f in after.values() if f.vector and f.path in before and before[f.path].vector]
    return _cost([*(f.bytes for f in (before | after).values()), *twice])


def _cost(sizes: Iterable[int]) -> int:
    return sum(size + _OPENING for size in sizes)
