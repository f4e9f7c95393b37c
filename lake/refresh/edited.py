"""Brings the table of an edited view to its new query without reading a source: one commit, at the snapshot that is published."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import functions as F

from lake.core.plan import RefreshPlan, differing
from lake.core.results import RefreshResult
from lake.core.stamp import Stamp
from lake.delta.kept import FEED
from lake.delta.pinned import Pinned
from lake.delta.transaction import FILE, POSITION, with_positions
from lake.refresh import publish
from lake.refresh.decide import Decision
from lake.refresh.outcome import result_of
from lake.refresh.publish import LostRaceError, Target
from lake.views.edit import Edit
from lake.views.table import Published, app_id, clustered_by, properties, set_properties

_NO_ROWS = {"inserted": 0, "updated": 0, "deleted": 0}


@dataclass(frozen=True)
class EditRun:
    """An edit of a view, ready to be published. `before`: the fingerprint of the definition that the edit starts from."""

    decision: Decision
    edit: Edit
    before: Mapping[str, str]

    def run(self) -> RefreshResult:
        """Publish the edit. Raises LostRaceError where the table is no longer that of the definition before, TargetError where it can't be
        published; nothing is then written."""
        self.decision.refuse_unwanted()
        current, definition = self.decision.published(), self.decision.definition
        if current is None or current.stamp is None or differing(current.stamp.fingerprint, self.before):
            raise LostRaceError(f"View {definition.view!r}: another definition was published meanwhile. Nothing was written. Plan again.")
        target = Target(self.decision.spark, self.decision.table, current.pinned.log, definition, self.decision.view)
        stamp = self._stamp(current, current.stamp)
        inserted = deleted = 0
        if self.edit.kind == "rewrite":
            inserted, deleted = self._rewritten(target, stamp, current.pinned)
        elif self.edit.kind == "delete":
            deleted = self._deleted(target, stamp)
        else:
            self._redefined(target, stamp)
        target.describe(target.log.head())
        snapshot = stamp.snapshot
        return result_of(RefreshPlan(definition.view, "edit", snapshot, snapshot, self.edit.reason), inserted, deleted)

    def _stamp(self, current: Published, stamp: Stamp) -> Stamp:
        return replace(
            stamp,
            number=current.next_number,
            run_id=uuid.uuid4().hex,
            base=current.pinned.version.number,
            mode="edit",
            fingerprint=self.decision.definition.fingerprint,
            started=time.time(),
            lookups=None,
        )

    def _redefined(self, target: Target, stamp: Stamp) -> None:
        """Other columns, or none, and the stamp."""
        renames = self.edit.select.renames if self.edit.select is not None else None

        def act(pinned: Pinned) -> None:
            transaction = publish.begun(target, stamp, pinned)
            if renames is not None:
                transaction.redefine(renames, properties(target.view, target.definition))
            transaction.commit(app_id(stamp.view), stamp.number, stamp.to_json(), _NO_ROWS)

        publish.attempted(target, stamp, act)

    def _deleted(self, target: Target, stamp: Stamp) -> int:
        """Delete the rows that the new query leaves out; returns how many."""
        assert self.edit.select is not None
        leaves_out = ~F.coalesce(F.expr(self.edit.select.condition), F.lit(False))
        counts = dict(_NO_ROWS)

        def act(pinned: Pinned) -> None:
            transaction = publish.begun(target, stamp, pinned)
            doomed = with_positions(pinned.rows_among({})).where(leaves_out).select(FILE, POSITION)
            counts["deleted"] = 0 if doomed.isEmpty() else transaction.delete(doomed, local=False)
            transaction.commit(app_id(stamp.view), stamp.number, stamp.to_json(), counts)

        publish.attempted(target, stamp, act)
        return counts["deleted"]

    def _rewritten(self, target: Target, stamp: Stamp, pinned: Pinned) -> tuple[int, int]:
        """Write all rows again, made of the stored ones; returns how many were written, and how many there were."""
        assert self.edit.select is not None
        before = pinned.rows().count()
        rows = self.edit.select.applied(pinned.rows())
        # Delta refuses to drop a column and to write rows in one commit while the feed is on; a reader of it then takes the data files
        set_properties(target.spark, target.table, {FEED: "false"})
        return publish.publish_rows(target, stamp, rows, clustered_by(target.view, target.definition), replace=True), before
