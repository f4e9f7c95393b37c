"""Runs the real-time path of one view, or of several: batch after batch, each a refresh of the view's real-time table.

    wait for new commits of the sources → choose the versions of a batch → refresh to them → report

A batch is exact at its snapshot, as every refresh is, and its commit names that snapshot. A failed batch is retried, after a longer wait
each time, until the number of attempts is used up; a failure that a person must correct ends the path immediately. The failure of one
view does not stop the others.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from lake.config.models import RealtimeConfig
from lake.core.constants import LEASE_FOLDER
from lake.core.results import RefreshResult
from lake.core.snapshots import Snapshot
from lake.delta.lease import Lease
from lake.delta.log import Log
from lake.delta.sidecar import Folder
from lake.errors import ConcurrencyError, DefinitionChangedError, ExpiredError, KeyViolationError, LakeError, QueryError, SourceError
from lake.lakehouse import Lakehouse
from lake.realtime.batch import Batch
from lake.realtime.metrics import Metrics
from lake.realtime.table_maintenance import TableMaintenance
from lake.spark.failures import SPARK_ERRORS, as_lake_error, is_transient, safely
from lake.spark.session import own_session

logger = logging.getLogger("lakejoin")
_RENEW_EVERY = 5.0
_LONGEST_WAIT = 60.0
_ERRORS = (LakeError, *SPARK_ERRORS)


@dataclass
class RealtimePath:
    """The real-time path of one view. `lake`: on "eventual"; `stop`: set it to end the path after the current batch; `drain`: end when the
    versions that were the newest at the start are processed; `on_batch`: called after each batch that changed something. Afterwards
    `exit_code` is that of a command."""

    lake: Lakehouse
    view: str
    stop: threading.Event
    drain: bool = False
    on_batch: Callable[[Metrics, RefreshResult], None] | None = None
    exit_code: int = 0
    metrics: Metrics = field(init=False)
    _since: Snapshot | None = None
    _goal: dict[str, int] | None = None
    _lost: ConcurrencyError | None = None

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.view)
        self.settings = self.lake.config.view(self.view).realtime or RealtimeConfig()

    def run(self, reset: bool = False) -> None:
        """Run until stopped, drained or failed; an error is stored in `metrics.error` and `exit_code`. `reset`: start again from the
        rows of the strong path."""
        try:
            log, created = self._table()
            lease = Lease.take(self.view, Folder(self.lake.spark, f"{log.path}/{LEASE_FOLDER}"))
        except Exception as error:  # no error may stop the other views
            self._fail(error)
            return
        with self._renewing(lease):
            try:
                if reset and not created:
                    self.lake.rebuild(self.view)
                stamp = self.lake.stamp(self.view)
                self._since = stamp.snapshot if stamp is not None else None
                self._batches(TableMaintenance(own_session(self.lake.spark), log))
            except Exception as error:
                self._fail(error)

    def _table(self) -> tuple[Log, bool]:
        """The log of the real-time table, and whether the table was just created."""
        log = self.lake.table_log(self.view)
        if log is not None:
            return log, False
        self.lake.refresh(self.view)
        log = self.lake.table_log(self.view)
        assert log is not None
        return log, True

    @contextmanager
    def _renewing(self, lease: Lease) -> Iterator[None]:
        """Within it, the lease is renewed with the metrics every few seconds; afterwards it says how the path ended."""
        ended = threading.Event()
        thread = threading.Thread(target=self._renew, args=(lease, ended), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            if self._lost is None:
                self.metrics.state = "failed" if self.exit_code else "stopped"
                with suppress(ConcurrencyError, *SPARK_ERRORS):  # the path ends anyway
                    lease.renew(self.metrics.state, self.metrics.to_json())

    def _renew(self, lease: Lease, ended: threading.Event) -> None:
        while not ended.wait(_RENEW_EVERY):
            try:
                lease.renew(self.metrics.state, self.metrics.to_json())
            except ConcurrencyError as error:
                self._lost = error
                return
            except SPARK_ERRORS as error:
                logger.warning("%s", self._reported(error, "Renewing the lease of view"))

    def _batches(self, maintenance: TableMaintenance) -> None:
        failed = 0
        while not self.stop.is_set():
            started = time.monotonic()
            try:
                moved = self._batch()
                if self._drained():
                    self._maintain_before_end(maintenance)
                    return
                maintenance.run(lambda: self.lake.stamp(self.view), idle=not moved)
            except _ERRORS as error:
                failed += 1
                if not is_transient(error) or failed >= self.settings.attempts:
                    raise
                self._wait_to_retry(error, failed)
                continue
            failed, self.metrics.state, self.metrics.error = 0, "running", ""
            if not self.metrics.backlog_versions:
                self.stop.wait(max(0.0, started + self.settings.trigger_seconds - time.monotonic()))

    def _maintain_before_end(self, maintenance: TableMaintenance) -> None:
        """Maintain the table before the path ends. A failure is only logged: all batches are published."""
        try:
            maintenance.end(lambda: self.lake.stamp(self.view))
        except _ERRORS as error:
            logger.warning("%s", self._reported(error, "Maintaining the real-time table of view"))

    def _batch(self) -> bool:
        """Run one batch; returns whether there was anything to do."""
        if self._lost is not None:
            raise self._lost
        batch = Batch(self._since, self.settings.buffer_capacity, self.settings.max_files, on_chosen=self.metrics.begin)
        try:
            result = self.lake.refresh(self.view, batch)
        except (KeyViolationError, QueryError):
            if not batch.waiting:
                raise
            batch = replace(batch, max_rows=sys.maxsize, max_files=sys.maxsize)  # a later commit may have corrected it
            result = self.lake.refresh(self.view, batch)
        self._since = result.until
        self._goal = batch.heads if self._goal is None else self._goal
        self.metrics.end(batch, result, self.lake.cache_of(self.view))
        if result.mode != "none" and self.on_batch is not None:
            self.on_batch(self.metrics, result)
        if self.drain and result.mode == "none" and not self._drained():
            raise ConcurrencyError(f"View {self.view!r}: {result.reason}. Run the path of that view first, or `lakejoin realtime --all`.")
        return result.mode != "none"

    def _drained(self) -> bool:
        since = dict(self._since or {})  # a function need not read all tables that it is given
        return self.drain and all(since[source] >= version for source, version in (self._goal or {}).items() if source in since)

    def _reported(self, error: Exception, doing: str = "The real-time path of view") -> LakeError:
        return as_lake_error(error, f"{doing} {self.view!r}", safely(lambda: self.lake.shown_of(self.view)))

    def _wait_to_retry(self, error: Exception, failed: int) -> None:
        self.metrics.failures += 1
        self.metrics.state, self.metrics.error = "backing off", str(self._reported(error))
        wait = min(_LONGEST_WAIT, self.settings.trigger_seconds * 2**failed)
        logger.warning("view %s: %s; retrying in %.0f s", self.view, self.metrics.error, wait)
        self.stop.wait(wait)

    def _fail(self, error: Exception) -> None:
        self.metrics.failures += 1
        self.metrics.state, self.exit_code = "failed", getattr(error, "exit_code", 1)
        reset = isinstance(error, SourceError | ExpiredError | DefinitionChangedError)
        then = (
            f' Then start its real-time path again from the rows of the strong path: "lakejoin realtime {self.view} --reset".'
            if reset
            else ""
        )
        self.metrics.error = f"{self._reported(error)}{then}"
        logger.error("view %s failed: %s", self.view, self.metrics.error)


def run_all(paths: Sequence[RealtimePath], reset: bool = False) -> int:
    """Run the paths in parallel until all have ended (with `drain` one after the other, in their order); returns the exit code."""
    if paths and paths[0].drain:
        for path in paths:
            path.run(reset)
    else:
        threads = [threading.Thread(target=path.run, args=(reset,), name=path.view, daemon=True) for path in paths]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(0.2)  # so that signals are handled in between
    return next((path.exit_code for path in paths if path.exit_code), 0)
