"""How far each view is behind its sources, read in the background at most twice a minute, for the page and the metrics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from lake.core.results import SourceStatus

_SECONDS = 30.0


@dataclass
class Lags:
    """`read`: reads the status of all views; `ready`: whether that is possible yet."""

    read: Callable[[], Sequence[SourceStatus]]
    ready: Callable[[], bool]
    _found: Sequence[SourceStatus] = ()
    _asked: float = -_SECONDS
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "lags"))  # one: each has a thread in the JVM
    _reading: Future[None] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def last(self) -> Sequence[SourceStatus]:
        """What was read last; older than half a minute, it is read again for the next call."""
        with self._lock:
            reads = self._reading is not None and not self._reading.done()  # with many views it may take longer
            if self.ready() and not reads and time.monotonic() - self._asked >= _SECONDS:
                self._asked = time.monotonic()
                self._reading = self._thread.submit(self._read)
        return self._found

    def _read(self) -> None:
        with suppress(Exception):  # the lags are then left as they were; `lakejoin status` says what is wrong
            self._found = self.read()
