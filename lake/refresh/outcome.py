"""The result of a refresh, from its plan and what was published."""

from __future__ import annotations

from lake.core.plan import RefreshPlan
from lake.core.results import RefreshResult
from lake.refresh.row_edits import Edits
from lake.relations.reading import Reading


def result_of(
    decided: RefreshPlan, inserted: int = 0, deleted: int = 0, edits: Edits | None = None, reading: Reading | None = None
) -> RefreshResult:
    """The result of a refresh that was carried out as planned; the caller sets its seconds."""
    recomputed = reading.budget.why if reading is not None else ""
    updated = edits.updated if edits is not None else 0
    return RefreshResult(
        view=decided.view,
        since=decided.since,
        until=decided.until,
        mode="recompute" if recomputed else decided.mode,
        rows_inserted=edits.inserted + updated if edits is not None else inserted,
        rows_deleted=edits.deleted + updated if edits is not None else deleted,
        rows_updated=updated,
        seconds=0.0,
        reason=recomputed or decided.reason,
        changes_read=reading.tables.rows_read if reading is not None else None,
    )
