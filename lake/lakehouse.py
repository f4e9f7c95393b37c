"""The verbs of an open lakehouse: the public API.

from lake import open_lake
lake = open_lake("lakejoin.yml")
lake.refresh("q20")
lake.read("q20")
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from lake.config.models import PAGES, Config
from lake.config.view_sources import expectations_of
from lake.core.adoption import Adoption
from lake.core.alone import Alone, unshared
from lake.core.constants import PathKind
from lake.core.environments import DroppedEnvironment, PromotedView
from lake.core.plan import nothing_new
from lake.core.planned import Plan, PlannedView
from lake.core.removals import Collected, Dropped, RemovedView
from lake.core.results import (
    Agreement,
    BackfillResult,
    BackfillStep,
    Differences,
    Explanation,
    Maintained,
    Maintenance,
    RefreshResult,
    SourceStatus,
)
from lake.delta import two_writers
from lake.delta.feed_properties import way_of
from lake.delta.pinned import Pinned
from lake.delta.retention import changed_last, changes_gone, feed_gap
from lake.delta.sidecar import Folder
from lake.delta.tables import Table
from lake.errors import ConfigError, LakeError, SourceError, TargetError
from lake.operations import (
    adopting,
    applying,
    backfill,
    compare,
    development,
    drop,
    environments,
    leftovers,
    maintenance,
    planning,
    removed_views,
)
from lake.operations.failures import verb
from lake.operations.in_parallel import Ordered, workers
from lake.operations.promoting import Promoting, refuse_other_environments, refuse_other_settings, refuse_refused
from lake.operations.refresh_all import refresh_all
from lake.operations.refreshing import Request, logged, refreshed
from lake.operations.status import status_of, status_of_all
from lake.operations.verify import Share
from lake.refresh.compute import Gate
from lake.refresh.decide import budget
from lake.refresh.outcome import result_of
from lake.relations.budget import Budget
from lake.spark.profile import profiled
from lake.spark.session import own_session
from lake.views import explain
from lake.views.inputs import Chooser, Until, capture, check_named, table_of
from lake.views.registry import OpenViews
from lake.views.table import Publication, open_log, publications, published, refuse_ambiguous, seconds_of, visible

Consistency = Literal["strong", "eventual"]
Blocker = Callable[["Lakehouse", str, Collection[str]], Gate]
"""(lakehouse, view, accepted findings) → the gate of one refresh."""


class Lakehouse(OpenViews):
    """Views over Delta tables, kept exact from snapshot to snapshot. Made by `lake.opening.open_lake`.

    `blocker`: makes the gate that checks a view's blocking expectations before a refresh publishes. `one_command`: the process ends after
    one command.
    """

    def __init__(
        self,
        config: Config,
        spark: SparkSession | None = None,
        kind: PathKind = "strong",
        *,
        blocker: Blocker | None = None,
        one_command: bool = False,
    ) -> None:
        super().__init__(config, spark, kind, one_command)
        self._blocker = blocker

    # -- verbs ------------------------------------------------------------------------------------------------------

    def on(self, consistency: Consistency) -> Lakehouse:
        """The same views on the strong path, or (eventual) on the real-time path. Raises ConfigError for another word."""
        if consistency not in ("strong", "eventual"):
            raise ConfigError(f"`consistency` is 'strong' or 'eventual', not {consistency!r}.")
        return self if self.path.kind == consistency else Lakehouse(self.config, self.spark, consistency, blocker=self._blocker)

    @verb("Refreshing view")
    def refresh(self, view: str, until: Until | Chooser = None, accept: Collection[str] = (), profile: bool = False) -> RefreshResult:
        """Bring a view to a snapshot of its sources; the first refresh builds it.

        `until`: {table: version} (tables not named: newest), a time (datetime or ISO text), or None for newest. `accept`: findings that
        are not to stop it, this once. `profile`: say where the time went. Raises LakeError with what to do; the published view is then as
        it was.
        """
        if profile:
            result, went = profiled(lambda: self._spark, lambda: self.refresh(view, until, accept))
            return replace(result, profile=went)
        started = time.monotonic()
        stamp = self.unchanged(view) if until is None else None
        if stamp is not None:
            return logged(result_of(nothing_new(stamp)), started)
        return refreshed(self, Request(view, until, gate=self._gate(view, accept)))

    @verb("Rebuilding view")
    def rebuild(self, view: str, until: Until = None, accept: Collection[str] = ()) -> RefreshResult:
        """Recompute a view at a snapshot and publish the difference in one commit (all rows, where its columns changed)."""
        return refreshed(self, Request(view, until, rebuild=True, gate=self._gate(view, accept)))

    @verb("Rebuilding view")
    def rebuild_at(self, view: str, until: Until = None, dry_run: bool = False) -> BackfillResult:
        """The same as the one step of a backfill. `dry_run`: only say what snapshot that is of."""
        inputs = capture(self.spark, self.path, view, self.reads(view), until)
        step = BackfillStep(None, {name: pin.version.number for name, pin in inputs.pins.items() if name in self.config.tables}, 0, 0)
        result = None if dry_run else self.rebuild(view, step.until)
        found = replace(step, done=not dry_run, result=result)
        return BackfillResult(view, (found,), result.seconds if result is not None else 0.0)

    @verb("Planning the views")
    def plan(self, rows: Share | None = None) -> Plan:
        """What the configuration changes, view by view: what `apply` would build, edit or rebuild, how and why. Nothing is written.

        `rows`: also run the edited queries at the snapshots of their views, and say which rows of this share (Share(): all) they change.
        """
        self._refuse_eventual("plan")
        return planning.plan(self, rows)

    @verb("Applying the configuration")
    def apply(
        self,
        views: Collection[str] | None = None,
        plan: Plan | None = None,
        on_end: Callable[[PlannedView, RefreshResult], None] = lambda *_: None,
        *,
        alone: Alone = unshared,
    ) -> list[RefreshResult]:
        """Carry out what `plan` says, for all views or some, in dependency order, each in one commit; readers see the old rows until then.

        `plan`: one that was read before; ConcurrencyError, with nothing written, where it is another one now. `on_end`: called with each
        view that is done. An edit leaves the view at its snapshot; its next refresh reads what came since. A view that fails does not stop
        those that do not read it: ViewsFailedError names each at the end, and the next call goes on. `alone`: entered with the names of
        views around what changes them; it gives whether others changed them until then, so that they have to be planned again.
        """
        self._refuse_eventual("apply")
        for view in views or ():
            self.config.view(view)

        def act(planned: PlannedView) -> RefreshResult:
            if planned.action != "build":
                return self.rebuild(planned.view)
            if self.config.production is None:
                return self.refresh(planned.view)
            until = development.as_production(self, planned.view)
            return refreshed(self, Request(planned.view, until, gate=self._gate(planned.view, ()), own=True))

        return applying.apply(self, applying.Request(act, views, plan, on_end, alone))

    @verb("Promoting the environment")
    def promote(
        self,
        views: Collection[str] | None = None,
        *,
        dry_run: bool = False,
        accept: Collection[str] = (),
        on_end: Callable[[RefreshResult], None] = lambda _: None,
    ) -> list[PromotedView]:
        """Let production take over the rows of the views of a development environment (all of its own, or those named), in dependency
        order, each in one commit; readers of production see the old rows until then.

        `dry_run`: only say what would be done. `accept`: findings of blocking expectations that are not to stop it; `on_end`: called with
        each view that is done. Raises LakeError, before anything is written, where a view can't be promoted. Run again, it goes on.
        """
        self._refuse_eventual("promote")
        production = self._production("promote")
        refuse_other_settings(self)
        plan = list(Promoting(self, production).each(views))
        if not dry_run:
            refuse_refused(plan, self.config.environment)
        for planned in plan if not dry_run else ():
            gate = production._gate(planned.view, accept)
            started, result = time.monotonic(), Promoting(self, production).promoted(planned.view, gate)
            if result is not None:
                on_end(logged(result, started))
        return plan

    @verb("Dropping the environment")
    def drop_environment(self, *, dry_run: bool = False) -> DroppedEnvironment:
        """Drop all tables of a development environment, with all that is kept of its views, and the results of its checks and scheduled
        runs; its views are production's again.

        `dry_run`: only say what there is. Raises LakeError. Killed half-way, the next call goes on.
        """
        self._refuse_eventual("drop_environment")
        self._production("drop")
        return environments.drop_environment(self, dry_run)

    def _production(self, verb: str) -> Lakehouse:
        """What the development environment is one of. Raises ConfigError for another environment."""
        refuse_other_environments(self, verb)
        assert self.config.production is not None
        return Lakehouse(self.config.production, self.spark, blocker=self._blocker)

    @verb("Adopting a table for view")
    def adopt(
        self,
        view: str,
        table: str | None = None,
        at: Until = None,
        *,
        repair: bool = False,
        verify_first: bool = False,
        dry_run: bool = False,
        accept: Collection[str] = (),
        may: Callable[[Adoption], bool] = lambda _: True,
        on_progress: Callable[[str], None] = lambda _: None,
    ) -> Adoption:
        """Let a view that is not built yet go on from a Delta table that another job made, without building it.

        The table's rows are compared with the view's query at a snapshot, as `verify` does; if they are equal, one commit makes it the
        view's table, at the view's place, and the next refresh reads what came since. `table`: its path (below `root` if it is relative) or
        its name in a catalog, by default the view's own place. `at`: {table: version} of all base tables that the view reads, or a time;
        `verify_first`: find it. `repair`: where rows differ, publish the difference in the same commit. `dry_run`: compare, and write
        nothing. `accept`: findings of blocking expectations that are not to stop it. `may`: asked before anything is written, also where
        rows that are equal have to be written once more for hidden columns, as `changes` then says. `on_progress`: told what is being done.
        Raises RowsDifferError where the rows differ, LakeError with what to do; nothing is written then.
        """
        self._refuse_eventual("adopt")
        if self.config.production is not None:
            raise ConfigError("`adopt` writes into a table of somebody else, which no development environment does. Use it in production.")
        gate = self._gate(view, accept)
        return adopting.adopt(self, adopting.Request(view, table, at, repair, verify_first, dry_run, gate, on_progress, may))

    @verb("Reading view")
    def read(self, view: str, consistency: Consistency | None = None, at: Mapping[str, int] | None = None) -> DataFrame:
        """The published rows: the query's columns, nothing hidden. Raises TargetError where the view was never built.

        `consistency`: "eventual" for the real-time path's rows, "strong" (the default) for those of the last refresh. `at`: those that
        were built from these versions of base tables (the newest that fits; not all tables need be named), from the history of the
        view or of its backfills. Raises TargetError where there are none.
        """
        lake = self if consistency is None else self.on(consistency)
        if at is not None:
            return visible(lake._at(view, at).rows())
        return visible(lake.built(lake.spark, view).pinned.rows())

    @verb("Backfilling view")
    def backfill(
        self,
        view: str,
        since: Until,
        until: Until = None,
        step: int | timedelta = 1,
        *,
        publish: bool = False,
        restart: bool = False,
        dry_run: bool = False,
        on_step: Callable[[BackfillStep], None] = lambda _: None,
    ) -> BackfillResult:
        """Recompute a view's history over a past range, in a table of its own: built at `since`, refreshed step by step to `until`.

        `since`, `until`: {table: version} of base tables, or a time; until: default newest. `step`: a number of commits of the base
        tables, or a length of time. Each step can then be read with `read(at=)`. Steps that exist are not made again. `publish`: replace
        the view's own rows with those at `until`, in one commit. `restart`: make all steps again. `dry_run`: only list the steps, and
        which of them exist. `on_step`: called with each.
        Raises LakeError, before anything is made where the range can't be read.
        """
        started = time.monotonic()
        self._refuse_eventual("backfill")
        replay = Lakehouse(self.config, self.spark, "replay")
        order = self.in_order(self.views_below(view))
        bases = {v: self.bases_below(v) for v in order}
        tables = {table: table_of(self.config, table) for table in bases[view]}
        heads = {name: table.head(self.spark) for name, table in tables.items()}
        found = backfill.steps(heads, since, until, step)
        current = self.definition_check(order)
        asked = backfill.Replay(replay, view, order, bases, current, restart)
        found = asked.there(found)
        backfill.refuse_gone(tables, heads, found)
        if not dry_run:
            found = asked.run(found, on_step)
        published = None
        if publish and not dry_run:
            end = found[-1].until
            rows = backfill.published_at((replay,), view, end, current)
            own = {t: n for t, n in end.items() if t in self.reads(view)}
            published = refreshed(self, Request(view, own, instead=rows, gate=self._gate(view, ())))
        return BackfillResult(view, tuple(found), round(time.monotonic() - started, 3), published)

    @verb("Refreshing view")
    def catch_up(
        self,
        view: str,
        step: int | timedelta,
        until: Until = None,
        *,
        dry_run: bool = False,
        profile: bool = False,
        on_step: Callable[[BackfillStep], None] = lambda _: None,
    ) -> BackfillResult:
        """Bring a view that is far behind to a snapshot in steps of some commits of its tables, or of a length of time, each published.

        Views that it reads stay as they are published. `dry_run`: only list the steps. `on_step`: called with each. Raises
        LakeError; the steps before it stay.
        """
        started, stamp = time.monotonic(), self.stamp(view)
        inputs = capture(self.spark, self.path, view, self.reads(view), None)
        heads = {name: pin for name, pin in inputs.pins.items() if name in self.config.tables and name not in inputs.bases}
        read = {table: number for table, number in stamp.snapshot.items() if table in heads} if stamp is not None else {}
        found = backfill.ahead(heads, read, until, step)
        if not dry_run:
            found = backfill.each(found, lambda planned: self.refresh(view, planned.until, profile=profile), on_step)
        return BackfillResult(view, tuple(found), round(time.monotonic() - started, 3))

    def history(self, view: str) -> Iterator[Publication]:
        """The versions of the view's table that were published, oldest first, with the snapshots they were built from."""
        return publications(self.spark, self.view_table(view))

    @verb("Explaining view")
    def explain(self, view: str) -> Explanation:
        """What each operator of the view does on a refresh, and why it is not incremental where it is not."""
        with self.opened(view) as state:
            definition, inputs = self.prepare(view, state)
            ways = {s: way_of(inputs.pins[s].properties) for s in definition.sources}
            found = Budget()
            with suppress(TargetError):  # somebody else wrote the view's table: the next refresh says so
                current = published(state.spark, self.view_table(view))
                found = budget(self.config.view(view), definition, inputs, current) if current else found
            return explain.explain(definition, ways, found)

    @verb("Verifying view")
    def verify(self, view: str, share: Share = Share()) -> Differences:  # noqa: B008 (it is immutable)
        """The view, or a share of its keys, against its query run from scratch, by plain Spark on the pinned tables, at its snapshot.

        Also where somebody else wrote into the view's table since: the result then has these commits, and the rows that they changed.
        Raises ExpiredError where those versions can't be read any more, TargetError where somebody else changed the table's columns.
        """
        return compare.verified(self, view, share)

    @verb("Comparing the two paths of view")
    def agreement(self, view: str, trusted: bool = True) -> Agreement:
        """The view's real-time table against the strong view, each difference in a class, judged by the snapshots of both.

        `trusted`: where both are at one snapshot, the strong view is taken for the truth; else the query is run. Raises TargetError where
        one of them was never built.
        """
        return compare.agreed(self, self.on("eventual"), view, trusted)

    @verb("Reading the status of view")
    def status(self, view: str | Collection[str] | None = None) -> list[SourceStatus]:
        """Per view and source: published and newest version, lag, how long the changes stay readable, how they are read.

        Of a view of many (some, or all) that can't say, one row says why. Raises LakeError for the view that was named alone.
        """
        if isinstance(view, str):
            return status_of(self, view)
        return status_of_all(self, self.config.views if view is None else view)

    @verb("Refreshing all views")
    def refresh_all(self, until: Until = None, parallel: int | None = None) -> list[RefreshResult]:
        """Refresh every view, each after those that it reads, to one snapshot of the base tables.

        `parallel`: how many views at once (default: `parallel` of the configuration, else one for each core). A view that fails does not
        stop the others; those that read it are skipped. Raises ViewsFailedError at the end, which names each.
        """
        many = workers(parallel, self.config.parallel)
        views = self.in_order(self.config.views)
        bases, asked = self.bases(views), dict[str, int]()
        if until is None or isinstance(until, Mapping):
            asked = check_named(until or {}, bases)
            until = {t: table_of(self.config, t).head(self.spark).version.number for t in bases} | asked

        def refresh(view: str) -> RefreshResult:
            if not isinstance(until, Mapping):
                return self.refresh(view, until)
            held = development.held(self, view)
            return self.refresh(view, {t: v for t, v in until.items() if t in self.reads(view) and (t in asked or t not in held)})

        return refresh_all(Ordered(views, self.reads), refresh, many, self._spark)

    @verb("Maintaining view")
    def maintain(self, view: str | None = None, dry_run: bool = False) -> Maintenance:
        """Compact and vacuum the tables of all views, or of one, and the sources that they read with `maintain: true`.

        Files that a view of the configuration has still to read stay. A table that can't be maintained does not stop the others.
        `dry_run`: only say what a vacuum would remove. Raises LakeError.
        """
        self._refuse_eventual("maintain")
        views = [v for v in self.config.views if not self.is_shared(v)] if view is None else [view]
        sources = [name for name in maintenance.sources(self, views) if name in self.config.tables]
        tables = [self.view_table(v) for v in views]
        tables += [table_of(self.config, name) for name in sources if self.config.tables[name].maintain and self.config.production is None]
        tables.append(Table("quality_results", f"{self.config.quality_path}/quality_results", None))
        read, now, spark = maintenance.readers((self, self.on("eventual")), self.config.views), datetime.now(UTC), own_session(self.spark)
        warnings = [maintenance.warning(row) for v in views for row in maintenance.known_status(self, v)]
        found, failed = list[Maintained](), dict[str, str]()
        for table in tables:
            try:
                if table.label in sources or open_log(spark, table) is not None:
                    if not dry_run:
                        two_writers.refuse(spark, table, self.config.single_writer)
                    found.append(maintenance.maintain(spark, table, read, now, dry_run))
            except LakeError as error:
                failed[table.label] = str(error)
        if not dry_run:
            for folder in (self.config.runs_path, *(f"{self.config.quality_path}/{name}" for name in ("validations", PAGES))):
                maintenance.forget_runs(spark, folder, now)
        return Maintenance(tuple(found), tuple(filter(None, warnings)), failed)

    @verb("Dropping view")
    def drop(self, view: str, *, force: bool = False, dry_run: bool = False) -> Dropped:
        """Drop all that is kept of a view, also of one that is no longer in the configuration: its tables on all paths with what is beside
        them, and the files of scheduled runs of this view only.

        `force`: also if other views or tables of the configuration read it. `dry_run`: only say what there is, with sizes. Raises
        LakeError; nothing was removed then. Killed half-way, nothing reads it as a view any more, and the next call finishes.
        """
        self._refuse_eventual("drop")
        return drop.drop(self, view, force, dry_run)

    @verb("Looking for removed views")
    def removed_views(self) -> list[RemovedView]:
        """The views that are no longer in the configuration, and of which there still are tables where it puts the tables of views."""
        return removed_views.removed_views(self)

    @verb("Looking for leftovers")
    def gc(self, older_than: float | None = None, *, dry_run: bool = True) -> Collected:
        """Find what is left of views that are no longer in the configuration, and of scheduled runs that died; unless it is a `dry_run`,
        drop what is due.

        `older_than`: in days since the last refresh, instead of `drop_after_days` of the configuration.
        """
        self._refuse_eventual("gc")
        return leftovers.collect(self, older_than, dry_run, datetime.now(UTC))

    # -- for doctor ---------------------------------------------------------------------------------------------------

    @verb("Reading table")
    def source_head(self, table: str) -> Pinned:
        """A source's newest version. Raises SourceError, also where a declared key's column is missing."""
        declared = table_of(self.config, table)
        head = declared.head(self.spark)
        missing = [c for c in declared.primary_key if c.lower() not in {name.lower() for name in head.schema.names}]
        if missing:
            there = ", ".join(head.schema.names)
            raise SourceError(f"`tables.{table}.primary_key`: {declared} has no column {missing[0]!r}. It has: {there}.")
        return head

    @verb("Reading the log of table")
    def feed_gap(self, table: str, since: int) -> str:
        """Why a source's change feed can't be read from a version on; empty where it can, or there is none. Raises SourceError."""
        head = self.source_head(table)
        return feed_gap(head, since) if head.has_feed else ""

    @verb("Reading the log of table")
    def changes_gone(self, table: str, since: int) -> str:
        """Why a source's changes from a version on can't be read any more; empty where they can. Raises SourceError."""
        return changes_gone(self.source_head(table), since)

    @verb("Reading the log of table")
    def changed_last(self, table: str) -> datetime:
        """When the newest commit was made that changes a source's rows, as far as its log is looked at. Raises SourceError."""
        return changed_last(self.source_head(table))

    @verb("Reading the log of table")
    def source_commits(self, table: str) -> list[tuple[int, float]]:
        """(version, seconds since 1970) of each commit of a source that is still in its log, oldest first. Raises SourceError."""
        return [(int(c["version"]), seconds_of(c["timestamp"])) for c in self.source_head(table).log.history()]

    def folder(self, path: str) -> Folder:
        """Small text files at a path or URI, wherever Spark writes."""
        return Folder(self.spark, path)

    @verb("Locating the table of view")
    def target_folder(self, view: str) -> str:
        """The folder (a URI) in which the table of a view is, or will be. Raises TargetError for a schema that does not exist, or a target
        that may be a folder or a schema."""
        table = Table(view, self.config.view_path(view), self.config.view_name(view))
        refuse_ambiguous(self.spark, self.config.ambiguous_target, table)
        return two_writers.location(self.spark, table).rpartition("/")[0]

    def lost_commits(self, folder: str) -> str:
        """What to do so that two writers at once can't lose a commit in a folder; empty if they can't."""
        return two_writers.lost_commits(self.spark, folder)

    def probe_put_if_absent(self, folder: str, name: str) -> str | None:
        """Make a file in the folder, see that it can't be made twice, remove it; what went wrong, None if nothing."""
        return two_writers.problem(self.spark, folder, name)

    # -- what the verbs share ---------------------------------------------------------------------------------------

    def _gate(self, view: str, accept: Collection[str]) -> Gate | None:
        """The check before publishing, None where no expectation of the view blocks. Raises ConfigError where nothing can check them."""
        if self.path.kind != "strong" or all(e.on_failure != "block" for e in expectations_of(self.config, view)):
            return None
        if self._blocker is None:
            raise ConfigError(
                f"View {view!r} has expectations with `on_failure: block`, and this Lakehouse was made without what checks them. "
                "Open it with lake.open_lake."
            )
        return self._blocker(self, view, accept)

    def _at(self, view: str, at: Mapping[str, int]) -> Pinned:
        """The newest published version that was built from these versions of base tables: of the view's own table, or of its replay's."""
        return backfill.published_at((self, Lakehouse(self.config, self.spark, "replay")), view, at, self.definition_check([view]))

    def _refuse_eventual(self, verb: str) -> None:
        if self.path.kind != "strong":
            raise ConfigError(f"`{verb}` works on the strong path. Call it on the lake itself, or on `lake.on('strong')`.")
