"""One refresh of one view: published + heads → plan → compute → publish, in one commit or none."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from urllib.parse import urlparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lake.catalyst.guards import INEXACT
from lake.config.models import ViewConfig
from lake.core import cost
from lake.core.phases import phase
from lake.core.plan import RefreshPlan, check_fingerprint, differing, plan
from lake.core.results import RefreshResult
from lake.core.sql import quoted
from lake.core.stamp import Stamp
from lake.delta.identity import check_history, check_identity, marked
from lake.delta.pinned import Pinned
from lake.delta.sources import PinnedSources
from lake.delta.tables import Table, snapshot_of
from lake.errors import DefinitionError, InternalError, KeyViolationError, SourceError, TargetError
from lake.refresh import changes, publish
from lake.refresh.edits import WEIGHT, Edits, compared, in_names, keyed, keyed_apart, of_multiset
from lake.refresh.primary_keys import refuse_broken
from lake.refresh.publish import LostRaceError, Target
from lake.relations.budget import Budget, FallBackToRecompute
from lake.relations.lookup_cache import LookupCache
from lake.relations.reading import SMALL, Reading
from lake.spark import zset
from lake.spark.failures import SPARK_ERRORS, of_rows
from lake.spark.session import few_changes
from lake.views import explain
from lake.views.definition import Definition
from lake.views.inputs import Inputs, ViewPath, table_of
from lake.views.table import (
    FEED,
    Published,
    clustered_by,
    create,
    describe,
    open_log,
    published,
    safe_writes,
    schema,
    set_properties,
    unsafe_scheme,
    visible,
)


@dataclass(frozen=True)
class Refresh:
    """A view ready to be refreshed: its definition and the newest version of each of its sources, captured once.

    `spark`: the view's own session; `rebuild`: compute it anew, whatever is published; `cache`: what the real-time path keeps;
    `instead`: a backfill's rows, to publish instead of what the query gives; `gate`: looks at the rows before they are published, and may
    refuse them.
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
        """Refresh once (its seconds are the caller's to count). Raises LostRaceError where another writer was first."""
        self._refuse_unwanted()
        current = published(self.spark, self.table) if not self.rebuild else self._published_or_foreign()
        if self.path.eventual and (self.rebuild or current is None or current.stamp is None) and not self._reads_eventual:
            return self._copied(current)
        decided = self._decided(current)
        if decided.mode == "none" and self.instead is None:
            return result_of(decided)
        if current is not None and decided.mode == "incremental":
            self._refuse_other_columns(current)
        if current is None:
            create(self.spark, self.table, self._view, self.definition)
            current = published(self.spark, self.table)
            assert current is not None
            if current.stamp is not None:
                raise LostRaceError(f"View {self.definition.view!r}: another refresh made the table and built it. Nothing was written.")
        describe(self.spark, self.table, self._view, self.definition, current.pinned)
        if self.instead is not None:
            return self._taken_over(current, decided, self.instead)
        return self._computed(current, decided)

    @property
    def table(self) -> Table:
        return self.path.table(self.definition.view)

    @property
    def _view(self) -> ViewConfig:
        return self.path.config.view(self.definition.view)

    @property
    def _reads_eventual(self) -> bool:
        return any(table.eventual for table in self.inputs.tables.values())

    def _copied(self, current: Published | None) -> RefreshResult:
        """A real-time table begins with the rows of the strong path, and with the snapshot that those answer for."""
        definition = self.definition
        strong = published(self.spark, table_of(self.path.config, definition.view))
        if strong is None or strong.stamp is None:
            raise TargetError(
                f"View {definition.view!r} has not been built yet, and its real-time path begins with its rows. "
                f'Run "lakejoin refresh {definition.view}" first.'
            )
        check_fingerprint(definition.view, strong.stamp.fingerprint, definition.fingerprint)
        if current is None:
            create(self.spark, self.table, self._view, definition)
            current = published(self.spark, self.table)
            assert current is not None
        describe(self.spark, self.table, self._view, definition, current.pinned)
        target = Target(self.spark, self.table, current.pinned.log, definition)
        number, base = current.next_number, current.pinned.version.number
        stamp = replace(strong.stamp, number=number, run_id=uuid.uuid4().hex, base=base, mode="copy")
        rows = publish.publish_rows(target, stamp, strong.pinned.rows(), clustered_by(self._view, definition), replace=True)
        return result_of(RefreshPlan(definition.view, "copy", None, stamp.snapshot, "the rows of the strong path"), rows)

    def _decided(self, current: Published | None) -> RefreshPlan:
        definition, until = self.definition, snapshot_of(self.inputs.pins)
        stamp = current.stamp if current else None
        edited = stamp is not None and bool(differing(stamp.fingerprint, definition.fingerprint))
        rebuild = self.rebuild or (edited and self._view.on_definition_change == "rebuild")
        if rebuild and current is not None:
            return RefreshPlan(definition.view, "recompute", stamp.snapshot if stamp else None, until, "a rebuild was asked for")
        read = stamp.snapshot.versions if stamp is not None else {}
        known = [(self.inputs.tables[s], self.inputs.pins[s], version) for s, version in read.items() if s in self.inputs.tables]
        for table, pinned, version in known:
            check_identity(table, pinned, version)
        waited = self.inputs.bases if self.path.eventual else ()
        decided = plan(definition.view, stamp, definition.fingerprint, until, definition.recomputed, waited)
        for table, pinned, version in known if decided.mode != "none" else ():
            check_history(table, pinned, version)
        return decided

    @phase("compute")
    def _computed(self, current: Published, decided: RefreshPlan) -> RefreshResult:
        definition = self.definition
        since = current.stamp.snapshot if current.stamp and decided.mode == "incremental" else None
        sources = PinnedSources(self.inputs.tables, self.inputs.pins, since)
        redefined = [source for source in definition.sources if sources.redefined(source)]
        if redefined:
            decided, sources = self._anew(decided, redefined), PinnedSources(self.inputs.tables, self.inputs.pins, None)
        target = Target(self.spark, self.table, current.pinned.log, definition)
        stamp = self._stamp(current, decided)
        if decided.mode == "incremental":
            assert since is not None
            with (
                few_changes(self.spark) as end,
                Reading(definition.catalyst, sources, budget=budget(self._view, definition, self.inputs, current), on_many=end) as reading,
                self._broken_keys_named(reading),
            ):
                if self.cache is not None:
                    self.cache.begin(since, reading)
                    reading.cache = self.cache
                edits = self._edits_of_changes(current, target, stamp, reading)
                if self.cache is not None:
                    stamp = replace(stamp, lookups=self.cache.lookups_of_batch)
                result = self._published(target, stamp, reading, decided, edits)
                if self.cache is not None:
                    self.cache.end(decided.until)
                return result
        with Reading(definition.catalyst, sources) as reading:
            self._refuse_broken_keys(reading)
            if not publish.same_schema(definition, current.pinned.schema):
                return self._replaced(target, stamp, reading, decided)
            if decided.mode == "build":
                return self._written(target, stamp, reading, decided)
            return self._published(target, stamp, reading, decided, self._edits_of_all(current, target, stamp, reading))

    def _anew(self, decided: RefreshPlan, redefined: Sequence[str]) -> RefreshPlan:
        """The plan where tables were defined anew. Raises DefinitionError where the view is never to be computed anew."""
        view, named = self.definition.view, ", ".join(redefined)
        why = f"{named} was defined anew (a column dropped and added again or renamed, its type, column mapping, or the partitioning)"
        if self._view.refresh_mode == "incremental":
            raise DefinitionError(
                f"View {view!r} has `refresh_mode: incremental`, and can't be refreshed incrementally now: {why}. Nothing was written. "
                f'Run "{self.table.recreate_command}".'
            )
        return replace(decided, mode="recompute", reason=f"the query was computed anew: {why}")

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
        )

    def _taken_over(self, current: Published, decided: RefreshPlan, rows: Pinned) -> RefreshResult:
        """Publish the difference between a backfill's rows and those that the view holds; nothing where there is none."""
        definition, until = self.definition, snapshot_of(self.inputs.pins)
        if decided.mode == "none" and decided.until != until:
            raise SourceError(
                f"View {definition.view!r} is at {decided.until}, which is newer than the end of the backfill, {until}; a view never moves "
                "back. Nothing was published. Backfill up to there, or leave the view as it is."
            )
        self._refuse_other_columns(current)
        decided = RefreshPlan(definition.view, "copy", decided.since, until, "the rows of a backfill")
        sources = PinnedSources(self.inputs.tables, self.inputs.pins, None)
        with Reading(definition.catalyst, sources) as reading:
            new, old = (changes.held(definition, p.rows()) for p in (rows, current.pinned))
            changed = reading.frames.keep(zset.consolidate(zset.subtract(new, old)))
            if changed is None and current.stamp is not None and current.stamp.snapshot == until:
                return result_of(replace(decided, mode="none", reason="the view holds the same rows"))
            target = Target(self.spark, self.table, current.pinned.log, definition)
            stamp = self._stamp(current, decided)
            edits = self._edits(target, stamp, reading, changed.frame) if changed else None
            return self._published(target, stamp, reading, decided, edits)

    def _published(self, target: Target, stamp: Stamp, reading: Reading, decided: RefreshPlan, edits: Edits | None) -> RefreshResult:
        publish.publish(target, stamp, edits, reading)
        return result_of(decided, edits=edits, reading=reading)

    def _edits_of_changes(self, current: Published, target: Target, stamp: Stamp, reading: Reading) -> Edits | None:
        """What the sources' changes change in the view's table, or, where the refresh falls back, what the recomputed query changes."""
        held = publish.held(current.pinned, reading)
        try:
            try:
                frame = changes.changes(self.definition, held, reading)
                return None if frame is None else self._edits(target, stamp, reading, frame)
            except SPARK_ERRORS as error:
                if INEXACT not in str(error):
                    raise
                frame = changes.changes_of_inexact(self.definition, held, reading)
                return None if frame is None else self._edits(target, stamp, reading, frame)
        except FallBackToRecompute as why:
            reading.fall_back(why)
        except SPARK_ERRORS as error:
            # where several tables changed, some pairs of rows are in no snapshot, nor are sums of changes alone: these may be what failed
            failed = of_rows(error)
            if self._view.refresh_mode == "incremental" or not failed:
                raise
            why_failed = f"with rows of both ends of the interval the query failed ({failed})"
            reading.fall_back(FallBackToRecompute(f"fell back to a full recompute: {why_failed}"))
        return self._edits_of_all(current, target, stamp, reading)

    def _edits_of_all(self, current: Published, target: Target, stamp: Stamp, reading: Reading) -> Edits:
        """What the query computed anew changes in the view's table."""
        definition = self.definition
        if definition.key is not None and self.gate is None and current.pinned.bytes > SMALL:
            edits = compared(definition, in_names(definition, definition.unguarded.relation.snapshot(reading)), current.pinned, reading)
            if edits is not None:
                return edits
        return self._edits(target, stamp, reading, changes.difference(definition, publish.held(current.pinned, reading), reading))

    def _edits(self, target: Target, stamp: Stamp, reading: Reading, frame: DataFrame) -> Edits:
        """What weighted rows (in the tree's columns) change in the view's table, after the gate has seen them.

        Many changes of one table seldom add up in the view: where these do not, they need not be consolidated.
        """
        definition = self.definition
        if (
            definition.key is not None
            and self.gate is None
            and reading.frames.many
            and not reading.budget.reasons
            and self._one_moved(reading)
        ):
            kept = reading.frames.keep_rows(frame)
            named = replace(kept, frame=in_names(definition, kept.frame))
            edits = keyed_apart(definition, named, reading)
            if edits is not None:
                return edits
            frame = kept.frame
        rows = in_names(definition, zset.consolidate(frame))
        if self.gate is not None:
            rows = reading.frames.keep_rows(rows).frame
            self.gate(self._candidate(target, stamp, rows))
        return keyed(definition, rows, reading) if definition.key is not None else of_multiset(definition, rows, reading)

    def _one_moved(self, reading: Reading) -> bool:
        return sum(reading.sources.changed_bytes(source) > 0 for source in self.definition.sources) == 1

    def _candidate(self, target: Target, stamp: Stamp, changed: DataFrame) -> Candidate:
        """The rows that some changes (under the view's names) insert, and all that the view would hold after them."""
        names = schema(self.definition).names
        numbered = [f"{quoted(n)} AS c{i}" for i, n in enumerate(names)]
        held = zset.weighted(target.log.head().rows().selectExpr(*numbered))
        after = zset.add([held, changed.selectExpr(*numbered, f"{WEIGHT} AS {zset.WEIGHT}")])
        whole = zset.to_rows(zset.consolidate(after), f"view {self.definition.view}").toDF(*names)
        return Candidate(self.definition.view, stamp, visible(changed.where(F.col(WEIGHT) > 0).drop(WEIGHT)), visible(whole))

    def _written(self, target: Target, stamp: Stamp, reading: Reading, decided: RefreshPlan, whole: bool = False) -> RefreshResult:
        rows = in_names(self.definition, self.definition.unguarded.relation.snapshot(reading))
        if self.gate is not None:
            rows = reading.frames.keep_rows(rows).frame
            self.gate(Candidate(self.definition.view, stamp, visible(rows), visible(rows)))
        gone = target.log.head().rows().count() if whole else 0
        inserted = publish.publish_rows(target, stamp, rows, clustered_by(self._view, self.definition), replace=whole)
        return result_of(decided, inserted, gone)

    def _replaced(self, target: Target, stamp: Stamp, reading: Reading, decided: RefreshPlan) -> RefreshResult:
        # Delta refuses to drop a column and to write rows in one commit while the feed is on; a reader of it then takes the data files
        set_properties(self.spark, self.table, {FEED: "false"})
        result = self._written(target, stamp, reading, decided, whole=True)
        describe(self.spark, self.table, self._view, self.definition, target.log.head())
        return result if decided.mode == "build" else replace(result, reason="the view's columns changed: all rows were written anew")

    # -- what is refused ----------------------------------------------------------------------------------------------

    def _refuse_unwanted(self) -> None:
        """Raise where the configuration forbids what this refresh would do, before anything is computed."""
        reason = explain.not_incremental(self.definition)
        if reason and self.path.eventual:
            raise DefinitionError(
                f"View {self.definition.view!r} can't run in real time: {reason}. Nothing was written. Change the query, or leave it to "
                "the strong path."
            )
        if reason and self._view.refresh_mode == "incremental":
            raise DefinitionError(
                f"View {self.definition.view!r} has `refresh_mode: incremental`, and is not incremental: {reason}. Nothing was written. "
                "Change the query, or set `refresh_mode: auto`."
            )
        scheme = unsafe_scheme(self.spark, urlparse(self.table.path or "").scheme)
        if scheme and not self.path.config.single_writer:
            raise TargetError(f"Two writers at once could lose a commit of view {self.table}. Nothing was written. {safe_writes(scheme)}")

    def _refuse_other_columns(self, current: Published) -> None:
        """Raise TargetError where the table has not the columns that the rows have: the query was edited, or somebody altered the table."""
        if not publish.same_schema(self.definition, current.pinned.schema):
            raise TargetError(
                f"The columns of the table of view {self.table} are not those of the view. Nothing was published. "
                f'Run "{self.table.recreate_command}" to write them anew.'
            )

    def _refuse_broken_keys(self, reading: Reading) -> None:
        tables = self.path.config.tables
        declared = {t: tables[t].primary_key for t in self.definition.sources if t in tables}
        refuse_broken(self.definition, reading.sources, declared)

    @contextmanager
    def _broken_keys_named(self, reading: Reading) -> Iterator[None]:
        """Where rows don't add up, a declared key that the sources break is the likely reason, and the one that the user can mend."""
        try:
            yield
        except (KeyViolationError, InternalError, *SPARK_ERRORS) as error:
            if isinstance(error, KeyViolationError | InternalError) or "LAKEJOIN_INTERNAL" in str(error):
                self._refuse_broken_keys(reading)
            raise

    def _published_or_foreign(self) -> Published | None:
        """For a rebuild: what is published, also where somebody else wrote the table since."""
        try:
            return published(self.spark, self.table)
        except TargetError:
            log = open_log(self.spark, self.table)
            if log is None or log.head().properties.get("lakejoin.view") != self.table.label:
                raise
            return Published(self.table.label, log.head(), None)


@dataclass(frozen=True)
class Candidate:
    """What a refresh is about to publish: the rows that it inserts, and all rows of the view after it, as a reader would see them."""

    view: str
    stamp: Stamp
    changed: DataFrame
    whole: DataFrame


Gate = Callable[[Candidate], None]
"""Raises BlockedError where the rows must not be published."""


def budget(view: ViewConfig, definition: Definition, inputs: Inputs, current: Published) -> Budget:
    """When a refresh falls back to a full recompute: never with `refresh_mode: incremental`."""
    if view.refresh_mode == "incremental":
        return Budget()
    read = sum(inputs.pins[source].bytes for _, source in definition.relation.sources)
    recompute = cost.of_recompute(read, current.pinned.bytes)
    return Budget(recompute, recompute if read >= cost.SMALL else 0, view.recompute_above)


def result_of(
    decided: RefreshPlan, inserted: int = 0, deleted: int = 0, edits: Edits | None = None, reading: Reading | None = None
) -> RefreshResult:
    """What a refresh that went as it was decided answers; its seconds are the caller's to count."""
    recomputed = "; ".join(dict.fromkeys(reading.budget.reasons)) if reading is not None else ""
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
