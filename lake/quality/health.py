"""The health of a view by its newest checks, as a state and a sentence, for the report and for `lakejoin status`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from lake.core.formatting import duration_text
from lake.errors import LakeError
from lake.quality.findings import Finding, findings
from lake.quality.measurements import Row

if TYPE_CHECKING:  # a status reads results without Spark
    from lake import Lakehouse

HealthState = Literal["good", "warn", "bad", "unknown"]


@dataclass(frozen=True)
class Health:
    """Whether a view is exact by its last check, and the open findings of the view and of what it reads, directly or not."""

    state: HealthState
    exact: str
    open: tuple[Finding, ...]

    def to_json(self) -> dict[str, Any]:
        return {"exact": {"good": True, "bad": False}.get(self.state), "said": self.exact, "findings": [f.to_json() for f in self.open]}


def health(view: str, rows: Sequence[Row]) -> Health:
    """The health of a view. `rows`: results of checks of the view and of what it reads, oldest first."""
    unresolved = tuple(f for f in findings(rows).values() if f.open)
    checks = [r for r in rows if r.scope == view and r.check == "exactness" and r.kind == "result"]
    if not checks:
        return Health("unknown", f'never checked: run "lakejoin check {view}"', unresolved)
    last = checks[-1]
    part = "" if last.part in ("", "1/1") else f", part {last.part} of its keys"
    texts = {"passed": "exact", "failed": f"{last.rows or 0:,} rows differ from the query"}
    states: dict[str, HealthState] = {"passed": "good", "failed": "bad"}
    text = texts.get(last.status, f"could not be checked: {last.detail}")
    return Health(states.get(last.status, "unknown"), f"{text} ({ago(last.time)}{part})", unresolved)


def health_of_views(rows: Sequence[Row], views: Sequence[str], below: Callable[[str], Collection[str]]) -> dict[str, Health]:
    """The health of each view; empty if nothing was ever checked. `rows`: the newest results; `below`: a view and what it reads."""
    return {view: health(view, of_scopes(rows, below(view))) for view in views} if rows else {}


def of_scopes(rows: Sequence[Row], wanted: Collection[str]) -> list[Row]:
    """The results of some views and tables."""
    return [row for row in rows if row.scope in wanted]


def scopes(lake: Lakehouse, view: str) -> set[str]:
    """The view and what it reads, directly or not."""
    try:
        return {*lake.views_below(view), *lake.bases_below(view)}
    except LakeError:  # an invalid view is reported where it is used
        return {view}


def dependents(lake: Lakehouse) -> dict[str, tuple[str, ...]]:
    """By table or view, the views that read it, directly or not."""
    found: dict[str, list[str]] = {}
    for view in lake.config.views:
        for below in scopes(lake, view) - {view}:
            found.setdefault(below, []).append(view)
    return {name: tuple(views) for name, views in found.items()}


def ago(then: datetime) -> str:
    """How long ago a time was, in its largest unit."""
    long = duration_text((datetime.now(UTC) - then).total_seconds())
    return f"{long} ago" if long else "just now"
