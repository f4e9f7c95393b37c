"""Keeps a real-time table small: compacts the files of batches, writes checkpoints, and removes old files. No rows change.

A commit a second leaves a small file a second, and each file makes batches slower. Only small files are compacted. Most compactions take
only the files of batches; every sixteenth takes all small files. So each row is rewritten a few times only, and the next batch rarely
waits for long. The commit of a compaction repeats the newest stamp, because the log is stored for a day only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import accumulate

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from lake.core.constants import LEASE_FOLDER
from lake.core.stamp import Stamp
from lake.delta.actions import FileAction
from lake.delta.log import Log
from lake.delta.pinned import Pinned
from lake.delta.sidecar import Folder
from lake.delta.transaction import Transaction
from lake.spark.session import settings, vacuuming
from lake.views.table import app_id

_MANY_FILES = 32
"""Compact after this many new files."""
_FULL_EVERY = 16
"""Every sixteenth compaction takes all small files; the others take those of batches."""
_MANY_COMMITS = 50
"""Commits since the last checkpoint. Delta itself writes one after 500 (views/table.py), which delays a batch."""
_CLEANED_EVERY, _CLEANED_AT_LATEST = 3_600.0, 21_600.0
_CLEANED = "cleaned"
"""A file beside the leases, written when old files were last removed: paths that end soon, one after the other, remove them too."""
_SMALL_BYTES, _BATCH_BYTES = 32 << 20, 4 << 20
"""A file up to this size is compacted by a full compaction, by the others."""
_TARGET_BYTES = 128 << 20
"""The total size of the files that are compacted into one."""
_MOSTLY_DELETED = 0.5
"""A full compaction also takes a large file if this share of its rows is deleted."""


@dataclass
class TableMaintenance:
    """Maintains one table. `spark`: a session of its own; `clock`: in seconds; `cleaned`: when old files were last removed, and the number
    of the batch before; `settled`: the number of files after the last compaction; `compactions`: how many there were."""

    spark: SparkSession
    log: Log
    clock: Callable[[], float] = time.monotonic
    cleaned: tuple[float, int] = field(init=False)
    settled: int = 0
    compactions: int = 0

    def __post_init__(self) -> None:
        self.cleaned = self.clock(), 0

    def run(self, published: Callable[[], Stamp | None], idle: bool) -> None:
        """Compact if there are many new files. If idle, write a checkpoint of the log when due, and remove old files once an
        hour (after six hours also if not idle).

        `published` reads the newest stamp; it is called only if there is something to do.
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
            self._remove_old_files()
        self.cleaned = self.clock(), stamp.number

    def end(self, published: Callable[[], Stamp | None]) -> None:
        """The same before the path ends, however short it was: old files are removed if no path did so within the last hour."""
        self.run(published, idle=True)
        last = self._folder.written(_CLEANED)
        if not last:
            self._folder.create(_CLEANED, "")  # the table is new: nothing in it is old
        elif time.time() - last > _CLEANED_EVERY:
            self._remove_old_files()

    @property
    def _folder(self) -> Folder:
        return Folder(self.spark, f"{self.log.path}/{LEASE_FOLDER}")

    def _remove_old_files(self) -> None:
        # without commits of VACUUM, which could follow a batch of another process
        with settings(self.spark, {"spark.databricks.delta.vacuum.logging.enabled": "false"}), vacuuming(self.spark):
            DeltaTable.forPath(self.spark, self.log.path).vacuum()
        self._folder.replace(_CLEANED, "")

    def _compact(self, head: Pinned, stamp: Stamp) -> None:
        """Compact small files into one."""
        self.compactions += 1
        chosen = _chosen(head.data_files(), full=self.compactions % _FULL_EVERY == 0)
        if chosen:
            transaction = Transaction(head)
            if transaction.newest(app_id(stamp.view)) != stamp.number:
                return  # another process committed a batch, whose stamp must stay the newest
            transaction.rewrite(chosen)
            transaction.commit_rewritten(replace(stamp, base=head.version.number).to_json())  # earlier commits may be removed from the log
        self.settled = self.log.head().files


def _chosen(files: Iterable[FileAction], full: bool) -> set[str]:
    """The paths of the files to compact, the smallest first; none if nothing is gained. `full`: not only the files of batches."""
    limit = _SMALL_BYTES if full else _BATCH_BYTES
    candidates = sorted((file for file in files if file.bytes <= limit or (full and _stale(file))), key=lambda file: file.bytes)
    sizes = accumulate(file.bytes for file in candidates)
    chosen = [file for file, size in zip(candidates, sizes, strict=True) if size <= _TARGET_BYTES] or candidates[:1]
    return {file.path for file in chosen} if len(chosen) > 1 or any(map(_stale, chosen)) else set()


def _stale(file: FileAction) -> bool:
    return file.rows is not None and file.deleted > _MOSTLY_DELETED * (file.rows + file.deleted)
