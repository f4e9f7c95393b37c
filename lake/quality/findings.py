"""Derives findings, and the events that are reported, from the stored results of checks; findings have no other state.

a check fails for the first time → opened;  fails again → ongoing;  passes → resolved;  fails with a higher severity → escalated
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

from lake.quality.measurements import Row

FindingState = Literal["opened", "ongoing", "resolved"]
Event = Literal["opened", "escalated", "resolved"]
_ORDER = {"info": 0, "warning": 1, "critical": 2}


@dataclass(frozen=True)
class Finding:
    """A failed check, from its first failure until it passes. `rows`, `share`, `snapshot`, `version`: of its last failure; `dependents`:
    the views that read its view or table; `snoozed`: the time until which it is not reported, for `reason`."""

    id: str
    state: FindingState
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
        """Whether the finding is not resolved."""
        return self.state != "resolved"

    def is_snoozed(self, now: datetime) -> bool:
        """Whether the finding is snoozed at a time: it is not reported and fails no check."""
        return self.snoozed is not None and now < self.snoozed

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        many = "" if self.rows is None else f", {self.rows:,} rows"
        return f"{self.id} {self.severity}: {self.scope}, {self.check}: {self.subject}{many}"


def findings(rows: Iterable[Row], dependents: Mapping[str, Sequence[str]] | None = None) -> dict[str, Finding]:
    """The findings by id. `rows`: results and decisions, oldest first; `dependents`: the views that read a table or view, by its name."""
    found: dict[str, Finding] = {}
    for row in rows:
        known = found.get(row.finding)
        if row.kind == "snooze":
            snoozed = known or _of(row, "ongoing", tuple((dependents or {}).get(row.scope, ())))  # its results are too old to be read
            found[row.finding] = replace(snoozed, snoozed=row.until, reason=row.detail)
        elif row.kind == "result":
            after = _after(known, row, tuple((dependents or {}).get(row.scope, ())))
            if after is not None:
                found[row.finding] = after
    return found


def _after(known: Finding | None, row: Row, dependents: tuple[str, ...]) -> Finding | None:
    """A finding after one more result. A check that could not run, or that is undecidable, does not change it."""
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


def _of(row: Row, state: FindingState, dependents: tuple[str, ...]) -> Finding:
    body = {n: getattr(row, n) for n in _SAME}
    return Finding(row.finding, state, first_seen=row.first_seen or row.time, last_seen=row.time, dependents=dependents, **body)


def events_as_json(reported: Iterable[tuple[Event, Finding]]) -> list[dict[str, Any]]:
    """Events and their findings as JSON."""
    return [{"event": event, **finding.to_json()} for event, finding in reported]


_SAME = (
    *("severity", "scope", "check", "subject", "owner", "value", "unit"),
    *("rows", "share", "snapshot", "version", "cause", "command", "detail"),
)


def events(before: Mapping[str, Finding], after: Mapping[str, Finding], now: datetime) -> list[tuple[Event, Finding]]:
    """The events between two states of the findings: opened, escalated or resolved; a snoozed finding has none but `resolved`."""
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
        elif old.is_snoozed(old.last_seen) and finding.last_seen > old.last_seen:  # reported again when the snooze has ended
            found.append(("opened", finding))
    return [(event, finding) for event, finding in found if event == "resolved" or not finding.is_snoozed(now)]
