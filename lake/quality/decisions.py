"""What people decide about findings, kept in `quality_results`: to put one off until a time, or to publish in spite of it, once."""

from __future__ import annotations

import getpass
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from lake import Lakehouse
from lake.errors import ConfigError
from lake.quality.results import QualityResults, Row


def decided(lake: Lakehouse, kind: Literal["snooze", "accept"], finding: str, reason: str, until: datetime | None = None) -> Row:
    """Keep a decision. Raises ConfigError where there is no such finding."""
    results = QualityResults(lake)
    known = [row for row in results.recent() if row.finding == finding and row.kind == "result" and row.status != "passed"]
    if not known:
        raise ConfigError(f'There is no finding {finding!r}. "lakejoin check --all" lists those that there are.')
    said = f"{reason} ({getpass.getuser()})"
    row = replace(known[-1], run=uuid.uuid4().hex[:12], time=datetime.now(UTC), kind=kind, detail=said, until=until, samples="", status="")
    results.add([row])
    return row


def snoozed(lake: Lakehouse, finding: str, until: datetime, reason: str) -> dict[str, Any]:
    """Put a finding off until a time, which must be to come. Raises ConfigError."""
    if until <= datetime.now(UTC):
        raise ConfigError(f"{until.isoformat()} is over: a finding is put off until a time to come.")
    row = decided(lake, "snooze", finding, reason, until)
    return {"finding": finding, "until": until.isoformat(), "reason": row.detail}
