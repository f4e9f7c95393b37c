"""One refresh of one view: published + newest versions → plan → compute → publish, in one commit or none."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from lake.core.phases import phase
from lake.core.plan import RefreshPlan, check_fingerprint
from lake.core.results import RefreshResult
from lake.core.snapshots import Snapshot
from lake.core.stamp import Stamp
from lake.delta.identity import marked
from lake.delta.pinned import Pinned
from lake.delta.retention import is_of_a_file_gone
from lake.delta.sources import PinnedSources
from lake.delta.tables import snapshot_of
from lake.errors import InternalError, KeyViolationError, SourceError, TargetError
from lake.refresh import changes, publish
from lake.refresh.compute import AllRows, Computation, Gate
from lake.refresh.decide import Decision, budget
from lake.refresh.outcome import result_of
from lake.refresh.primary_keys import of_nulls, refuse_broken
from lake.refresh.publish import LostRaceError, Target
from lake.refresh.row_edits import Edits, in_names
from lake.relations.lookup_cache import LookupCache
from lake.relations.reading import Reading
from lake.relations.total_rows import TotalRows
from lake.spark.failures import SPARK_ERRORS
from lake.spark.session import few_changes
from lake.views.definition import Definition
from lake.views.inputs import Inputs, ViewPath
from lake.views.table import Published, clustered_by, published


@dataclass(frozen=True)
class Refresh:
    """A view ready to be refreshed: its definition and the newest version of each of its sources, captured once.

    `spark`: the view's own session; `rebuild`: recompute it, whatever is published; `cache`: the rows that the real-time path keeps;
    `instead`: a backfill's rows, to publish instead of the query's; `gate`: checks the rows before they are published, and may refuse them.
    """

    path: ViewPath
    spark: SparkSession
    definition: Definition
    inputs: Inputs
    rebuild: bool
    cache: LookupCache | None = None
    instead: Pinned | None = None
    gate: Gate | None = None
    started: float = field(default_factory=time.time)

    def run(self) -> RefreshResult:
        """Refresh once; the caller sets the result's seconds. Raises LostRaceError where another writer was first."""
        decision = self._decision
        decision.refuse_unwanted()
        current = decision.published()
        if self.path.eventual and (self.rebuild or current is None or current.stamp is None) and not self._reads_eventual:
            return self._copied(current)
        decided = decision.plan(current)
        if decided.mode == "none" and self.instead is None:
            return result_of(decided)
        if current is not None and decided.mode == "incremental":
            decision.refuse_other_columns(current)
        if current is None:
            current = decision.created()
            if current.stamp is not None:
                raise LostRaceError(f"View {self.definition.view!r}: another refresh made the table and built it. Nothing was written.")
        if self.instead is not None:
            return self._copied_from(current, decided, self.instead)
        return self._computed(current, decided)

    @property
    def _decision(self) -> Decision:
        return Decision(self.path, self.spark, self.definition, self.inputs, self.rebuild)

    @property
    def _reads_eventual(self) -> bool:
        return any(table.eventual for table in self.inputs.tables.values())

    def _target(self, current: Published) -> Target:
        return Target(self.spark, self._decision.table, current.pinned.log, self.definition, self._decision.view)

    def _stamp(self, current: Published, decided: RefreshPlan) -> Stamp:
        return Stamp(
            self.definition.view,
            current.next_number,
            uuid.uuid4().hex,
            current.pinned.version.number,
            marked(decided.until, self.inputs.pins),
            decided.mode,
            self.definition.fingerprint,
            self.inputs.base_snapshot(),
            self.started,
            reason=decided.reason if decided.mode == "recompute" else "",
        )

    # -- compute and publish --------------------------------------------------------------------------------------------

    @phase("compute")
    def _computed(self, current: Published, decided: RefreshPlan) -> RefreshResult:
        since = current.stamp.snapshot if current.stamp and decided.mode == "incremental" else None
        sources = self._sources(since)
        redefined = [source for source in self.definition.sources if sources.redefined(source)]
        if redefined:
            decided, sources = self._decision.recompute_redefined(decided, redefined), self._sources(None)
        if decided.mode == "incremental":
            assert since is not None
            return self._incremental(current, decided, sources, since)
        with Reading(self.definition.catalyst, sources) as reading:
            self._refuse_broken_keys(reading)
            computation = self._computation(current, decided, reading)
            other = publish.other_shape(self.definition, current.pinned)
            if other or decided.mode == "build":
                return self._written(computation, decided, other)
            try:
                return self._published(computation, decided, computation.of_query())
            except InternalError:  # somebody else wrote a second row of a key, which can't be told from the first by its key
                if not self._decision.rebuild:
                    raise
                return self._written(computation, decided, "the stored rows could not be compared with the query's by their key")
            except SPARK_ERRORS as error:
                if not (self._decision.rebuild and is_of_a_file_gone(error)):
                    raise
                return self._written(computation, decided, "the stored rows could no longer be read")

    def _sources(self, since: Snapshot | None) -> PinnedSources:
        return PinnedSources(self.inputs.tables, self.inputs.pins, since)

    def _computation(self, current: Published, decided: RefreshPlan, reading: Reading) -> Computation:
        stamp = self._stamp(current, decided)
        return Computation(self._target(current), current.pinned, stamp, reading, self.gate, self._decision.replaces)

    def _incremental(self, current: Published, decided: RefreshPlan, sources: PinnedSources, since: Snapshot) -> RefreshResult:
        limit = budget(self._decision.view, self.definition, self.inputs, current)
        totals = TotalRows(current.stamp.totals or {} if current.stamp is not None else {})
        with (
            few_changes(self.spark) as end,
            Reading(self.definition.catalyst, sources, budget=limit, on_many=end, totals=totals) as reading,
            self._broken_keys_named(reading),
        ):
            computation, cache = self._computation(current, decided, reading), self.cache
            if cache is None:
                return self._published(computation, decided, computation.of_changes())
            cache.begin(since, reading)
            reading.cache = cache
            edits = computation.of_changes()
            computation = replace(computation, stamp=replace(computation.stamp, lookups=cache.lookups_of_batch))
            result = self._published(computation, decided, edits)
            cache.end(decided.until)
            return result

    def _published(self, computation: Computation, decided: RefreshPlan, edits: Edits | AllRows | None) -> RefreshResult:
        if isinstance(edits, AllRows):
            return self._replaced(computation, decided)
        publish.publish(computation.target, computation.final_stamp, edits, computation.reading)
        return result_of(decided, edits=edits, reading=computation.reading)

    def _replaced(self, computation: Computation, decided: RefreshPlan) -> RefreshResult:
        """Publish all rows of the recomputed query instead of the stored rows (`on_recompute`), with the table's columns as they are."""
        rows = self._all_rows(computation, persist=False)
        inserted, deleted = publish.publish_all(computation.target, computation.final_stamp, rows, replace=True)
        result = result_of(decided, inserted, deleted, reading=computation.reading)
        return replace(result, reason=f"{result.reason}; all rows were written (on_recompute)")

    def _all_rows(self, computation: Computation, persist: bool) -> DataFrame:
        definition = self.definition
        doubled = definition.key_given or of_nulls(definition, computation.reading.sources, self.inputs.primary_keys)
        whole = in_names(definition, changes.rows_of_query(definition, computation.reading))
        return computation.checked(whole, persist=persist, doubled=doubled)

    def _written(self, computation: Computation, decided: RefreshPlan, why: str) -> RefreshResult:
        """Write all rows, instead of the table's. `why`: that is done although the table has rows; empty for a new table."""
        replaces = bool(why)
        rows = self._all_rows(computation, persist=replaces)
        inserted, deleted = publish.publish_all(computation.target, computation.final_stamp, rows, replace=replaces, redefined=replaces)
        result = result_of(decided, inserted, deleted)
        if not replaces or decided.mode == "build":
            return result
        return replace(result, reason=f"{why}: all rows were written again")

    def _copied(self, current: Published | None) -> RefreshResult:
        """Begin a real-time table with the rows of the strong path, and with the snapshot that they were built from."""
        definition = self.definition
        strong = published(self.spark, self.path.strong(definition.view))
        if strong is None or strong.stamp is None:
            raise TargetError(
                f"View {definition.view!r} has not been built yet, and its real-time path begins with its rows. "
                f'Run "lakejoin refresh {definition.view}" first.'
            )
        check_fingerprint(definition.view, strong.stamp.fingerprint, definition.fingerprint)
        current = current or self._decision.created()
        target = self._target(current)
        number, base = current.next_number, current.pinned.version.number
        stamp = replace(strong.stamp, number=number, run_id=uuid.uuid4().hex, base=base, mode="copy", started=self.started, reason="")
        rows = publish.publish_rows(target, stamp, strong.pinned.rows(), clustered_by(target.view, definition), replace=True)
        target.describe(target.log.head())
        return result_of(RefreshPlan(definition.view, "copy", None, stamp.snapshot, "the rows of the strong path"), rows)

    def _copied_from(self, current: Published, decided: RefreshPlan, rows: Pinned) -> RefreshResult:
        """Publish the difference between a backfill's rows and the stored rows; nothing where there is none."""
        definition, until = self.definition, snapshot_of(self.inputs.pins)
        if decided.mode == "none" and decided.until != until:
            raise SourceError(
                f"View {definition.view!r} is at {decided.until}, which is newer than the end of the backfill, {until}; a view never moves "
                "back. Nothing was published. Backfill up to there, or leave the view as it is."
            )
        self._decision.refuse_other_columns(current)
        decided = RefreshPlan(definition.view, "copy", decided.since, until, "the rows of a backfill")
        with Reading(definition.catalyst, self._sources(None)) as reading:
            computation = self._computation(current, decided, reading)
            edits = computation.of_other_rows(rows)
            if edits is None and current.stamp is not None and current.stamp.snapshot == until:
                return result_of(replace(decided, mode="none", reason="the stored rows are the same"))
            return self._published(computation, decided, edits)

    # -- declared keys ----------------------------------------------------------------------------------------------------

    def _refuse_broken_keys(self, reading: Reading) -> None:
        tables = self.path.config.tables
        declared = {t: tables[t].primary_key for t in self.definition.sources if t in tables}
        refuse_broken(self.definition, reading.sources, declared, self.inputs.pins)

    @contextmanager
    def _broken_keys_named(self, reading: Reading) -> Iterator[None]:
        """Where rows don't add up, a declared key that the sources break is the likely reason, and the one that the user can correct."""
        try:
            yield
        except (KeyViolationError, InternalError, *SPARK_ERRORS) as error:
            if isinstance(error, KeyViolationError | InternalError) or "LAKEJOIN_INTERNAL" in str(error):
                self._refuse_broken_keys(reading)
            raise
