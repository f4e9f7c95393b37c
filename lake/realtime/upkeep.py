"""Keeping a real-time table small: a commit a second leaves as many small files. Done where no batch waits, or where it can wait no longer.

Neither compaction nor the removal of old files changes rows. Their commits carry the newest stamp again: the log is kept for a day only.
Only small files are compacted, however large the table.
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

_MANY_FILES = 64
_TOO_MANY_FILES = 192
"""Files that came since the last compaction."""
_MANY_COMMITS = 50
"""Commits since the last checkpoint; Delta itself makes one after 500 (view_table.py), within a batch."""
_CLEANED_EVERY = 3_600.0
_SMALL_FILES = {
    "spark.databricks.delta.optimize.minFileSize": str(32 << 20),
    "spark.databricks.delta.optimize.maxFileSize": str(128 << 20),
    "spark.databricks.delta.optimize.maxDeletedRowsRatio": "0.5",
}


@dataclass
class Upkeep:
    """One table's. `spark`: a session of its own; `clock`: in seconds; `cleaned`: when old files were removed
    last, and after which batch; `settled`: how many files the last compaction left."""

    spark: SparkSession
    log: Log
    clock: Callable[[], float] = time.monotonic
    cleaned: tuple[float, int] = field(init=False)
    settled: int = 0

    def __post_init__(self) -> None:
        self.cleaned = self.clock(), 0

    def keep(self, published: Callable[[], Stamp | None], idle: bool) -> None:
        """Compact where many small files came; when idle, note the log's state in a checkpoint, and once an hour remove what batches since
        the last time have left.

        `published`: reads the newest stamp, only where there is something to do.
        """
        head = self.log.head()
        came = head.files - self.settled
        cleaned, number = self.cleaned
        many = came >= _TOO_MANY_FILES or (idle and came >= _MANY_FILES)
        if idle and head.since_checkpoint >= _MANY_COMMITS:
            self.log.checkpoint(head)
        stamp = published() if many or (idle and self.clock() - cleaned > _CLEANED_EVERY) else None
        if stamp is None:
            return
        with settings(self.spark, {"spark.databricks.delta.commitInfo.userMetadata": stamp.to_json(), **_SMALL_FILES}):
            if many:
                self._table.optimize().executeCompaction()
                self.settled = self.log.head().files
            elif stamp.number > number:
                with vacuuming(self.spark):
                    self._table.vacuum()
                self.cleaned = self.clock(), stamp.number

    @property
    def _table(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.log.path)
