"""Records what people decide about findings in `quality_results`: to snooze one until a time, or to accept it for one refresh."""

from __future__ import annotations

import getpass
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from lake import Lakehouse
from lake.errors import ConfigError
from lake.quality.measurements import Row
from lake.quality.results import QualityResults


def record_decision(lake: Lakehouse, kind: Literal["snooze", "accept"], finding: str, reason: str, until: datetime | None = None) -> Row:
    """Store a decision about a finding. Raises ConfigError for an unknown finding."""
    results = QualityResults(lake)
    known = [row for row in results.recent() if row.finding == finding and row.kind == "result" and row.status != "passed"]
    if not known:
        raise ConfigError(f'There is no finding {finding!r}. "lakejoin check --all" lists the findings.')
    text = f"{reason} ({getpass.getuser()})"
    row = replace(known[-1], run=uuid.uuid4().hex[:12], time=datetime.now(UTC), kind=kind, detail=text, until=until, samples="", status="")
    results.add([row])
    return row


def snooze_finding(lake: Lakehouse, finding: str, until: datetime, reason: str) -> dict[str, Any]:
    """Snooze a finding until a time. Raises ConfigError for a time in the past, and for an unknown finding."""
    if until <= datetime.now(UTC):
        raise ConfigError(f"{until.isoformat()} is in the past: a finding is snoozed until a time in the future.")
    row = record_decision(lake, "snooze", finding, reason, until)
    return {"finding": finding, "until": until.isoformat(), "reason": row.detail}
