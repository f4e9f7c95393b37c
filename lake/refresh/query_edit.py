"""Brings the table of an edited view to its new query, from its own rows or by the rows that differ: one commit, at the snapshot that is
published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lake.core.plan import RefreshPlan, differing
from lake.core.results import RefreshResult
from lake.core.stamp import Stamp
from lake.delta.feed_properties import FEED
from lake.delta.pinned import Pinned
from lake.delta.sources import PinnedSources
from lake.delta.transaction import FILE, POSITION, with_positions
from lake.refresh import publish
from lake.refresh.compute import Computation
from lake.refresh.decide import Decision
from lake.refresh.outcome import result_of
from lake.refresh.publish import LostRaceError, Target
from lake.relations.reading import Reading
from lake.spark import zset
from lake.spark.session import few_changes
from lake.views.definition import Definition
from lake.views.query_edit import Edit
from lake.views.table import Published, app_id, clustered_by, properties, set_properties

NO_ROWS = {"inserted": 0, "updated": 0, "deleted": 0}


def stamp_of_edit(current: Published, stamp: Stamp, **changed: Any) -> Stamp:
    """The next stamp of a view's table, of the same snapshot, without what belongs to the query before the edit.

    `stamp`: the present one; `changed`: what else differs from it.
    """
    return stamp.taken_over(number=current.next_number, base=current.pinned.version.number, mode="edit", **changed)


@dataclass(frozen=True)
class EditRun:
    """An edit of a view, ready to be published. `before`: the fingerprint of the definition that the edit starts from; `sources`: what the
    published rows were made of, for an edit that reads it."""

    decision: Decision
    edit: Edit
    before: Mapping[str, str]
    sources: PinnedSources | None = None

    def run(self) -> RefreshResult:
        """Publish the edit. Raises LostRaceError where the table is no longer that of the definition before, TargetError where it can't be
        published; nothing is then written."""
        self.decision.refuse_unwanted()
        current, definition = self.decision.published(), self.decision.definition
        if current is None or current.stamp is None or differing(current.stamp.fingerprint, self.before):
            raise LostRaceError(f"View {definition.view!r}: another definition was published meanwhile. Nothing was written. Plan again.")
        target = Target(self.decision.spark, self.decision.table, current.pinned.log, definition, self.decision.view)
        stamp = stamp_of_edit(current, current.stamp, fingerprint=definition.fingerprint)
        inserted = deleted = 0
        if self.edit.kind == "difference":
            return self._differing(target, stamp, current.pinned)
        if self.edit.kind == "rewrite":
            inserted, deleted = self._rewritten(target, stamp, current.pinned)
        elif self.edit.kind == "delete":
            deleted = self._deleted(target, stamp)
        else:
            self._redefined(target, stamp)
        target.describe(target.log.head())
        return result_of(self._plan(stamp), inserted, deleted)

    def _plan(self, stamp: Stamp) -> RefreshPlan:
        return RefreshPlan(stamp.view, "edit", stamp.snapshot, stamp.snapshot, self.edit.reason)

    def _differing(self, target: Target, stamp: Stamp, pinned: Pinned) -> RefreshResult:
        """Publish the rows that the new query adds, less those that it leaves out."""
        assert self.sources is not None
        with few_changes(target.spark) as end, Reading(target.definition.catalyst, self.sources, on_many=end) as reading:
            signed = ((self.edit.added, 1), (self.edit.removed, -1))
            rows = [zset.weighted(self._rows(part, reading), weight) for part, weight in signed if part is not None]
            computation = Computation(target, pinned, stamp, reading, None)
            edits = computation.edits_of(zset.add(rows)) if rows else None
            publish.publish(target, stamp, edits, reading)
            return result_of(self._plan(stamp), edits=edits, reading=reading)

    def _rows(self, part: Definition, reading: Reading) -> DataFrame:
        """The rows of a part, in the columns of the new query's tree."""
        pairs = zip(part.table_columns, self.decision.definition.table_columns, strict=True)
        columns = {f"c{own.attribute}": f"c{theirs.attribute}" for theirs, own in pairs}
        return part.unguarded.relation.snapshot(reading).selectExpr(*[f"{theirs} AS {own}" for own, theirs in columns.items()])

    def _redefined(self, target: Target, stamp: Stamp) -> None:
        """Other columns, or none, and the stamp."""
        renames = self.edit.select.renames if self.edit.select is not None else None

        def act(pinned: Pinned) -> None:
            transaction = publish.begun(target, stamp, pinned)
            if renames is not None:
                transaction.redefine(renames, properties(target.view, target.definition))
            transaction.commit(app_id(stamp.view), stamp.number, stamp.to_json(), NO_ROWS)

        publish.attempted(target, stamp, act)

    def _deleted(self, target: Target, stamp: Stamp) -> int:
        """Delete the rows that the new query leaves out; returns how many."""
        assert self.edit.select is not None
        leaves_out = ~F.coalesce(F.expr(self.edit.select.condition), F.lit(False))
        counts = dict(NO_ROWS)

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
