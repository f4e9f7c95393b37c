"""Keeping a real-time table small: a commit a second leaves as many small files, each of which makes a batch a little dearer.

Neither compaction nor the removal of old files changes rows. Their commits carry the newest stamp again: the log is kept for a day only.
Only small files are compacted, however large the table: while batches wait those of batches alone, into files that are left alone for
sixteen times, so that a path that never rests rewrites each row a few times only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from lake.deltalog import Log
from lake.session import settings, vacuuming
from lake.stamp import Stamp

_MANY_FILES, _TOO_MANY_FILES = 64, 128
"""Files that came since the last compaction; the latter though batches wait."""
_TURNS = 16
"""While batches wait, every so many compactions are of all small files."""
_MANY_COMMITS = 50
"""Commits since the last checkpoint; Delta itself makes one after 500 (view_table.py), within a batch."""
_CLEANED_EVERY, _CLEANED_AT_LATEST = 3_600.0, 21_600.0
_SMALL, _OF_BATCHES = 32 << 20, 4 << 20
"""Bytes up to which a file is compacted."""
_COMPACTION = {
    "spark.databricks.delta.optimize.maxFileSize": str(128 << 20),
    "spark.databricks.delta.optimize.maxDeletedRowsRatio": "0.5",
}


@dataclass
class Upkeep:
    """One table's. `spark`: a session of its own; `clock`: in seconds; `cleaned`: when old files were removed
    last, and after which batch; `settled`: how many files the last compaction left; `compactions`: how many there were."""

    spark: SparkSession
    log: Log
    clock: Callable[[], float] = time.monotonic
    cleaned: tuple[float, int] = field(init=False)
    settled: int = 0
    compactions: int = 0

    def __post_init__(self) -> None:
        self.cleaned = self.clock(), 0

    def keep(self, published: Callable[[], Stamp | None], idle: bool) -> None:
        """Compact where many small files came; when idle, note the log's state in a checkpoint, and once an hour remove what
        batches since the last time have left (after six hours in any case).

        `published`: reads the newest stamp, only where there is something to do.
        """
        head = self.log.head()
        cleaned, number = self.cleaned
        many = head.files - self.settled >= (_MANY_FILES if idle else _TOO_MANY_FILES)
        if idle and head.since_checkpoint >= _MANY_COMMITS:
            self.log.checkpoint(head)
        due = self.clock() - cleaned > (_CLEANED_EVERY if idle else _CLEANED_AT_LATEST)
        stamp = published() if many or due else None
        if stamp is None:
            return
        with settings(self.spark, {"spark.databricks.delta.commitInfo.userMetadata": stamp.to_json()}):
            if many:
                self._compact(whole=idle)
                return
            if stamp.number > number:
                with vacuuming(self.spark):
                    self._table.vacuum()
            self.cleaned = self.clock(), stamp.number

    def _compact(self, whole: bool) -> None:
        """`whole`: all small files, not only those of batches."""
        self.compactions += 1
        small = _SMALL if whole or self.compactions % _TURNS == 0 else _OF_BATCHES
        with settings(self.spark, {"spark.databricks.delta.optimize.minFileSize": str(small), **_COMPACTION}):
            self._table.optimize().executeCompaction()
        self.settled = self.log.head().files

    @property
    def _table(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.log.path)
