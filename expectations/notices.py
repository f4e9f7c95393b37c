"""Who is told of a finding when it opens, escalates or is resolved: a webhook. (Airflow's tasks call back themselves.)"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from urllib.error import URLError
from urllib.request import Request, urlopen

from expectations.findings import Event, Finding

logger = logging.getLogger("lakejoin")
_WITHIN = 10.0


def tell(webhook: str | None, told: Sequence[tuple[Event, Finding]]) -> None:
    """Log each, and tell the webhook, if there is one."""
    for event, finding in told:
        logger.info("finding %s: %s", event, finding, extra={"lakejoin": {"event": "finding", "state": event, **finding.to_json()}})
    notify(webhook, told)


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
