"""One call of a verb in the server: its state, and the events that its clients read while it runs.

An event is a dict with one of these keys: `out` and `err` (text that the command printed), `status` (what it is doing), `state`, `file`
(the text of the file that the command writes besides: its client does), and at the end `exit_code`, with `usage` (a message) if the request
was not valid.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lake.core.alone import Alone, unshared
from lake.errors import LakeError

Event = dict[str, Any]
State = Literal["waiting", "running", "done"]
Lane = Literal["reads", "writes", "applies"]
INTERRUPTED = 130
"""The exit code of a command that was interrupted, as of one that Ctrl-C ends."""
_MOST_TEXT = 64 * 1024 * 1024


class TooMuchOutputError(LakeError):
    """A command printed more than the server sends."""


@dataclass(frozen=True)
class Call:
    """What a client asks for. `options`: of the verb, as its function takes them; `writes`: whether it changes
    anything; `run`: the name of a scheduled run; `client`: what the lakejoin command says of its terminal and of its options before the
    verb; `waits`: whether a client reads the answer, so that the request ends with the last of them; `seconds`: how long it may run;
    `abandon_after`: if no client reads the answer, for how many seconds none may ask for it."""

    verb: str
    options: Mapping[str, Any]
    writes: bool
    run: str | None = None
    client: Mapping[str, Any] = field(default_factory=dict)
    waits: bool = True
    seconds: float | None = None
    abandon_after: float | None = None

    @property
    def same(self) -> object:
        """Calls with equal values have the same answer if none of them has begun, and end for the same reasons."""
        return (*self.asks, repr(sorted(self.client.items())), self.waits, self.seconds, self.abandon_after)

    @property
    def named(self) -> tuple[str, ...]:
        """The views that it names."""
        return tuple(filter(None, self.options.get("views") or [self.options.get("view")]))

    @property
    def lane(self) -> Lane:
        """Calls of a lane share its threads. An apply waits for writers while it runs, and must not take one of their threads meanwhile."""
        return ("applies" if self.verb == "apply" else "writes") if self.writes else "reads"

    @property
    def changes_any(self) -> bool:
        """Whether it changes views that it does not name."""
        return self.writes and bool(self.options.get("all_views"))

    @property
    def changes(self) -> frozenset[str]:
        """The views that nobody else may change from its start to its end, as far as it names them. An apply reserves each while it changes
        it (`Request.alone`), since most of those that it names may have nothing to be done."""
        return frozenset(self.named) if self.lane == "writes" and not self.changes_any else frozenset()

    @property
    def view(self) -> str | None:
        """The one view that it changes; None if there are several, or none."""
        return self.named[0] if self.writes and not self.changes_any and len(set(self.named)) == 1 else None

    @property
    def asks(self) -> tuple[object, ...]:
        """What is to be done: one name of a request is for one of these."""
        return (self.verb, repr(sorted(self.options.items())), self.run)


@dataclass
class Request:
    """A call, from its arrival to its answer. Times are in seconds since 1970; `jobs`: the group of its Spark jobs, which no other request
    ever has (an `id` may come again after it was forgotten); `callers`: the names under which clients asked for the same, and have not
    cancelled it; `waits`: as of the call, until a client asks that does not wait; `cancelled`: why it was cancelled; `usage`: which option
    was not valid; `error`: the class of the error that it ended with; `again`: whether the same may succeed later; `refreshes`: the results
    of the refreshes that it made; `alone`: a context in which no other request changes some views (lake/server/queue.py); `reserved`: the
    views for which it is in that context, or waits for it."""

    call: Call
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    jobs: str = field(init=False)
    state: State = "waiting"
    submitted: float = field(default_factory=time.time)
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    cancelled: str = ""
    usage: str = ""
    error: str = ""
    again: bool = False
    callers: set[str] = field(default_factory=set)
    waits: bool = field(init=False)
    refreshes: list[Mapping[str, Any]] = field(default_factory=list)
    alone: Alone = unshared
    reserved: frozenset[str] = frozenset()
    events: list[Event] = field(default_factory=list)
    size: int = 0
    _readers: dict[object, Callable[[], None]] = field(default_factory=dict)
    _left: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.jobs = f"{self.id}-{uuid.uuid4().hex[:8]}"
        self.callers.add(self.id)
        self.waits = self.call.waits

    def emit(self, event: Event) -> None:
        """Add an event, and wake the readers. Raises TooMuchOutputError for a result that is too long."""
        text = sum(len(v) for v in event.values() if isinstance(v, str))
        if ("out" in event or "file" in event) and self.size + text > _MOST_TEXT:
            raise TooMuchOutputError(f"The answer is longer than {_MOST_TEXT >> 20} MB of text. Ask for fewer rows with --limit.")
        with self._lock:
            self.size += text
            self.events.append(event)
            readers = list(self._readers.values())
        for wake in readers:
            wake()

    def begin(self) -> None:
        self.state, self.started = "running", time.time()
        self.emit({"state": "running"})

    def end(self, exit_code: int) -> None:
        """Add the last event."""
        self.exit_code, self.ended = exit_code, time.time()
        self.state = "done"
        self.emit({"exit_code": exit_code, **({"usage": self.usage} if self.usage else {})})

    @contextmanager
    def read_by(self, wake: Callable[[], None]) -> Iterator[None]:
        """Within it, a client reads the events; `wake` is called after each new one."""
        reader = object()
        with self._lock:
            self._readers[reader] = wake
        try:
            yield
        finally:
            with self._lock:
                del self._readers[reader]
                self._left = time.monotonic()

    def asked_for(self) -> None:
        """A client wants to know whether it has ended."""
        with self._lock:
            self._left = time.monotonic()

    def abandoned(self, seconds: float) -> bool:
        """Whether its clients are gone: none has read its events for so many seconds, or, if they do not wait, asked for it for as long as
        its call says."""
        limit = seconds if self.waits else self.call.abandon_after
        with self._lock:
            return limit is not None and not self._readers and time.monotonic() - self._left > limit

    def text(self, kind: Literal["out", "err"]) -> str:
        """What the command has printed so far."""
        return "".join(event[kind] for event in list(self.events) if kind in event)

    @property
    def doing(self) -> str:
        """What the command said last that it is doing."""
        return next((event["status"] for event in reversed(list(self.events)) if event.get("status")), "")

    def to_json(self) -> dict[str, Any]:
        """The request without what it printed. `seconds`: from its start until now, or its end."""
        since = self.started if self.started is not None else self.submitted
        return {
            "id": self.id,
            "verb": self.call.verb,
            "options": {name: shown(value) for name, value in self.call.options.items() if value not in (None, False, [], ())},
            "view": self.call.view,
            "state": self.state,
            "submitted": self.submitted,
            "seconds": round((self.ended or time.time()) - since, 3),
            "doing": self.doing if self.state == "running" else "",
            "exit_code": self.exit_code,
            "error": self.error,
            "again": self.again,
            "cancelled": self.cancelled,
            "refreshes": list(self.refreshes),
        }


def shown(value: Any) -> Any:
    """An option of a call among many: a document is left out."""
    return str(value) if isinstance(value, Path) else "(JSON)" if isinstance(value, Mapping) else value
