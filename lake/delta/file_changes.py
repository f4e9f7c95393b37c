"""The net changes of an interval's commits to a table's data files, and the inserted and deleted rows that follow from them.

An added file contains inserted rows, a removed file deleted rows. If only the deletion vector of a file changed, the rows count that one
of the two vectors marks and the other does not. Each file is read once, however many commits changed it.

Law: rows(until) = rows(since) + rows(file changes), as multisets. Files of commits that change no data (OPTIMIZE) are left out.
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
from lake.spark import steps, zset
from lake.spark.jvm.gateway import Java

Body = dict[str, Any]

_READER = "org.apache.spark.sql.delta.commands.cdc.CDCReader"
FEED_COLUMNS = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
"""The columns that Delta adds to the rows of a change feed; no table with a feed has columns of these names."""
_WEIGHT = f"IF(_change_type IN ('insert', 'update_postimage'), 1L, -1L) AS {zset.WEIGHT}"
_DESCRIBED = frozenset({"size", "partitionValues"})
"""What reading a removed file needs, and its record in the log may lack."""
_UNREADABLE = 1 << 60
_OPENING = 1 << 20
"""The cost of opening a file, in bytes read."""


@dataclass(frozen=True)
class FileChanges:
    """Added files, removed files, and (before, after) of files whose deletion vector changed.

    `feed_bytes`: the cost of the same commits' change data feed; `redefined`: whether one of them changed the table's metadata;
    `commits`: how many of them changed rows.
    """

    added: tuple[FileAction, ...]
    removed: tuple[FileAction, ...]
    new_vectors: tuple[tuple[FileAction, FileAction], ...]
    feed_bytes: int
    redefined: bool
    commits: int

    @property
    def files(self) -> list[FileAction]:
        """All of them."""
        return [*self.added, *self.removed, *(file for pair in self.new_vectors for file in pair)]

    @property
    def rows(self) -> int:
        """A lower bound of inserted and deleted rows, from the log; 0 if a file was removed, whose rows may be in another one now."""
        if self.removed:
            return 0
        return sum(file.rows or 0 for file in self.added) + sum(abs(after.deleted - before.deleted) for before, after in self.new_vectors)

    @property
    def bytes(self) -> int:
        """The cost of reading the files."""
        return _cost(file.bytes for file in self._touched)

    @property
    def size(self) -> int:
        """The size of the data files, each counted once."""
        return sum(file.bytes for file in self._touched)

    @property
    def _touched(self) -> list[FileAction]:
        return [*self.added, *self.removed, *(after for _, after in self.new_vectors)]


NO_FILE_CHANGES = FileChanges((), (), (), feed_bytes=0, redefined=False, commits=0)


def file_changes(pinned: Pinned, since: int) -> FileChanges:
    """What the commits since+1..(the pinned version) did. Raises if one is no longer in the log."""
    balance = Counter[tuple[str, str]]()  # counts each addition: RESTORE adds again what OPTIMIZE, which is left out, removed
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
    return FileChanges(alone[0], alone[1], marked, feed_bytes, redefined, commits)


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
    pinned: Pinned, since: int, actions: Mapping[tuple[tuple[str, str], bool], FileAction], removed: Sequence[tuple[str, str]]
) -> list[FileAction]:
    """The removed files, by their keys: with the record of the commit that added it, if the removal names no more than the path."""
    found = {key: actions[key, False] for key in removed}
    bare = {key for key, file in found.items() if not file.body.keys() >= _DESCRIBED}
    if bare:
        there = {file.key: file for file in pinned.log.at(since).data_files()}
        added = {key: actions.get((key, True)) or there.get(key) for key in bare}
        found |= {key: replace(file, added=False) for key, file in added.items() if file is not None}
    return [found[key] for key in removed]


def rows(pinned: Pinned, found: FileChanges, columns: Sequence[str]) -> DataFrame:
    """Inserted (weight 1) and deleted rows (-1): SQL expressions `columns` of the table's columns, and `w`; not consolidated."""
    if FEED_COLUMNS & {name.lower() for name in pinned.schema.names}:
        return _rows_of_whole_files(pinned, found, columns)
    log, scala = pinned.log, pinned.log.scala
    reader = _reader(log.jvm)
    spec = getattr(log.jvm, f"{_READER}$CDCDataSpec")
    specs: tuple[list[Java], list[Java]] = ([], [])
    for version, sides in enumerate(_versions(pinned, found)):
        for into, kind, files in zip(specs, ("add", "remove"), sides, strict=True):
            into.append(spec(version, None, scala.immutable(_actions(log.jvm, kind, files)), scala.none))
    arguments = (log.java, pinned.snapshot, False, log.spark._jsparkSession)
    parts = reader.getDeletedAndAddedRows(*[scala.seq(s) for s in specs], *arguments)
    frames = [steps.over(_listed(log, part), steps.select([*columns, _WEIGHT])) for part in scala.list(parts)]
    if not frames:
        return steps.over(pinned.rows_of(_actions(pinned.log.jvm, "add", [])), steps.select([*columns, f"1L AS {zset.WEIGHT}"]))
    return reduce(lambda a, b: a.unionByName(b), frames)


def rows_held(pinned: Pinned, found: FileChanges, columns: Sequence[str], most: int) -> DataFrame | None:
    """The same of a small table, on the driver, where the JVM holds the rows of its files: it reads those that it does not hold yet.

    None where the files have more than `most` rows that differ, or more than double as many in all.
    """
    log = pinned.log
    before = [*found.removed, *(old for old, _ in found.new_vectors)]
    after = [*found.added, *(new for _, new in found.new_vectors)]
    sides = [_actions(log.jvm, "add", [file.body for file in files]) for files in (before, after)]
    frame = steps.over(pinned.rows_of(log.jvm.java.util.List.of()), steps.select(columns))
    changed = log.jvm.own_plans.changed(log.spark._jsparkSession, frame._jdf, *sides, most)
    return None if changed is None else DataFrame(changed, log.spark)


def rows_of_feed(pinned: Pinned, since: int, columns: Sequence[str]) -> DataFrame:
    """The same rows by the change data feed of the commits since+1..(the pinned version), none of which redefined the table; not net.

    Delta's public reader would load two more snapshots and convert each row to JVM objects.
    """
    log, some, none = pinned.log, pinned.log.scala.some, pinned.log.scala.none
    interval = (since + 1, pinned.version.number)
    here = some(pinned.snapshot)  # its metadata are those of the interval's start
    feed = _reader(log.jvm).changesToBatchDF(log.java, *interval, log.spark._jsparkSession, none, here, False, here)
    return steps.over(_listed(log, feed), steps.select([*columns, _WEIGHT]))


def _listed(log: Log, frame: Java) -> DataFrame:
    return DataFrame(log.jvm.own_changes.listed(log.spark._jsparkSession, frame), log.spark)


def _reader(jvm: Any) -> Java:
    return getattr(getattr(jvm, f"{_READER}$"), "MODULE$")


def _rows_of_whole_files(pinned: Pinned, found: FileChanges, columns: Sequence[str]) -> DataFrame:
    """The same, of a table with columns of its own under the names that Delta gives its feed's."""
    new = [*found.added, *(after for _, after in found.new_vectors)]
    old = [*found.removed, *(before for before, _ in found.new_vectors)]
    return zset.subtract(*[steps.over(_whole(pinned, files), steps.select(columns)) for files in (new, old)])


def _whole(pinned: Pinned, files: Sequence[FileAction]) -> DataFrame:
    """The rows of files, some of which may occur several times, or with several vectors."""
    frames = [pinned.rows_of(_actions(pinned.log.jvm, "add", [file.body for file in some])) for some in _apart(files) or [[]]]
    return reduce(lambda a, b: a.unionByName(b), frames)


def _apart(files: Iterable[FileAction]) -> list[list[FileAction]]:
    """The files in groups in which no path occurs twice."""
    seen = Counter[str]()
    groups: list[list[FileAction]] = []
    for file in files:
        if seen[file.path] == len(groups):
            groups.append([])
        groups[seen[file.path]].append(file)
        seen[file.path] += 1
    return groups


def _versions(pinned: Pinned, found: FileChanges) -> list[tuple[list[Body], list[Body]]]:
    """(files to add, files to remove) of invented versions from which Delta reads the changes: in each a path occurs once on a side,
    and on both sides if only marked rows count.

    Of a file added with a vector and removed without one, Delta reads the rows that the vector marks as deleted; the other way round as
    inserted. With a vector on both sides it would read the file twice, even if no row was restored.
    """
    versions: list[tuple[list[Body], list[Body]]] = [([], []), ([], [])]
    vectors = _Vectors(pinned)
    for before, after in found.new_vectors:
        bare = {**after.body, "deletionVector": None, "extendedFileMetadata": True}
        deleted, restored = vectors.differences(before, after)
        for (added, removed), vector, flipped in ((versions[0], deleted, False), (versions[1], restored, True)):
            if vector is not None:
                with_vector = {**bare, "deletionVector": vector}
                added.append(bare if flipped else with_vector)
                removed.append(with_vector if flipped else bare)
    for group in _apart([*found.added, *found.removed]):
        came, went = ([file.body for file in group if file.added is added] for added in (True, False))
        versions.append((came, went))
    return versions


class _Vectors:
    """Deletion vectors of one table's files, read from its storage where two have to be compared."""

    def __init__(self, pinned: Pinned) -> None:
        self._jvm, self._log = pinned.log.jvm, pinned.log.java
        self._delta = self._jvm.org.apache.spark.sql.delta

    @cached_property
    def _store(self) -> Java:
        return self._delta.storage.dv.HadoopFileSystemDVStore(self._log.newDeltaHadoopConf())

    def differences(self, before: FileAction, after: FileAction) -> tuple[Body | None, Body | None]:
        """Vectors as JSON: of the rows marked only after, and of those marked only before; None if there are none."""
        if not before.vector or not after.vector:
            return after.body.get("deletionVector"), before.body.get("deletionVector")
        old, new = self._bitmap(before), self._bitmap(after)
        deleted = new.copy()
        deleted.diff(old)
        old.diff(new)
        return self._inline(deleted), self._inline(old)

    def _bitmap(self, file: FileAction) -> Java:
        return self._store.read(_actions(self._jvm, "add", [file.body]).get(0).deletionVector(), self._log.dataPath())

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


def _actions(jvm: Any, kind: str, bodies: Iterable[Body]) -> Java:
    """AddFile (`kind` add) or RemoveFile (remove) actions of some files, as a list in the JVM, by one call."""
    times = {"modificationTime": 0, "deletionTimestamp": 0, "dataChange": True}
    return jvm.own_files.actions("\n".join(json.dumps({kind: {**times, **body}}) for body in bodies))


def _feed_bytes(commit: Commit) -> int:
    """The cost of a commit's change data feed: its change files if it has any, else the files that it added and removed; these can't be
    read if the log names no more than the path of one."""
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
