"""Who is told of a finding when it opens, escalates or is resolved: a webhook. (Airflow's tasks call back themselves.)"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.error import URLError
from urllib.request import Request, urlopen

from expectations.findings import Event, Finding, events, findings
from expectations.results import QualityResults, Row
from lake import Lakehouse

logger = logging.getLogger("lakejoin")
_WITHIN = 10.0


def kept(
    lake: Lakehouse, before: Sequence[Row], rows: Sequence[Row], now: datetime, dependents: Mapping[str, Sequence[str]] | None = None
) -> tuple[dict[str, Finding], list[tuple[Event, Finding]]]:
    """Keep new results, and tell the log and the webhook of what has changed by them. `before`: those of the last ninety days.

    Returns all findings, and what was told.
    """
    QualityResults(lake).add(rows)
    after = findings([*before, *rows], dependents)
    told = events(findings(before, dependents), after, now)
    for event, finding in told:
        logger.info("finding %s: %s", event, finding, extra={"lakejoin": {"event": "finding", "state": event, **finding.to_json()}})
    notify(lake.config.quality.webhook, told)
    return after, told


def notify(webhook: str | None, told: Sequence[tuple[Event, Finding]]) -> None:
    """POST each to the webhook, as JSON with a `text` that chat services show. One that can't be reached is a warning, no failure."""
    for event, finding in told if webhook else ():
        body = {
            "text": f"Lakejoin: {event}: {finding}. {finding.cause}. Run: {finding.command}",
            "event": event,
            "finding": finding.to_json(),
        }
        request = Request(str(webhook), json.dumps(body, default=str).encode(), {"Content-Type": "application/json"})
        try:
            urlopen(request, timeout=_WITHIN).close()
        except (URLError, OSError, ValueError) as error:
            logger.warning("the webhook could not be told of finding %s: %s", finding.id, error)
