"""The records of checks: what was measured, and the rows in which results and decisions about findings are stored. No Spark."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from lake.config.models import FORGOTTEN_AFTER, PAGES

Status = Literal["passed", "failed", "broken", "undecidable"]
Severity = Literal["critical", "warning", "info"]
MEASURED = "expect_column_max_to_be_between"
CHECK, PUBLISHING = "expectation", "publishing"
"""The names of the checks of a user's expectations: on published rows, and on rows that were not published because of one."""
OWN = "-expectations"
"""The suffix of the names of validation results of a user's expectations of a view."""
PER_FINDING, MOST_ROWS = 30, 20_000
"""How many rows of one finding, and in all, are read to the driver."""
READ_BACK = timedelta(days=90)
"""How old the results are that are read."""


@dataclass(frozen=True)
class Measurement:
    """One value that a check measured. `scope`: a view or a table; `subject`: what was measured; `value`: in `unit`, None if it could not
    be measured (`broken`: why). It passes between `least` and `most`, or if `met` (judged by Great Expectations on rows). `severity`: of a
    failure.

    `rows` and `share`: the number of wrong rows, and their share of the rows checked; `part`: the part of the keys that was checked;
    `cause`, `command`: the likely cause, and what to run; `samples`: rows, redacted; `description`: the expectation in a sentence.
    """

    scope: str
    check: str
    subject: str
    value: float | None
    unit: str
    least: float | None = None
    most: float | None = None
    severity: Severity = "critical"
    rows: int | None = None
    share: float | None = None
    part: str = ""
    detail: str = ""
    cause: str = ""
    command: str = ""
    broken: str = ""
    undecidable: bool = False
    samples: tuple[Mapping[str, Any], ...] = ()
    snapshot: Mapping[str, int] | None = None
    version: int | None = None
    expectation: str = MEASURED
    met: bool | None = None
    description: str = ""

    @property
    def name(self) -> str:
        return f"{self.check}: {self.subject}"

    @property
    def status(self) -> Status:
        if self.undecidable:
            return "undecidable"
        if self.broken or (self.value is None and self.met is None):
            return "broken"
        if self.met is not None or self.value is None:
            return "passed" if self.met else "failed"
        low = self.least is not None and self.value < self.least
        high = self.most is not None and self.value > self.most
        return "failed" if low or high else "passed"

    @property
    def finding(self) -> str:
        """The id of the finding if this fails: the same in each run."""
        return finding_id(self.scope, self.check, self.subject)


def finding_id(scope: str, check: str, subject: str) -> str:
    """A short id that is the same in each run."""
    return f"F{hashlib.sha256(json.dumps([scope, check, subject]).encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Row:
    """One row of `quality_results`. `kind`: `result`; a decision about a finding, `snooze` (until a time) or `accept` (once); or `untold`,
    an event (`detail`) that the webhook did not receive, and `told`, once it did. `first_seen`: when the open finding was first seen.
    """

    run: str
    time: datetime
    kind: str
    scope: str
    check: str
    subject: str
    expectation: str
    status: str
    severity: str
    value: float | None
    unit: str
    least: float | None
    most: float | None
    rows: int | None
    share: float | None
    part: str
    detail: str
    cause: str
    command: str
    samples: str
    snapshot: str
    version: int | None
    finding: str
    owner: str
    until: datetime | None = None
    first_seen: datetime | None = None


def page_of(row: Row) -> str:
    """The Data Docs page of the run of a result, relative to the folder of results; empty if it does not exist or no longer does."""
    if not row.expectation or row.check == PUBLISHING or row.time < datetime.now(UTC) - FORGOTTEN_AFTER:
        return ""
    return f"{PAGES}/{row.scope}{OWN if row.check == CHECK else ''}-{row.run}.html"


def row_of(measure: Measurement, run: str, time: datetime, owner: str) -> Row:
    """A measurement as a row of the table."""
    body = {f.name: getattr(measure, f.name) for f in fields(Measurement) if f.name in {g.name for g in fields(Row)}}
    texts: dict[str, Any] = {
        "detail": measure.broken or measure.detail,
        "samples": json.dumps(list(measure.samples), default=str) if measure.samples else "",
        "snapshot": json.dumps(dict(measure.snapshot)) if measure.snapshot else "",
    }
    texts |= {n: float(body[n]) for n in ("value", "least", "most", "share") if body[n] is not None}
    own = {"run": run, "time": time, "kind": "result", "status": measure.status, "finding": measure.finding, "owner": owner}
    return Row(**{**body, **texts, **own})


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows oldest first, their times in UTC, without snoozes that have ended: a finding that was resolved and opened again is not snoozed,
    also if the result that resolved it is not read any more."""
    found = sorted(map(_utc, rows), key=lambda row: row.time)
    since = {r.finding: r.first_seen for r in found if r.kind == "result" and r.status == "failed" and r.first_seen is not None}
    return [r for r in found if r.kind != "snooze" or r.time >= since.get(r.finding, r.time)]


def _utc(row: Row) -> Row:
    """The row with times in UTC: Spark returns them in the time zone of the machine, without a zone."""
    times = {n: t.astimezone(UTC) for n in ("time", "until", "first_seen") if (t := getattr(row, n)) is not None}
    return Row(**{**{f.name: getattr(row, f.name) for f in fields(Row)}, **times})
