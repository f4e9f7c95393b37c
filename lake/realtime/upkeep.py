"""Keeping a real-time table small: a commit a second leaves as many small files. Done where no batch waits, or where it can wait no longer.

Neither compaction nor the removal of old files changes rows. Their commits carry the newest stamp again: the log is kept for a day only.
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
_TOO_MANY_FILES = 512
_CLEANED_EVERY = 3_600.0


@dataclass
class Upkeep:
    """One table's. `spark`: a session of its own; `clock`: in seconds; `cleaned`: when old files were removed
    last, and after which batch."""

    spark: SparkSession
    log: Log
    clock: Callable[[], float] = time.monotonic
    cleaned: tuple[float, int] = field(init=False)

    def __post_init__(self) -> None:
        self.cleaned = self.clock(), 0

    def keep(self, published: Callable[[], Stamp | None], idle: bool) -> None:
        """Compact where files are many; once an hour, when idle, remove what batches since the last time have left.

        `published`: reads the newest stamp, only where there is something to do.
        """
        files = self.log.head().files
        cleaned, number = self.cleaned
        many = files >= _TOO_MANY_FILES or (idle and files >= _MANY_FILES)
        stamp = published() if many or (idle and self.clock() - cleaned > _CLEANED_EVERY) else None
        if stamp is None:
            return
        with settings(self.spark, {"spark.databricks.delta.commitInfo.userMetadata": stamp.to_json()}):
            if many:
                self._table.optimize().executeCompaction()
            elif stamp.number > number:
                with vacuuming(self.spark):
                    self._table.vacuum()
                self.cleaned = self.clock(), stamp.number

    @property
    def _table(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.log.path)
