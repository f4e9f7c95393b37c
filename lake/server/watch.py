"""`lakejoin serve --watch`: refreshes views when their `schedule` is due, or (`refresh: changes`) when a source has a new version.

What it remembers is not needed: after a start, all groups are refreshed once, which does nothing where nothing has changed. A refresh that
fails is tried again, after 30 seconds at first, then after twice as long each time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from croniter import croniter

from lake.config.groups import Group, groups
from lake.config.models import Config
from lake.core.formatting import time_text
from lake.errors import LakeError
from lake.server.queue import DrainingError, QueueFullError
from lake.server.request import Request

_FIRST_WAIT, _LONGEST_WAIT, _MOST_DOUBLINGS = 30.0, 600.0, 5
_ENDS_WITHIN = 5.0


@dataclass
class _State:
    """What is known of a group: its running request, the versions of its sources when that was sent, its schedule, when it is due next
    (None: when a source changes), and after how many failures it is tried again at `retry`."""

    request: Request | None = None
    seen: Mapping[str, int | None] | None = None
    schedule: str | None = None
    due: float | None = None
    failures: int = 0
    retry: float | None = None


@dataclass
class Watch:
    """`config`: the configuration as it is now, read once for a look; `newest`: the newest version of a table or view of it that is there
    (raises LakeError); `submit`: sends the refresh of some views; `say`: prints a line; `seconds`: between two looks."""

    config: Callable[[], Config]
    newest: Callable[[Config, str, int | None], int | None]
    submit: Callable[[Group], Request]
    say: Callable[[str], None]
    seconds: float
    clock: Callable[[], float] = time.time
    _states: dict[str, _State] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)
    _said_before: set[str] = field(default_factory=set)
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Watch in a thread of its own until `end`."""
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join(_ENDS_WITHIN)

    def look(self) -> None:
        """Look once at all groups, and refresh those that are due."""
        self._said_before, self._said = self._said, set()
        try:
            config = self.config()
            found, wrong = groups(config)
        except LakeError as error:
            self._once(str(error))
            return
        for reason in wrong.values():
            self._once(str(reason))
        for group in found:
            if group.schedule is not None or group.sources:
                try:
                    self._look_at(group, self._states.setdefault(group.name, _State()), config)
                except DrainingError:
                    raise
                except Exception as error:  # the other groups must go on
                    self._once(f"Group {group.name!r} can't be watched: {type(error).__name__}: {error}")

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                self.look()
            except DrainingError:
                return
            except Exception as error:  # the watch must go on
                self._once(f"The watch failed: {type(error).__name__}: {error}")
            self._end.wait(self.seconds)

    def _look_at(self, group: Group, state: _State, config: Config) -> None:
        if state.request is not None:
            if state.request.state != "done":
                return
            self._ended(group, state)
        now = self.clock()
        if state.schedule != group.schedule:  # it was edited
            state.schedule, state.due = group.schedule, _next(group.schedule, now)
        versions = self._versions(group, state, config)
        if not self._is_due(group, state, now, versions):
            return
        with suppress(QueueFullError):  # it stays due
            state.request = self.submit(group)
            state.seen, state.retry = versions, None
            state.due = _next(group.schedule, now)

    def _is_due(self, group: Group, state: _State, now: float, versions: Mapping[str, int | None]) -> bool:
        if state.retry is not None:
            return now >= state.retry
        if state.seen is None:
            return True
        if group.schedule is not None:
            return state.due is None or now >= state.due
        return versions != state.seen

    def _versions(self, group: Group, state: _State, config: Config) -> Mapping[str, int | None]:
        """The newest versions of the group's sources; None for one that is not there yet, or can't be read."""
        found = dict[str, int | None]()
        for source in group.sources:
            found[source] = None
            with suppress(LakeError):
                found[source] = self.newest(config, source, (state.seen or {}).get(source))
        return found

    def _ended(self, group: Group, state: _State) -> None:
        """Say how a refresh ended, and when it is tried again if it failed."""
        request, state.request = state.request, None
        assert request is not None
        at = time_text(self.clock())
        for found in request.refreshes:
            rows = f"+{found['rows_inserted']:,} -{found['rows_deleted']:,} rows"
            self.say(f"{at} {found['view']}: {found['mode']}, {rows} ({found['seconds']:.1f} s)")
        if not request.exit_code:
            state.failures = 0
            return
        wait = min(_FIRST_WAIT * 2 ** min(state.failures, _MOST_DOUBLINGS), _LONGEST_WAIT)
        state.failures, state.retry = state.failures + 1, self.clock() + wait
        text = request.text("err").strip() or f"exit code {request.exit_code}"
        self.say(f"{at} {group.name}: failed, and is tried again in {wait:.0f} s: {text}")

    def _once(self, text: str) -> None:
        """Say something that stays true for long, unless it was true at the last look."""
        if text not in self._said | self._said_before:
            self.say(text)
        self._said.add(text)


def _next(schedule: str | None, now: float) -> float | None:
    """When a schedule is due next, in seconds since 1970; None without a schedule."""
    return float(croniter(schedule, datetime.fromtimestamp(now, UTC)).get_next(float)) if schedule else None
