"""The transaction log of one table: its newest version, older versions, and its commits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from lake.delta.actions import Commit, commit_of
from lake.delta.pinned import Pinned
from lake.delta.snapshot_cache import NewestSnapshot
from lake.spark.jvm.gateway import Java, Scala, active, jvm_of

_MOST_ACTIONS = 1_000
"""How many actions of a commit cross from the JVM in one call."""


@dataclass(frozen=True)
class _Part:
    """Some actions of a commit, as JSON; whether more of them follow."""

    number: int
    more: bool
    actions: list[str]


def identifier(spark: SparkSession, name: str) -> Java:
    """A table's name in Spark's own catalog, which accepts no name of three parts here."""
    return spark._jsparkSession.sessionState().sqlParser().parseTableIdentifier(name.removeprefix("spark_catalog."))


class Log:
    """The transaction log of one table, by path or by catalog name. Raises Spark's errors; tables.py turns them into Lakejoin's.

    `refuse_writing`: raises where no transaction may be begun.
    """

    def __init__(
        self, spark: SparkSession, path: str | None = None, name: str | None = None, refuse_writing: Callable[[], None] = lambda: None
    ) -> None:
        self.spark, self.refuse_writing = spark, refuse_writing
        self.jvm = jvm_of(spark)
        self.scala: Scala = self.jvm.conversions
        self._marks: dict[int, str] = {}
        delta_log = self.jvm.org.apache.spark.sql.delta.DeltaLog
        self._identifier: Java = None
        if path is not None:
            self.java: Java = delta_log.forTable(spark._jsparkSession, path)
        else:
            self._identifier = identifier(spark, str(name))
            self.java = delta_log.forTable(spark._jsparkSession, self._identifier)

    @property
    def exists(self) -> bool:
        """Whether the table exists now. Delta's cache still has a table that was deleted after this process read it."""
        return bool(self.jvm.own_versions.exists(self.java))

    @property
    def path(self) -> str:
        return str(self.java.dataPath().toString())

    def catalog_table(self) -> Java:
        """The catalog's entry of a table that is opened by name, as a Scala option."""
        if self._identifier is None:
            return self.scala.none
        return self.scala.some(self.spark._jsparkSession.sessionState().catalog().getTableMetadata(self._identifier))

    def head(self) -> Pinned:
        """The newest version, read from the log now."""
        return Pinned(self, self._newest_snapshot().newest())

    def checkpoint(self, pinned: Pinned) -> None:
        """Write a checkpoint of a version, and let Delta clean up the log."""
        with active(self.jvm, self.spark._jsparkSession):
            self.java.checkpoint(pinned.snapshot, self.catalog_table())
        self._newest_snapshot().forget()

    def _newest_snapshot(self) -> NewestSnapshot:
        return NewestSnapshot(self.jvm, self.scala, self.java, self.spark._jsparkSession)

    def at(self, number: int) -> Pinned:
        """An older version. Raises if the log does not reach back to it."""
        none = self.scala.none
        return Pinned(self, self.java.getSnapshotAt(number, none, none, False))

    def mark(self, number: int) -> str:
        """A digest of a commit's file, empty if it is no longer in the log; read once."""
        if number not in self._marks:
            self._marks[number] = str(self.jvm.own_commits.mark(self.java, number) or "")
        return self._marks[number]

    def version_at(self, time: datetime, or_first: bool = False) -> int:
        """The newest version that was committed at or before `time`. `or_first`: the oldest version if there was none yet."""
        timestamp = self.jvm.java.sql.Timestamp(int(time.timestamp() * 1000))
        commit = self.java.history().getActiveCommitAtTime(timestamp, self.scala.none, True, False, or_first)
        return int(commit.version())

    def commits(self, since: int, until: int) -> Iterator[Commit]:
        """The commits since+1..until, oldest first. Raises if one is no longer in the log."""
        commits = self.jvm.own_commits.between(self.java, since + 1, until)
        while (part := self._next(commits)) is not None:
            commit = commit_of(part.number, self._actions(part, commits))
            yield commit if commit.timestamp else replace(commit, timestamp=self.jvm.own_commits.written(self.java, commit.number))

    def _next(self, commits: Java) -> _Part | None:
        text: str | None = self.jvm.own_commits.next(commits, _MOST_ACTIONS)
        if text is None:
            return None
        head, *actions = text.split("\n")  # not splitlines: JSON strings may contain other line separators
        number, more = head.split(" ")
        return _Part(int(number), more == "true", actions)

    def _actions(self, part: _Part | None, commits: Java) -> Iterator[dict[str, dict[str, Any]]]:
        """The actions of the commit that a part begins."""
        while part is not None:
            yield from map(json.loads, part.actions)
            part = self._next(commits) if part.more else None

    def history(self) -> list[dict[str, Any]]:
        """Delta's history of the commits in the log, oldest first: one Spark job, which reads their first lines."""
        found = self.java.history().getHistory(self.scala.none, self.catalog_table())
        commits = json.loads(self.jvm.org.apache.spark.sql.delta.util.JsonUtils.toJson(self.scala.java_list(found), None))
        return sorted(commits, key=lambda commit: int(commit["version"]))
