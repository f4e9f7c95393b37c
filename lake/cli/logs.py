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

    def form(record: logging.LogRecord) -> str:
        body = {"time": datetime.now(UTC).isoformat(), "run_id": run_id, "level": record.levelname, "message": record.getMessage()}
        body |= getattr(record, "lakejoin", {})
        return json.dumps(body, default=str) if log_format == "json" else " ".join(f"{k}={v}" for k, v in body.items())

    handler.format = form  # type: ignore[method-assign]
    logger = logging.getLogger("lakejoin")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
