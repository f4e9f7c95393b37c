"""The real-time path of one view, and of all of them: batch after batch, each a refresh of the view's real-time table.

    wait for new commits of the sources → take as many as a batch may hold → refresh to them → say how it went

A batch is exact at its snapshot, as every refresh is, and its commit names that snapshot: what it has processed and what its lookups have
read are one version of each source. What fails is tried again, later each time, until the view has failed; what a person must mend
fails at once. One view's failure is no other's.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from lake.config.models import RealtimeConfig
from lake.core.kinds import LEASE_FOLDER
from lake.core.results import RefreshResult
from lake.core.snapshots import Snapshot
from lake.delta.log import Log
from lake.delta.sidecar import Folder
from lake.errors import ConcurrencyError, DefinitionChangedError, ExpiredError, KeyViolationError, LakeError, QueryError, SourceError
from lake.lakehouse import Lakehouse
from lake.realtime.lease import Lease
from lake.realtime.metrics import Metrics
from lake.realtime.steps import Step
from lake.realtime.upkeep import Upkeep
from lake.spark.failures import passing
from lake.spark.session import own_session

logger = logging.getLogger("lakejoin")
_RENEWED_EVERY = 5.0
_LONGEST_WAIT = 60.0
_ERRORS = (LakeError, PySparkException, Py4JError)


@dataclass
class RealtimePath:
    """One view's. `lake`: on "eventual"; `stop`: ends it after the batch under way; `drain`: it ends when it has processed what was there
    at its start; `on_batch`: told of each batch that changed something. Afterwards `exit_code` is what a command would end with."""

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
        """Run until stopped, drained or failed; an error ends in `metrics.error` and `exit_code`. `reset`: start again from the strong
        path's rows."""
        try:
            log, copied = self._table()
            lease = Lease.take(self.view, Folder(self.lake.spark, f"{log.path}/{LEASE_FOLDER}"))
        except Exception as error:  # whatever it is, it is this view's alone
            self._fail(error)
            return
        with self._renewing(lease):
            try:
                if reset and not copied:
                    self.lake.rebuild(self.view)
                stamp = self.lake.stamp(self.view)
                self._since = stamp.snapshot if stamp is not None else None
                self._batches(Upkeep(own_session(self.lake.spark), log))
            except Exception as error:
                self._fail(error)

    def _table(self) -> tuple[Log, bool]:
        """The view's real-time table, and whether it was made just now."""
        log = self.lake.table_log(self.view)
        if log is not None:
            return log, False
        self.lake.refresh(self.view)
        log = self.lake.table_log(self.view)
        assert log is not None
        return log, True

    @contextmanager
    def _renewing(self, lease: Lease) -> Iterator[None]:
        """Within it the lease says every few seconds how the path is doing, and afterwards how it ended."""
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
                with suppress(ConcurrencyError, Py4JError):  # it ends all the same
                    lease.renew(self.metrics.state, self.metrics.to_json())

    def _renew(self, lease: Lease, ended: threading.Event) -> None:
        while not ended.wait(_RENEWED_EVERY):
            try:
                lease.renew(self.metrics.state, self.metrics.to_json())
            except ConcurrencyError as error:
                self._lost = error
                return
            except Py4JError as error:
                logger.warning("the lease could not be renewed: %s", error)

    def _batches(self, upkeep: Upkeep) -> None:
        failed = 0
        while not self.stop.is_set():
            started = time.monotonic()
            try:
                moved = self._batch()
                if self._drained():
                    self._keep_once(upkeep)
                    return
                upkeep.keep(lambda: self.lake.stamp(self.view), idle=not moved)
            except _ERRORS as error:
                failed += 1
                if not passing(error) or failed >= self.settings.attempts:
                    raise
                self._wait_again(error, failed)
                continue
            failed, self.metrics.state, self.metrics.error = 0, "running", ""
            if not self.metrics.backlog_versions:
                self.stop.wait(max(0.0, started + self.settings.trigger_seconds - time.monotonic()))

    def _keep_once(self, upkeep: Upkeep) -> None:
        """Before the path ends: it has done what it was to do, whatever comes of this."""
        try:
            upkeep.keep(lambda: self.lake.stamp(self.view), idle=True)
        except _ERRORS as error:
            logger.warning("the table of view %s could not be kept small: %s", self.view, error)

    def _batch(self) -> bool:
        """One batch; whether there was anything to do."""
        if self._lost is not None:
            raise self._lost
        step = Step(self._since, self.settings.buffer_capacity, self.settings.max_files, on_chosen=self.metrics.begin)
        try:
            result = self.lake.refresh(self.view, step)
        except (KeyViolationError, QueryError):
            if not step.waiting:
                raise
            step = replace(step, rows=sys.maxsize, files=sys.maxsize)  # a later commit may have mended it
            result = self.lake.refresh(self.view, step)
        self._since = result.until
        self._goal = step.heads if self._goal is None else self._goal
        self.metrics.end(step, result, self.lake.cache_of(self.view))
        if result.mode != "none" and self.on_batch is not None:
            self.on_batch(self.metrics, result)
        if self.drain and result.mode == "none" and not self._drained():
            raise ConcurrencyError(f"View {self.view!r}: {result.reason}. Run that one's path first, or `lakejoin realtime --all`.")
        return result.mode != "none"

    def _drained(self) -> bool:
        since = dict(self._since or {})  # a function's query need not read all that it is given
        return self.drain and all(since[source] >= version for source, version in (self._goal or {}).items() if source in since)

    def _wait_again(self, error: Exception, failed: int) -> None:
        self.metrics.failures += 1
        self.metrics.state, self.metrics.error = "backing off", str(error)
        wait = min(_LONGEST_WAIT, self.settings.trigger_seconds * 2**failed)
        logger.warning("view %s: %s; trying again in %.0f s", self.view, error, wait)
        self.stop.wait(wait)

    def _fail(self, error: Exception) -> None:
        self.metrics.failures += 1
        self.metrics.state, self.exit_code = "failed", getattr(error, "exit_code", 1)
        again = isinstance(error, SourceError | ExpiredError | DefinitionChangedError)
        then = f' Then start its real-time path again from the strong one: "lakejoin realtime {self.view} --reset".' if again else ""
        self.metrics.error = f"{error}{then}"
        logger.error("view %s failed: %s", self.view, self.metrics.error)


def run_all(paths: Sequence[RealtimePath], reset: bool = False) -> int:
    """Run the paths beside each other until all have ended (or, to drain, one after the other, in their order); returns the exit code."""
    if paths and paths[0].drain:
        for path in paths:
            path.run(reset)
    else:
        threads = [threading.Thread(target=path.run, args=(reset,), name=path.view, daemon=True) for path in paths]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(0.2)  # so that signals are heard in between
    return next((path.exit_code for path in paths if path.exit_code), 0)
