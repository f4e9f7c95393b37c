"""Publishes a development environment's rows of a view as production's: those that differ, or all where the columns do, with the snapshot
that they were made of, in one commit."""

from __future__ import annotations

from dataclasses import dataclass

from lake.core.plan import RefreshPlan
from lake.core.results import RefreshResult
from lake.core.snapshots import Snapshot
from lake.core.stamp import Stamp
from lake.delta.pinned import Pinned
from lake.delta.sources import PinnedSources
from lake.errors import InternalError
from lake.refresh import publish
from lake.refresh.compute import Computation, Gate
from lake.refresh.decide import Decision
from lake.refresh.outcome import result_of
from lake.refresh.publish import LostRaceError, Target
from lake.relations.reading import Reading
from lake.views.table import Published


@dataclass(frozen=True)
class Promotion:
    """A view of production, and the rows that it takes over. `decision`: of production; `current`: its table now, None where there is none;
    `rows`, `stamp`: of the environment's table; `snapshot`: what the rows were made of, by production's tables; `gate`: checks the rows."""

    decision: Decision
    current: Published | None
    rows: Pinned
    stamp: Stamp
    snapshot: Snapshot
    gate: Gate | None
    reason: str

    def run(self) -> RefreshResult:
        """Publish the rows. Raises LostRaceError where production's table is another one meanwhile; nothing is then written."""
        self.decision.refuse_unwanted()
        current = self.current
        if current is None:
            current = self.decision.created()
            if current.stamp is not None:
                raise LostRaceError(f"View {self.decision.definition.view!r} was built meanwhile. Nothing was written. Promote it again.")
        definition, view = self.decision.definition, self.decision.view
        target = Target(self.decision.spark, self.decision.table, current.pinned.log, definition, view)
        since = current.stamp.snapshot if current.stamp is not None else None
        decided = RefreshPlan(definition.view, "copy", since, self.snapshot, self.reason)
        with Reading(definition.catalyst, PinnedSources({}, {}, None)) as reading:
            computation = Computation(target, current.pinned, self._stamp(current), reading, self.gate)
            if since is None or publish.other_shape(definition, current.pinned):
                return self._written(computation, decided)
            try:
                edits = computation.of_other_rows(self.rows)
                publish.publish(target, computation.stamp, edits, reading)
            except InternalError:  # the stored rows do not have the key of the new ones
                return self._written(computation, decided)
            return result_of(decided, edits=edits, reading=reading)

    def _stamp(self, current: Published) -> Stamp:
        return self.stamp.taken_over(
            number=current.next_number,
            base=current.pinned.version.number,
            snapshot=self.snapshot,
            mode="copy",
            fingerprint=self.decision.definition.fingerprint,
        )

    def _written(self, computation: Computation, decided: RefreshPlan) -> RefreshResult:
        """Write all rows, instead of those that there are."""
        rows, replaces = computation.checked(self.rows.rows(), persist=False, doubled=False), decided.since is not None
        inserted, deleted = publish.publish_all(computation.target, computation.stamp, rows, replace=replaces, redefined=replaces)
        return result_of(decided, inserted, deleted)
