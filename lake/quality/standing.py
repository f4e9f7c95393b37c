"""Where a view stands by the checks that were made of it: in a word and a sentence, for the report and for `lakejoin status`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from lake import Lakehouse
from lake.errors import LakeError
from lake.quality.findings import Finding, findings
from lake.quality.results import QualityResults, Row

State = Literal["good", "warn", "bad", "unknown"]


@dataclass(frozen=True)
class Standing:
    """A view's: whether it is exact, as far as it was looked, and what is wrong with it and with what it reads, directly or not."""

    state: State
    exact: str
    open: tuple[Finding, ...]

    def to_json(self) -> dict[str, Any]:
        return {"exact": {"good": True, "bad": False}.get(self.state), "said": self.exact, "findings": [f.to_json() for f in self.open]}


def standing(view: str, rows: Sequence[Row]) -> Standing:
    """By the results of checks of the view and of what it reads, oldest first."""
    still = tuple(f for f in findings(rows).values() if f.open)
    checks = [r for r in rows if r.scope == view and r.check == "exactness" and r.kind == "result"]
    if not checks:
        return Standing("unknown", f'never checked: run "lakejoin check {view}"', still)
    last = checks[-1]
    part = "" if last.part in ("", "1/1") else f", part {last.part} of its keys"
    texts = {"passed": "exact", "failed": f"{last.rows or 0:,} rows differ from the query"}
    states: dict[str, State] = {"passed": "good", "failed": "bad"}
    text = texts.get(last.status, f"could not be checked: {last.detail}")
    return Standing(states.get(last.status, "unknown"), f"{text} ({ago(last.time)}{part})", still)


def standings(lake: Lakehouse, views: Sequence[str]) -> dict[str, Standing]:
    """Of each view; nothing where nothing was ever checked."""
    rows = QualityResults(lake).recent()
    return {view: standing(view, of_scopes(rows, scopes(lake, view))) for view in views} if rows else {}


def of_scopes(rows: Sequence[Row], wanted: Collection[str]) -> list[Row]:
    """The rows of some views and tables."""
    return [row for row in rows if row.scope in wanted]


def scopes(lake: Lakehouse, view: str) -> set[str]:
    """The view and what it reads, directly or not."""
    try:
        return {*lake.views_below(view), *lake.bases_below(view)}
    except LakeError:  # a view that is not valid says so where it is used
        return {view}


def ago(then: datetime) -> str:
    """How long ago, roughly."""
    seconds = max(0.0, (datetime.now(UTC) - then).total_seconds())
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {unit}{'s' if number > 1 else ''} ago"
    return "just now"
