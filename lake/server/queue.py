"""Runs requests in threads: a bounded queue, one request at a time for a view, several at once for different views.

A request that changes views waits until no other one that names them changes them. An apply finds out which views it has to change, and
reserves each while it does; requests for all views wait until it has ended. Requests that read wait for no view. A waiting request is
joined by an equal one, since its answer will be no older than that one's own would be.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial

from lake.server.request import INTERRUPTED, Lane, Request

logger = logging.getLogger(__name__)  # not of "lakejoin", whose records go to the clients: it prints to standard error
_ABANDONED_AFTER = 10.0
_LOOKS_EVERY = 0.5
_REMEMBERED_FOR = 600.0
_REMEMBERED = 1000
_REMEMBERED_TEXT = 64 * 1024 * 1024


class QueueFullError(Exception):
    """As many requests wait as may."""


class OtherRequestError(Exception):
    """The name of a request was given to another one."""


class DrainingError(Exception):
    """The server ends, and takes no more requests."""


@dataclass(frozen=True)
class Limits:
    """`parallel`: how many requests that write (and as many that read) run at once, beside one apply; `waiting`: how many wait; `seconds`:
    how long one may run, None without limit."""

    parallel: int
    waiting: int = 100
    seconds: float | None = None

    def of(self, lane: Lane) -> int:
        """How many requests of a lane run at once."""
        return 1 if lane == "applies" else self.parallel


@dataclass
class Queue:
    """The requests of a server. `run`: carries one out in the calling thread, and returns its exit code; `cancel_jobs`: cancels
    the Spark jobs of one that runs; `on_end`: called with each that ended."""

    run: Callable[[Request], int]
    cancel_jobs: Callable[[Request], None]
    limits: Limits
    on_end: Callable[[Request], None] = lambda _: None
    _ready: bool = False
    _draining: bool = False
    _drains: int = 0
    _waiting: list[Request] = field(default_factory=list)
    _running: dict[str, Request] = field(default_factory=dict)
    _known: dict[str, Request] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)
    _idle_since: float = field(default_factory=time.monotonic)
    _changed: threading.Condition = field(default_factory=lambda: threading.Condition(threading.RLock()))
    _threads: dict[Lane, ThreadPoolExecutor] = field(init=False)

    def __post_init__(self) -> None:
        lanes: tuple[Lane, ...] = ("reads", "writes", "applies")
        self._threads = {lane: ThreadPoolExecutor(self.limits.of(lane), lane) for lane in lanes}
        threading.Thread(target=self._look, name="time-outs", daemon=True).start()

    def open(self) -> None:
        """Start what waits; until then requests are only taken."""
        with self._changed:
            self._ready = True
            self._dispatch()

    def submit(self, request: Request) -> Request:
        """Take a request: the one returned answers it. Raises QueueFullError, DrainingError or OtherRequestError."""
        with self._changed:
            if (known := self._known.get(request.id)) is not None:
                if known.call.asks != request.call.asks:
                    raise OtherRequestError
                known.waits &= request.call.waits
                known.callers.add(request.id)  # it may have cancelled before
                return known
            if self._draining:
                raise DrainingError
            same = next((r for r in self._waiting if r.call.same == request.call.same), None)
            if same is not None:
                same.callers.add(request.id)
                self._known[request.id] = same
                return same
            if len(self._waiting) >= self.limits.waiting:
                raise QueueFullError
            self._known[request.id] = request
            self._waiting.append(request)
            request.emit({"state": "waiting"})
            self._dispatch()
        return request

    def get(self, request_id: str) -> Request | None:
        with self._changed:
            return self._known.get(request_id)

    def cancel(self, request: Request, reason: str, caller: str | None = None) -> None:
        """End a request; if a `caller` (a name of the request) cancels it, only once the others have done so, too. What it has published
        stays."""
        with self._changed:
            if caller is not None:
                request.callers.discard(caller)
            if request.state == "done" or request.cancelled or (request.callers and caller is not None):
                return
            request.cancelled = reason
            if request.state == "waiting":
                self._waiting.remove(request)
                self._end(request, INTERRUPTED)
                self._dispatch()
                return
            self._changed.notify_all()  # it may wait for others
        with _logged("A request was not cancelled"):  # outside the lock: it asks the JVM, which may take long
            self.cancel_jobs(request)

    def requests(self) -> list[Request]:
        """All that are known, newest first."""
        with self._changed:
            return sorted({id(r): r for r in self._known.values()}.values(), key=lambda r: -r.submitted)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def ready(self) -> bool:
        return self._ready and not self._draining

    def idle_for(self) -> float:
        """For how many seconds nothing has run or waited."""
        with self._changed:
            return 0.0 if self._running or self._waiting else time.monotonic() - self._idle_since

    def drain(self, seconds: float) -> None:
        """Take no more requests, and wait until those there are have ended; those that have not by then are cancelled. A second call ends
        the wait of the first."""
        with self._changed:
            self._draining, self._drains = True, self._drains + 1
            this = self._drains
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._idle or self._drains > this, seconds)
            self._ready = False  # nothing starts any more
            unfinished = [*self._waiting, *self._running.values()]
        for request in unfinished:
            self.cancel(request, "the server ended")
        with self._changed:
            self._changed.wait_for(lambda: self._idle, _ABANDONED_AFTER)
        self._ended.set()

    @property
    def _idle(self) -> bool:
        return not self._running and not self._waiting

    def _dispatch(self) -> None:
        """Start each waiting request whose views and lane are free. Called under the lock."""
        running = self._running.values()
        taken = {view for r in running for view in r.call.changes | r.reserved}
        applied = any(r.call.lane == "applies" for r in running)
        for request in list(self._waiting) if self._ready else []:
            call = request.call
            lane = [r for r in self._running.values() if r.call.lane == call.lane]
            free = taken.isdisjoint(call.changes) and not (applied and call.changes_any)
            taken |= call.changes  # also of one that goes on waiting: later ones do not overtake it for ever
            applied |= call.lane == "applies"
            if len(lane) < self.limits.of(call.lane) and free:
                self._waiting.remove(request)
                self._running[request.id] = request
                request.alone = partial(self._alone, request)
                request.begin()
                self._threads[call.lane].submit(copy_context().run, self._carry_out, request)

    @contextmanager
    def _alone(self, request: Request, views: Collection[str]) -> Iterator[bool]:
        """Within it, no other request changes these views; gives whether one did when it was asked for. Raises KeyboardInterrupt if the
        request is cancelled, as Ctrl-C does in a command without a server: it changes no further view.

        Only an apply reserves views, and one apply runs at a time, so no two requests wait for each other.
        """
        doing = request.doing
        try:
            with self._changed:
                request.reserved = frozenset(views)  # from now on no request starts that changes them
                waits = self._is_changed(request)
                if waits:
                    request.emit({"status": f"waiting for requests that change {', '.join(sorted(views))}"})
                self._changed.wait_for(lambda: request.cancelled or not self._is_changed(request))
            if waits:
                request.emit({"status": doing})
            if request.cancelled:
                raise KeyboardInterrupt
            yield waits
        finally:
            with self._changed:
                request.reserved = frozenset()
                self._dispatch()

    def _is_changed(self, request: Request) -> bool:
        """Whether another request may change a view that this one has reserved."""
        others = [r.call for r in self._running.values() if r is not request]
        return bool(request.reserved) and any(call.changes_any or not request.reserved.isdisjoint(call.changes) for call in others)

    def _carry_out(self, request: Request) -> None:
        exit_code = 1
        try:
            exit_code = self.run(request)
        except BaseException as error:
            request.emit({"err": f"lakejoin: {type(error).__name__}: {error}\n"})
        finally:
            with self._changed:
                del self._running[request.id]
                self._end(request, INTERRUPTED if request.cancelled and exit_code else exit_code)
                self._dispatch()

    def _end(self, request: Request, exit_code: int) -> None:
        if exit_code == INTERRUPTED:
            request.emit({"err": f"lakejoin: interrupted ({request.cancelled}); what was published stays as it was.\n"})
        request.end(exit_code)
        self._idle_since = time.monotonic()
        with _logged("A request was not counted"):
            self.on_end(request)
        self._forget()
        self._changed.notify_all()

    def _forget(self) -> None:
        """Forget answers that are old, and more than enough, those that ended first. Called under the lock."""
        kept, text, ended = 0, 0, [(r.ended, name, r) for name, r in self._known.items() if r.ended is not None]
        for at, name, request in sorted(ended, key=lambda one: -one[0]):
            kept, text = kept + 1, text + request.size
            if time.time() - at > _REMEMBERED_FOR or kept > _REMEMBERED or (text > _REMEMBERED_TEXT and kept > 1):
                del self._known[name]

    def _look(self) -> None:
        """Cancel what runs too long, and what nobody waits for any more, until the queue has drained."""
        while not self._ended.wait(_LOOKS_EVERY):
            for request, reason in list(self._overdue()):
                self.cancel(request, reason)

    def _overdue(self) -> Iterator[tuple[Request, str]]:
        with self._changed:
            unfinished = [*self._waiting, *self._running.values()]
        for request in unfinished:
            limit = min(filter(None, (self.limits.seconds, request.call.seconds)), default=None)
            since = request.started
            if limit is not None and since is not None and time.time() - since > limit:
                yield request, f"it ran for more than {limit:g} s"
            elif request.abandoned(_ABANDONED_AFTER):
                yield request, "its client is gone"


@contextmanager
def _logged(what: str) -> Iterator[None]:
    """Within it, errors are logged: they must neither end the thread of the time-outs, nor keep what waits from starting."""
    try:
        yield
    except Exception:
        logger.exception(what)
