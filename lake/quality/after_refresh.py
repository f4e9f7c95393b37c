"""Checks a view after its refresh, for scheduled runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lake.errors import CheckError
from lake.lakehouse import Lakehouse
from lake.quality import check


def check_after_refresh(lake: Lakehouse, view: str) -> tuple[Mapping[str, Any], ...]:
    """Check a view; returns the events of its findings (opened, escalated, resolved) as JSON.

    Raises CheckError if there is a critical finding, or if a check could not run.
    """
    found = check(lake, view)
    events = tuple(found.events)
    if found.exit_code:
        failed = [str(f) for f in found.open if f.severity == "critical"]
        broken = [f"{m.check}: {m.subject} could not run: {m.broken}" for m in found.measures if m.status == "broken"]
        text = f'View {view!r} is published, but: {"; ".join(failed or broken)}. See "lakejoin check {view}".'
        raise CheckError(text, found.exit_code, events)
    return events
