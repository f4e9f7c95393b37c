"""Logs on standard error, as text or JSON lines, with run id, view and interval."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime


def set_up_logs(log_format: str, run_id: str) -> None:
    """`log_format`: none, text or json."""
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    if log_format == "none":
        return
    handler = logging.StreamHandler()
    handler.setFormatter(Lines(log_format, run_id))
    logger = logging.getLogger("lakejoin")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


class Lines(logging.Formatter):
    """A line for each log record. `log_format`: text or json."""

    def __init__(self, log_format: str, run_id: str) -> None:
        super().__init__()
        self._json, self._run_id = log_format == "json", run_id

    def format(self, record: logging.LogRecord) -> str:
        body = {"time": datetime.now(UTC).isoformat(), "run_id": self._run_id, "level": record.levelname, "message": record.getMessage()}
        body |= getattr(record, "lakejoin", {})
        return json.dumps(body, default=str) if self._json else " ".join(f"{k}={v}" for k, v in body.items())
