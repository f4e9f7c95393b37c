"""The newest version of a table whose writers store no list of its files beside their commits.

Spark stores that list in a version's checksum while there are few files; delta-rs and others write no checksum. Delta then replays the
log, in a Spark job, at every new version. This module derives the list from the version that was read before and the commits since, as
Delta does for its own commits; of a table that was not read before from all its commits, while these are few. Written for Delta 4.4.

Law: a derived version equals the replayed one (tests/delta/test_snapshot_cache.py); what can't be derived is replayed.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from lake.spark.failures import CALL_ERRORS
from lake.spark.jvm.gateway import Java, Scala, active, kind_of

_MOST_COMMITS, _MOST_ACTIONS = 100, 2_000
MOST_FILES = 2_000
"""Lists of more files than these are left to Spark."""
_MOST_TABLES = 100
_BEFORE_ALL = json.dumps(
    dict.fromkeys(("tableSizeBytes", "numFiles", "numDeletedRecordsOpt", "numDeletionVectorsOpt"), 0)
    | {"numMetadata": 1, "numProtocol": 1, "setTransactions": [], "domainMetadata": [], "allFiles": []}
)
_Found = TypeVar("_Found")
_THRESHOLD = "spark.databricks.delta.allFilesInCrc.thresholdNumFiles"


@dataclass(frozen=True)
class _Known:
    """A version that was read: Delta's snapshot of it, the snapshot that is used for it, and a hash of its commit, which identifies it."""

    found: Java
    used: Java
    commit: int
    number: int


Place = tuple[object, str]
"""A JVM and the path of a log."""


class SnapshotCache:
    """The newest version read of each table: of at most `_MOST_TABLES` tables, without those that were used longest ago.

    An entry that is dropped is freed in the JVM as well, since py4j releases a Java object with its last reference in Python. The lock
    guards the dictionary only: it is never held during a call to the storage or the JVM, so a table that hangs stops no other.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[Place, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, place: Place) -> _Known | None:
        with self._lock:
            return self._entries.get(place)

    def put(self, place: Place, before: _Known | None, now: _Known) -> Java:
        """Store a version that was derived from `before`; if another thread was first, its entry stays. Returns the snapshot to use."""
        dropped: list[_Known] = []  # freed after the lock is released, as that is a call to the JVM
        with self._lock:
            current = self._entries.get(place)
            if current is before:
                self._entries[place] = now
                self._entries.move_to_end(place)
            elif current is not None and (current.number, current.commit) == (now.number, now.commit):
                now = current
            while len(self._entries) > _MOST_TABLES:
                dropped.append(self._entries.popitem(last=False)[1])
        return now.used

    def drop(self, place: Place) -> None:
        with self._lock:
            dropped = self._entries.pop(place, None)
        del dropped


_cache = SnapshotCache()


class _Threshold:
    """The setting by which Delta derives lists of more files than it would write into a checksum.

    It belongs to the session, which threads share: the first that needs it sets it, and the last one restores what was set before. The
    lock is held while the setting changes, which calls no storage.
    """

    def __init__(self) -> None:
        self._users: dict[str, tuple[int, Java]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def raised(self, session: Java) -> Iterator[None]:
        conf, key = session.conf(), str(session.sessionUUID())
        with self._lock:
            users, before = self._users.get(key) or (0, conf.getOption(_THRESHOLD))
            conf.set(_THRESHOLD, str(MOST_FILES))
            self._users[key] = users + 1, before
        try:
            yield
        finally:
            with self._lock:
                users, before = self._users.pop(key)
                if users > 1:
                    self._users[key] = users - 1, before
                else:
                    conf.set(_THRESHOLD, before.get()) if before.isDefined() else conf.unset(_THRESHOLD)


_threshold = _Threshold()


@dataclass(frozen=True)
class NewestSnapshot:
    """Finds one table's newest version. `log`: Delta's; `spark`: the JVM's session."""

    jvm: Any
    scala: Scala
    log: Java
    spark: Java

    def newest(self) -> Java:
        """Delta's snapshot of the newest version, with a list of its files if one can be derived."""
        place = self._place()
        before = _cache.get(place)
        followed = self._tried(lambda: self._followed(before))
        if followed is not None:
            return _cache.put(place, before, followed)
        known = self._tried(self._in_memory)
        found = known or self.log.update(False, self.scala.none, self.scala.none)
        noted = known is not None or self.jvm.own_versions.notesFiles(found) or self.jvm.own_versions.files(found) > MOST_FILES
        if before is not None and before.found.equals(found):
            return before.used
        derived = None if noted else self._tried(lambda: self._since(before, found))
        if derived is None:
            _cache.drop(place)
            return found
        return _cache.put(place, before, derived)

    def forget(self) -> None:
        """Drop the table's entry, and have Delta read the log again: neither would notice a new checkpoint."""
        _cache.drop(self._place())
        self.log.update(False, self.scala.none, self.scala.none)

    def _place(self) -> Place:
        return id(self.jvm._gateway_client), str(self.jvm.own_versions.place(self.log))

    def _in_memory(self) -> Java | None:
        """The snapshot that Delta has in memory, if it is the newest and lists its files."""
        return self.jvm.own_commits.inMemory(self.log)

    @staticmethod
    def _tried(derive: Callable[[], _Found]) -> _Found | None:
        """What `derive` returns; None if a commit is no longer available or Delta fails: the log is then replayed."""
        with suppress(*CALL_ERRORS):
            return derive()
        return None

    def _followed(self, before: _Known | None) -> _Known | None:
        """The newest version, derived from one with a list of files. Delta itself would read protocol and metadata of each in a job."""
        if before is None or not self.jvm.own_versions.byName(before.used):
            return None
        none = self.scala.none
        segment = self.jvm.own_commits.following(self.log, before.used.logSegment())
        if segment is None:
            with active(self.jvm, self.spark):
                segments = self.log.createLogSegment(none, self.scala.some(before.used.checkpointProvider()), none, none, none)
            if not segments.isDefined():
                return None
            segment = segments.get()
        if segment.equals(before.used.logSegment()):
            return before
        version = int(segment.version())
        if version == before.number:  # there is a checkpoint of it now
            same = self._commits(version - 1, version)[-1][2] == before.commit
            return replace(before, used=self._with(segment, before.used.checksumOpt().get())) if same else None
        if not 0 < version - before.number <= _MOST_COMMITS or self.log.readChecksum(version, none).isDefined():
            return None
        checksum, commit = self._checksum(before, version)
        if checksum is None:
            return None
        used = self._with(segment, checksum)
        return _Known(used, used, commit, version)

    def _since(self, before: _Known | None, found: Java) -> _Known:
        version = int(found.version())
        computed = before is not None and (self.jvm.own_versions.notesFiles(before.used) or before.used.stateReconstructionTriggered())
        if before is None or not computed or not 0 < version - before.number <= _MOST_COMMITS:
            checksum, commit = self._of_all(found.logSegment(), version)
        else:
            checksum, commit = self._checksum(before, version)
        return _Known(found, found if checksum is None else self._with(found.logSegment(), checksum), commit, version)

    def _checksum(self, before: _Known, version: int) -> tuple[Java | None, int]:
        """A later version's checksum (None if it can't be derived) and the hash of its commit."""
        known, *new = self._commits(before.number - 1, version)
        same = known[2] == before.commit  # otherwise another table is at this path now
        return self._derived(before.used, new) if same and _few(new) else None, new[-1][2]

    def _of_all(self, segment: Java, version: int) -> tuple[Java | None, int]:
        """The checksum of a version whose log has all commits and no checkpoint yet (None otherwise), and the hash of its commit."""
        whole = segment.checkpointProvider().isEmpty() and int(segment.deltas().size()) == version + 1 <= _MOST_COMMITS
        commits = self._commits(-1 if whole else version - 1, version)
        return self._derived(None, commits) if whole and _few(commits) else None, commits[-1][2]

    def _with(self, segment: Java, checksum: Java) -> Java:
        """Delta's snapshot of a log up to some version, with a checksum."""
        snapshot = self.jvm.org.apache.spark.sql.delta.Snapshot
        with active(self.jvm, self.spark):
            return snapshot(self.log.logPath(), segment.version(), segment, self.log, self.scala.some(checksum))

    def _commits(self, since: int, until: int) -> list[tuple[int, Java, int]]:
        """(version, actions, their hash) of the commits since+1..until."""
        commits = self.jvm.own_commits.between(self.log, since + 1, until)
        found = []
        while commits.hasNext():
            pair = commits.next()
            found.append((int(pair._1()), pair._2(), int(pair._2().hashCode())))
        return found

    def _derived(self, snapshot: Java | None, commits: list[tuple[int, Java, int]]) -> Java | None:
        """The checksum after the commits since a version, or since there was none; None if Delta does not derive it, or not with the list
        of files."""
        either: Callable[[Java], Java] = self.jvm.scala.util.Left if snapshot is not None else self.jvm.scala.util.Right
        session = self.spark
        with active(self.jvm, session), _threshold.raised(session):
            state = snapshot if snapshot is not None else self._nothing()
            recorder = self.log.startTransaction(self.scala.none, self.scala.some(self.log.unsafeVolatileSnapshot()))
            for version, actions, _ in commits:
                none, operation = self.scala.none, self._operation(actions)
                found = recorder.incrementallyDeriveChecksum(
                    session, self.log, version, actions, none, none, operation, none, either(state), False, True
                )
                if found.isLeft():
                    return None
                state, either = found.toOption().get(), self.jvm.scala.util.Right
        return state if state.allFiles().isDefined() and state.numFiles() == state.allFiles().get().size() else None

    def _nothing(self) -> Java:
        """The checksum before the first commit."""
        delta = self.jvm.org.apache.spark.sql.delta
        return delta.util.JsonUtils.mapper().readValue(
            _BEFORE_ALL, self.jvm.java.lang.Class.forName("org.apache.spark.sql.delta.VersionChecksum")
        )

    def _operation(self, actions: Java) -> str:
        """The operation that a commit names."""
        every = (actions.apply(i) for i in range(actions.size()))
        return next((str(action.operation()) for action in every if kind_of(action) == "CommitInfo"), "")


def _few(commits: list[tuple[int, Java, int]]) -> bool:
    return sum(int(actions.size()) for _, actions, _ in commits) <= _MOST_ACTIONS
