"""Findings: what is wrong, from when to when, as it follows from the results of checks; nothing else is kept of them.

a check fails that did not before → opened;  fails again → ongoing;  passes → resolved;  fails worse than before → escalated
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

from lake.quality.results import Row

State = Literal["opened", "ongoing", "resolved"]
Event = Literal["opened", "escalated", "resolved"]
_ORDER = {"info": 0, "warning": 1, "critical": 2}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or was. `rows`, `share`, `snapshot`, `version`: when it was seen last; `dependents`: views that are wrong or
    at risk with it; `snoozed`: nobody wants to hear of it before then, because of `reason`."""

    id: str
    state: State
    severity: str
    scope: str
    check: str
    subject: str
    owner: str
    first_seen: datetime
    last_seen: datetime
    value: float | None
    unit: str
    rows: int | None
    share: float | None
    snapshot: str
    version: int | None
    cause: str
    command: str
    detail: str
    dependents: tuple[str, ...] = ()
    snoozed: datetime | None = None
    reason: str = ""

    @property
    def open(self) -> bool:
        """Whether it is there still."""
        return self.state != "resolved"

    def asleep(self, now: datetime) -> bool:
        """Whether it is to be left alone for now."""
        return self.snoozed is not None and now < self.snoozed

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        many = "" if self.rows is None else f", {self.rows:,} rows"
        return f"{self.id} {self.severity}: {self.scope}, {self.check}: {self.subject}{many}"


def findings(rows: Iterable[Row], dependents: Mapping[str, Sequence[str]] | None = None) -> dict[str, Finding]:
    """By id, what has been found by results in the order of their times. `dependents`: by table or view, the views that read it."""
    found: dict[str, Finding] = {}
    for row in rows:
        known = found.get(row.finding)
        if row.kind == "snooze":
            put_off = known or _of(row, "ongoing", tuple((dependents or {}).get(row.scope, ())))  # it was seen too long ago
            found[row.finding] = replace(put_off, snoozed=row.until, reason=row.detail)
        elif row.kind == "result":
            after = _after(known, row, tuple((dependents or {}).get(row.scope, ())))
            if after is not None:
                found[row.finding] = after
    return found


def _after(known: Finding | None, row: Row, dependents: tuple[str, ...]) -> Finding | None:
    """A finding after one more result; a check that could not run, or decide, changes nothing."""
    if row.status == "passed":
        return replace(known, state="resolved", last_seen=row.time, snoozed=None, reason="") if known is not None else None
    if row.status != "failed":
        return known
    new = _of(row, "opened" if row.first_seen is None else "ongoing", dependents)
    if known is None or not known.open:
        return new
    escalated = _ORDER[row.severity] > _ORDER[known.severity]
    again = replace(new, state="ongoing", first_seen=known.first_seen)
    return again if escalated else replace(again, snoozed=known.snoozed, reason=known.reason)


def _of(row: Row, state: State, dependents: tuple[str, ...]) -> Finding:
    body = {n: getattr(row, n) for n in _SAME}
    return Finding(row.finding, state, first_seen=row.first_seen or row.time, last_seen=row.time, dependents=dependents, **body)


def told_as_json(told: Iterable[tuple[Event, Finding]]) -> list[dict[str, Any]]:
    """What is told, for machines."""
    return [{"event": event, **finding.to_json()} for event, finding in told]


_SAME = (
    *("severity", "scope", "check", "subject", "owner", "value", "unit"),
    *("rows", "share", "snapshot", "version", "cause", "command", "detail"),
)


def events(before: Mapping[str, Finding], after: Mapping[str, Finding], now: datetime) -> list[tuple[Event, Finding]]:
    """What is to be told: what opened, got worse, or was resolved; not of what nobody wants to hear now."""
    found: list[tuple[Event, Finding]] = []
    for name, finding in after.items():
        old = before.get(name)
        if not finding.open:
            if old is not None and old.open:
                found.append(("resolved", finding))
        elif old is None or not old.open:
            found.append(("opened", finding))
        elif _ORDER[finding.severity] > _ORDER[old.severity]:
            found.append(("escalated", finding))
        elif old.asleep(old.last_seen) and finding.last_seen > old.last_seen:  # once more, when the time is over
            found.append(("opened", finding))
    return [(event, finding) for event, finding in found if event == "resolved" or not finding.asleep(now)]
