"""Stores results, and reports findings that open, escalate or are resolved to the log and to a webhook. (Airflow tasks have callbacks.)"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from lake import Lakehouse
from lake.quality.findings import Event, Finding, events, findings
from lake.quality.measurements import Row
from lake.quality.results import QualityResults

logger = logging.getLogger("lakejoin")
_WITHIN = 10.0


def store_and_report(
    lake: Lakehouse, before: Sequence[Row], rows: Sequence[Row], now: datetime, dependents: Mapping[str, Sequence[str]] | None = None
) -> tuple[dict[str, Finding], list[tuple[Event, Finding]]]:
    """Store new results, and report the findings that they change. `before`: the results that were stored before.

    Returns all findings, and the reported ones, each with its event.
    """
    results, known = QualityResults(lake), findings(before, dependents)
    rows = [_since(row, known.get(row.finding)) for row in rows]
    results.add(rows)
    after = findings([*before, *rows], dependents)
    told = events(known, after, now)
    for event, finding in told:
        logger.info("finding %s: %s", event, finding, extra={"lakejoin": {"event": "finding", "state": event, **finding.to_json()}})
    webhook = lake.config.quality.webhook
    if webhook:
        results.add(list(_notices(webhook, [*before, *rows], told, after, now)))
    return after, told


def _since(row: Row, known: Finding | None) -> Row:
    """A failed result with the time at which its open finding was first seen."""
    return replace(row, first_seen=known.first_seen) if row.status == "failed" and known is not None and known.open else row


def _notices(
    webhook: str, rows: Sequence[Row], told: Sequence[tuple[Event, Finding]], after: Mapping[str, Finding], now: datetime
) -> Iterator[Row]:
    """Notify the webhook of events, and of earlier events that it did not receive. Yields the rows to store: `untold`, an event that the
    webhook did not receive; `told`, one that it received later."""
    newest = {row.finding: row for row in rows}
    tried = {row.finding: row for row in rows if row.kind in ("untold", "told")}
    late = {name: row for name, row in tried.items() if row.kind == "untold" and name in after and not after[name].is_snoozed(now)}
    wanted = {name: (row.detail, after[name]) for name, row in late.items()} | {f.id: (event, f) for event, f in told}
    run, error = uuid.uuid4().hex[:12], ""
    for name, (event, finding) in wanted.items():
        error = error or _notified(webhook, event, finding)  # after one failure the webhook is not called again in this run
        if error:
            text = "the webhook at %s was not notified of finding %s (%s); the next check tries again"
            logger.warning(text, _host(webhook), name, error)
        kind = "untold" if error else "told"
        if (name in late) != bool(error) or (error and late[name].detail != event):
            yield replace(newest[name], run=run, time=now, kind=kind, detail=event, samples="", status="", until=None)


def _notified(webhook: str, event: str, finding: Finding) -> str:
    """POST a finding to the webhook, as JSON with a `text` that chat services show; returns why that failed, empty on success."""
    body = {
        "text": f"Lakejoin: {event}: {finding}. {finding.cause}. Run: {finding.command}",
        "event": event,
        "finding": finding.to_json(),
    }
    try:
        request = Request(webhook, json.dumps(body, default=str).encode(), {"Content-Type": "application/json"})
        urlopen(request, timeout=_WITHIN).close()
    except (OSError, ValueError, HTTPException) as error:
        return _reason(error)
    return ""


def _host(webhook: str) -> str:
    """Scheme and host of a URL: its path, query and user often hold the secret that authorises a POST."""
    with suppress(ValueError):
        parts = urlsplit(webhook)
        if parts.hostname:
            return f"{parts.scheme}://{parts.hostname}"
    return "the configured URL"


def _reason(error: Exception) -> str:
    """Why a request failed, in words that quote no URL."""
    if isinstance(error, HTTPError):
        return f"HTTP status {error.code}"
    cause = error.reason if isinstance(error, URLError) else error
    return f"{type(cause).__name__}: {cause.strerror}" if isinstance(cause, OSError) and cause.strerror else type(cause).__name__
