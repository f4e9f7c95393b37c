"""A commit on a view's table that Lakejoin did not write: who made it, when and how, and which rows it changed. No Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from lake.core.formatting import time_text
from lake.core.planned import RowChanges
from lake.core.redaction import Samples

HARMLESS = ("mode", "version", "timestamp", "outputMode")
"""Parameters of Delta's operations that quote no value of the data."""


@dataclass(frozen=True)
class OtherCommit:
    """A commit of somebody else. `time`: in seconds since 1970; `user`: empty where the log does not name one; `parameters`: of the
    operation, as Delta's log has them, shortened; `columns`: those that its condition reads; `rows`: what it changed, by the view's key,
    None where that was not asked for or can't be read any more."""

    version: int
    time: float
    operation: str
    user: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    rows: RowChanges | None = None

    @property
    def quoting_nothing(self) -> OtherCommit:
        """The same without the parameters that may quote values of the data."""
        return replace(self, parameters={name: text for name, text in self.parameters.items() if name in HARMLESS})

    def sampled(self, shown: Samples, key: tuple[str, ...]) -> OtherCommit:
        """The same with what may be shown: conditions may quote any column, so they are shown where whole rows are."""
        rows = self.rows
        if rows is not None:
            samples = (shown(sample, key) for sample in rows.samples)
            rows = replace(rows, samples=tuple(sample for sample in samples if sample is not None))
        whole = shown.how == "rows" and not shown.sensitive
        return replace(self if whole else self.quoting_nothing, rows=rows)

    def to_json(self) -> dict[str, Any]:
        rows = None if self.rows is None else asdict(self.rows)
        return {**{name: getattr(self, name) for name in _PLAIN}, "time": datetime.fromtimestamp(self.time, UTC).isoformat(), "rows": rows}

    @property
    def details(self) -> str:
        """When, by whom and how it was written: `2026-01-31 12:00:00 UTC by ana, condition on id`."""
        words = [f"{name} {text}" for name, text in self.parameters.items() if text]
        if self.columns and self.parameters.keys() <= set(HARMLESS):
            words.append(f"condition on {', '.join(self.columns)}")
        return ", ".join([f"{time_text(self.time)} UTC{f' by {self.user}' if self.user else ''}", *words])

    def __str__(self) -> str:
        """`version 7, DELETE (2026-01-31 12:00:00 UTC by ana, condition on id)`, and the rows where they are known."""
        rows = "" if self.rows is None else f": {self.rows}"
        return f"version {self.version}, {self.operation} ({self.details}){rows}"


_PLAIN = ("version", "operation", "user", "parameters", "columns")
