"""Keeping a real-time table small: a commit a second leaves as many small files, each of which makes a batch a little dearer.

Neither compaction nor the removal of old files changes rows. A compaction's commit carries the newest stamp again: the log is kept for a
day only.
Only small files are compacted, however large the table: those of batches, into files that are left alone for sixteen times, so that each
row is rewritten a few times only, and a batch that comes meanwhile seldom waits for more than their rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import accumulate

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from lake.core.stamp import Stamp
from lake.delta.actions import FileAction
from lake.delta.log import Log
from lake.delta.pinned import Pinned
from lake.delta.transaction import Transaction
from lake.spark.session import settings, vacuuming
from lake.views.table import app_id

_MANY_FILES = 32
"""Files that came since the last compaction."""
_TURNS = 16
"""Every so many compactions are of all small files, the others of those of batches."""
_MANY_COMMITS = 50
"""Commits since the last checkpoint; Delta itself makes one after 500 (view_table.py), within a batch."""
_CLEANED_EVERY, _CLEANED_AT_LATEST = 3_600.0, 21_600.0
_SMALL, _OF_BATCHES = 32 << 20, 4 << 20
"""Bytes up to which a file is compacted."""
_LARGEST = 128 << 20
"""Bytes of the files that become one."""
_MOSTLY_DELETED = 0.5
"""The share of its deleted rows from which a large file is compacted where all small files are."""


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
        """Compact where many files came; when idle, note the log's state in a checkpoint, and once an hour remove what
        batches since the last time have left (after six hours in any case).

        `published`: reads the newest stamp, only where there is something to do.
        """
        head = self.log.head()
        cleaned, number = self.cleaned
        many = head.files - self.settled >= _MANY_FILES
        if idle and head.since_checkpoint >= _MANY_COMMITS:
            self.log.checkpoint(head)
        due = self.clock() - cleaned > (_CLEANED_EVERY if idle else _CLEANED_AT_LATEST)
        stamp = published() if many or due else None
        if stamp is None:
            return
        if many:
            self._compact(head, stamp)
            return
        if stamp.number > number:
            # without commits of its own, which could come after a batch of another process
            with settings(self.spark, {"spark.databricks.delta.vacuum.logging.enabled": "false"}), vacuuming(self.spark):
                DeltaTable.forPath(self.spark, self.log.path).vacuum()
        self.cleaned = self.clock(), stamp.number

    def _compact(self, head: Pinned, stamp: Stamp) -> None:
        """Make one file of small ones."""
        self.compactions += 1
        chosen = _chosen(head.data_files(), whole=self.compactions % _TURNS == 0)
        if chosen:
            transaction = Transaction(head)
            if transaction.newest(app_id(stamp.view)) != stamp.number:
                return  # another process committed a batch: its stamp must stay the newest
            transaction.rewrite(chosen)
            transaction.commit_rewritten(replace(stamp, base=head.version.number).to_json())  # the commits before may be cleaned away
        self.settled = self.log.head().files


def _chosen(files: Iterable[FileAction], whole: bool) -> set[str]:
    """The paths of the files to make one of, the smallest first; none where nothing is gained. `whole`: not only those of batches."""
    most = _SMALL if whole else _OF_BATCHES
    candidates = sorted((file for file in files if file.bytes <= most or (whole and _stale(file))), key=lambda file: file.bytes)
    sizes = accumulate(file.bytes for file in candidates)
    chosen = [file for file, size in zip(candidates, sizes, strict=True) if size <= _LARGEST] or candidates[:1]
    return {file.path for file in chosen} if len(chosen) > 1 or any(map(_stale, chosen)) else set()


def _stale(file: FileAction) -> bool:
    return file.rows is not None and file.deleted > _MOSTLY_DELETED * (file.rows + file.deleted)
