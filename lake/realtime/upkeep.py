"""Keeping a real-time table small: a commit a second leaves as many small files. Done where no batch waits, or where it can wait no longer.

Neither compaction nor the removal of old files changes rows: the path goes on from the newest stamp below their commits.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from lake.deltalog import Log

_MANY_FILES = 64
_TOO_MANY_FILES = 512
_CLEANED_EVERY = 3_600.0


@dataclass
class Upkeep:
    """One table's. `spark`: a session of its own; `cleaned`: when old files were removed last, by the monotonic clock."""

    spark: SparkSession
    log: Log
    cleaned: float = field(default_factory=time.monotonic)
    compactions: int = 0

    def keep(self, idle: bool) -> None:
        """Compact where files are many; remove what nobody can read any more once an hour, when idle."""
        files = self.log.head().files
        if files >= _TOO_MANY_FILES or (idle and files >= _MANY_FILES):
            self._table.optimize().executeCompaction()
            self.compactions += 1
        elif idle and time.monotonic() - self.cleaned > _CLEANED_EVERY:
            self._table.vacuum()
            self.cleaned = time.monotonic()

    @property
    def _table(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.log.path)
