"""The newest version of a table whose writers note no list of its files beside their commits.

Spark notes it in a version's checksum while files are few; delta-rs and others write no checksum. The files would be had by replaying the
log, in a Spark job, at every new version. Here they are derived from the version that was known before and the commits since, as Delta
does it for its own commits. Pinned with Delta 4.4.

Law: a derived version is the replayed one (tests/test_deltastate.py); where it can't be derived, it is replayed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError

from lake.spark.jvm.gateway import Java, Scala, active

_MOST_COMMITS, _MOST_ACTIONS = 100, 2_000
MOST_FILES = 2_000
"""Lists of more files than these are left to Spark."""
_MOST_TABLES = 1_000
_Found = TypeVar("_Found")
_THRESHOLD = "spark.databricks.delta.allFilesInCrc.thresholdNumFiles"


@dataclass(frozen=True)
class _Known:
    """A version that was seen: Delta's snapshot of it, what is used for it, and what its commit says, by which it is known again."""

    found: Java
    used: Java
    commit: int

    @property
    def version(self) -> int:
        return int(self.found.version())


_known: OrderedDict[tuple[object, str], _Known] = OrderedDict()
_lock = threading.Lock()
"""Held while a version is derived."""


@dataclass(frozen=True)
class State:
    """The way to one table's newest version. `log`: Delta's; `spark`: the JVM's session."""

    jvm: Any
    scala: Scala
    log: Java
    spark: Java

    def newest(self) -> Java:
        """Delta's snapshot of the newest version, with a list of its files noted, where one can be derived."""
        place = self._place()
        with _lock:
            before = _known.get(place)
            followed = self._tried(lambda: self._followed(before))
            if followed is not None:
                return self._keep(place, followed)
        found = self._tried(self._held) or self.log.update(False, self.scala.none, self.scala.none)
        noted = _notes_files(found) or _files(found) > MOST_FILES
        with _lock:
            if before is not None and before.found.equals(found):
                return before.used
            now = None if noted else self._tried(lambda: self._since(before, found))
            if now is None:
                _known.pop(place, None)
                return found
            return self._keep(place, now)

    def forget(self) -> None:
        """What is known of the table, and what Delta holds: a checkpoint was made, that neither would see."""
        with _lock:
            _known.pop(self._place(), None)
        self.log.update(False, self.scala.none, self.scala.none)

    def _place(self) -> tuple[object, str]:
        return id(self.jvm._gateway_client), str(self.log.logPath().toString())

    def _held(self) -> Java | None:
        """The snapshot that Delta has, where no commit came after it: to ask Delta is to list the log."""
        held = self.log.unsafeVolatileSnapshot()
        if not _by_name(held):
            return None
        segment = held.logSegment()
        return held if segment.equals(self.jvm.own_commits.following(self.log, segment)) else None

    @staticmethod
    def _tried(derive: Callable[[], _Found]) -> _Found | None:
        """What is derived; None where a commit is gone, or Delta refuses: it replays the log when it is asked."""
        with suppress(Py4JJavaError):
            return derive()
        return None

    @staticmethod
    def _keep(place: tuple[object, str], now: _Known) -> Java:
        _known[place] = now
        _known.move_to_end(place)
        while len(_known) > _MOST_TABLES:
            _known.popitem(last=False)
        return now.used

    def _followed(self, before: _Known | None) -> _Known | None:
        """The newest version, from one with a list of files. Delta itself would ask for protocol and metadata of each, in a job."""
        if before is None or not _by_name(before.used):
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
        if version == before.version:  # a checkpoint of it came
            same = self._commits(version - 1, version)[-1][2] == before.commit
            return replace(before, used=self._with(segment, before.used.checksumOpt().get())) if same else None
        if not 0 < version - before.version <= _MOST_COMMITS or self.log.readChecksum(version, none).isDefined():
            return None
        checksum, commit = self._checksum(before, version)
        if checksum is None:
            return None
        used = self._with(segment, checksum)
        return _Known(used, used, commit)

    def _since(self, before: _Known | None, found: Java) -> _Known:
        version = int(found.version())
        computed = before is not None and (_notes_files(before.used) or before.used.stateReconstructionTriggered())
        if before is None or not computed or not 0 < version - before.version <= _MOST_COMMITS:
            return _Known(found, found, self._commits(version - 1, version)[-1][2])
        checksum, commit = self._checksum(before, version)
        return _Known(found, found if checksum is None else self._with(found.logSegment(), checksum), commit)

    def _checksum(self, before: _Known, version: int) -> tuple[Java | None, int]:
        """A later version's checksum, None where it can't be derived; and what its commit says."""
        known, *new = self._commits(before.version - 1, version)
        same = known[2] == before.commit  # or else another table lies there now
        few = sum(actions.size() for _, actions, _ in new) <= _MOST_ACTIONS
        return self._derived(before.used, new) if same and few else None, new[-1][2]

    def _with(self, segment: Java, checksum: Java) -> Java:
        """Delta's snapshot of a log up to some version, with a checksum."""
        snapshot = self.jvm.org.apache.spark.sql.delta.Snapshot
        with active(self.jvm, self.spark):
            return snapshot(self.log.logPath(), segment.version(), segment, self.log, self.scala.some(checksum))

    def _commits(self, since: int, until: int) -> list[tuple[int, Java, int]]:
        """(version, actions, a number that tells what they say) of the commits since+1..until."""
        commits = self.jvm.own_commits.between(self.log, since + 1, until)
        found = []
        while commits.hasNext():
            pair = commits.next()
            found.append((int(pair._1()), pair._2(), int(pair._2().hashCode())))
        return found

    def _derived(self, snapshot: Java, commits: list[tuple[int, Java, int]]) -> Java | None:
        """The checksum after the commits, None where Delta does not derive it, or not with the files."""
        either: Callable[[Java], Java] = self.jvm.scala.util.Left
        state, session = snapshot, self.spark
        with active(self.jvm, session), self._many_files():
            recorder = self.log.startTransaction(self.scala.none, self.scala.some(snapshot))
            for version, actions, _ in commits:
                none, told = self.scala.none, self._operation(actions)
                found = recorder.incrementallyDeriveChecksum(
                    session, self.log, version, actions, none, none, told, none, either(state), False, True
                )
                if found.isLeft():
                    return None
                state, either = found.toOption().get(), self.jvm.scala.util.Right
        return state if state.allFiles().isDefined() and state.numFiles() == state.allFiles().get().size() else None

    @contextmanager
    def _many_files(self) -> Iterator[None]:
        """Within it Delta derives lists of more files than it would write into a checksum. (By one thread at a time: the setting is the
        session's.)"""
        conf = self.spark.conf()
        before = conf.getOption(_THRESHOLD)
        conf.set(_THRESHOLD, str(MOST_FILES))
        try:
            yield
        finally:
            conf.set(_THRESHOLD, before.get()) if before.isDefined() else conf.unset(_THRESHOLD)

    def _operation(self, actions: Java) -> str:
        """What a commit says that it did."""
        every = (actions.apply(i) for i in range(actions.size()))
        return next((str(action.operation()) for action in every if action.getClass().getSimpleName() == "CommitInfo"), "")


def _notes_files(snapshot: Java) -> bool:
    return bool(snapshot.checksumOpt().isDefined() and snapshot.checksumOpt().get().allFiles().isDefined())


def _by_name(snapshot: Java) -> bool:
    """Whether what came after a version can be told by the names of commits: nobody but the folder takes them; and its files are noted, so
    that nothing is replayed."""
    return _notes_files(snapshot) and not (snapshot.tableCommitCoordinatorClientOpt().isDefined() or snapshot.isCatalogOwned())


def _files(snapshot: Java) -> int:
    """How many files a version has, by its checksum; 0 where it has none."""
    return int(snapshot.checksumOpt().get().numFiles()) if snapshot.checksumOpt().isDefined() else 0
