"""The state of each view in one word, what is wrong with it and what to run, for `lakejoin status`: worst first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, get_args

from lake.config.models import Config
from lake.core.results import BELOW_UNBUILT, SourceStatus
from lake.core.stamp import Stamp
from lake.errors import DefinitionChangedError, LakeError
from lake.quality.health import Health, ago

State = Literal["failed", "refused", "expired", "wrong", "stopped", "not built", "behind", "up to date"]
STATES: tuple[State, ...] = get_args(State)
"""The worst first. failed: the view, its table or a source can't be used; refused: its definition has changed; expired: unread changes can
no longer be read; wrong: a check found an error; stopped: its real-time path failed or was killed."""
_NEED_SOMEBODY = frozenset(STATES[:5])
_STOPPED = frozenset({"failed", "killed"})
_COMMAND = re.compile(r'\b[Rr]un "(lakejoin [^"]+)"')


class Views(Protocol):
    """What a status needs of the views besides the rows of their sources: a lakehouse, or what knows it without one."""

    @property
    def config(self) -> Config: ...
    def stamp(self, view: str, /) -> Stamp | None: ...
    def refuse_changed_definition(self, stamp: Stamp, /) -> None: ...
    def is_shared(self, view: str, /) -> bool: ...


@dataclass(frozen=True)
class ViewStatus:
    """`behind`: for how long the oldest unread change is there, in seconds, None if there is none or it is not known; `refreshed`: when the
    last refresh that published began, in seconds since 1970, and its `mode`; `exact`: by the last check; `problem`, `command`: what is
    wrong, and what to run; `from_production`: a development environment reads it from production's table."""

    view: str
    state: State
    behind: float | None = None
    refreshed: float | None = None
    mode: str = ""
    exact: str = ""
    problem: str = ""
    command: str = ""
    from_production: bool = False

    @property
    def needs_somebody(self) -> bool:
        """Whether it stays as it is until a person does something."""
        return self.state in _NEED_SOMEBODY

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def last_refresh(self) -> str:
        """When and how the view was published last, for people."""
        if self.refreshed is None:
            return "-"
        return ", ".join(filter(None, (ago(datetime.fromtimestamp(self.refreshed, UTC)), self.mode)))


def view_statuses(
    lake: Views, rows: Sequence[SourceStatus], paths: Mapping[str, Mapping[str, Any]], checked: Mapping[str, Health]
) -> list[ViewStatus]:
    """A status for each view of `rows` (of Lakehouse.status), worst first. `paths`: the newest lease of each real-time path; `checked`: the
    health of views, by their last checks."""
    views = dict.fromkeys(row.view for row in rows)
    found = [_status(lake, v, [row for row in rows if row.view == v], paths.get(v, {}), checked.get(v)) for v in views]
    return sorted(found, key=lambda status: STATES.index(status.state))


def summary(found: Sequence[ViewStatus]) -> str:
    """How views are, in a sentence."""
    if not found:
        return "There are no views. Define one under `views:` in lakejoin.yml."
    count = Counter(one.state for one in found)
    needed = sum(one.needs_somebody for one in found)
    states = ", ".join(f"{number} {state}" for state, number in count.items())
    return f"{needed} of {len(found)} views {'needs' if needed == 1 else 'need'} you: {states}." if needed else f"{states}."


def _status(lake: Views, view: str, rows: Sequence[SourceStatus], path: Mapping[str, Any], health: Health | None) -> ViewStatus:
    stamp, shared = None, False
    with suppress(LakeError):  # its row says why
        shared, stamp = lake.is_shared(view), lake.stamp(view)
    state, problem, command = _problem(lake, view, rows, stamp) or _of_checks(view, path, health) or _of_lag(view, rows, stamp)
    return ViewStatus(
        view,
        state,
        max((age for row in rows if (age := _age(row)) is not None), default=None),
        stamp.started if stamp is not None else None,
        stamp.mode if stamp is not None else "",
        health.exact if health is not None else "",
        problem,
        command,
        shared,
    )


_Found = tuple[State, str, str]


def _problem(lake: Views, view: str, rows: Sequence[SourceStatus], stamp: Stamp | None) -> _Found | None:
    """Why the next refresh will fail, as far as that can be seen without it."""
    broken = next((row for row in rows if row.way in ("not known", "another table")), None)
    if broken is not None:
        return "failed", broken.advice, _advised(broken.advice, view)
    gone = next((row for row in rows if row.lag and row.expires_in is not None and row.expires_in <= 0), None)
    if gone is not None:
        return "expired", f"the changes of {gone.source} after version {gone.published} may be unreadable", f"lakejoin rebuild {view}"
    if stamp is not None and lake.config.view(view).on_definition_change == "error":
        try:
            lake.refuse_changed_definition(stamp)
        except DefinitionChangedError as error:
            return "refused", str(error), f"lakejoin rebuild {view}"
        except LakeError as error:
            return "failed", str(error), _advised(str(error), view)
    return None


def _advised(text: str, view: str) -> str:
    """The command that an error says to run, or else the refresh that raises it. An error of a table leaves the name of the view open."""
    named = _COMMAND.search(text)
    return re.sub(r"\bVIEW\b", view, named[1]) if named else f"lakejoin refresh {view}"


def _of_checks(view: str, path: Mapping[str, Any], health: Health | None) -> _Found | None:
    """What the last check found, and whether the real-time path has stopped."""
    if health is not None and health.open:
        now = datetime.now(UTC)
        told = [f for f in health.open if f.severity == "critical" and not f.is_snoozed(now)]
        if told:
            more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
            return "wrong", f"{told[0]}{more}", told[0].command
    if path.get("state") in _STOPPED:
        why = path.get("error") or "its process has ended"
        return "stopped", f"the real-time path does not run ({path['state']}): {why}", f"lakejoin realtime {view}"
    return None


def _of_lag(view: str, rows: Sequence[SourceStatus], stamp: Stamp | None) -> _Found:
    if stamp is None:
        return "not built", "", f"lakejoin refresh {view}"
    unbuilt = next((row for row in rows if row.way == BELOW_UNBUILT), None)
    if unbuilt is not None:
        return "behind", unbuilt.way, f"lakejoin refresh {unbuilt.source}"
    if any(row.lag for row in rows):
        return "behind", "", f"lakejoin refresh {view}"
    return "up to date", "", ""


def _age(row: SourceStatus) -> float | None:
    """For how long the oldest unread change of a source is there: changes stay readable for `kept`, of which `expires_in` is left."""
    return row.kept - row.expires_in if row.lag and row.kept is not None and row.expires_in is not None else None
