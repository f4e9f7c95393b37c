"""Records which phase a refresh is in, if a profile was asked for (lake/spark/profile.py); otherwise it costs nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, TypeVar, get_args

from lake.core.variables import assigned

T = TypeVar("T")

Name = Literal["start Spark", "read logs", "analyse", "read changes", "compute", "publish", "other"]
PHASES: tuple[Name, ...] = get_args(Name)
"""In the order in which a table shows them."""


@dataclass
class Phases:
    """The spans of the phases (by `clock`: seconds since 1970). The time of a nested phase does not count for the outer one."""

    clock: Callable[[], float] = time.time
    spans: list[tuple[Name, float, float]] = field(default_factory=list)
    _open: list[Name] = field(default_factory=lambda: ["other"])
    _since: float = field(init=False)

    def __post_init__(self) -> None:
        self._since = self.clock()

    def _end_span(self) -> None:
        now = self.clock()
        self.spans.append((self._open[-1], self._since, now))
        self._since = now

    @contextmanager
    def within(self, name: Name) -> Iterator[None]:
        """Within it, this phase is recorded."""
        self._end_span()
        self._open.append(name)
        try:
            yield
        finally:
            self._end_span()
            self._open.pop()

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the phases of the work within, in this thread."""
        try:
            with assigned(_recording, self):
                yield
        finally:
            self._end_span()


_recording: ContextVar[Phases | None] = ContextVar("phases", default=None)


def unrecorded(work: Callable[[], T]) -> T:
    """Do some work without recording its phases, in a thread that has a copy of another one's context."""
    with assigned(_recording, None):
        return work()


@contextmanager
def phase(name: Name) -> Iterator[None]:
    """Within it (or in a function that it decorates), the time counts for this phase."""
    recording = _recording.get()
    if recording is None:
        yield
        return
    with recording.within(name):
        yield
