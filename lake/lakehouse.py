"""The verbs of an open lakehouse: the public API.

from lake import open_lake
lake = open_lake("lakejoin.yml")
lake.refresh("q20")
lake.read("q20")
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Concatenate, Literal, ParamSpec, TypeVar

from pyspark.sql import DataFrame, SparkSession

from lake.config.models import PAGES, Config
from lake.config.view_sources import expectations_of
from lake.core.kinds import PathKind
from lake.core.plan import nothing_new
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
from lake.core.stamp import Stamp
from lake.delta.identity import check_same
from lake.delta.pinned import Pinned
from lake.delta.retention import changed_last, changes_gone, changes_kept, expires_in, feed_gap, file_gone, is_of_a_file_gone
from lake.delta.sidecar import Folder
from lake.delta.sources import way_of
from lake.delta.tables import Table
from lake.errors import ConfigError, ExpiredError, KeyViolationError, LakeError, SourceError, TargetError
from lake.operations import agreement, backfill, maintenance, verify
from lake.operations.verify import Share
from lake.refresh import publish
from lake.refresh.publish import LostRaceError
from lake.refresh.run import Gate, Refresh, budget, result_of
from lake.relations.budget import Budget
from lake.spark.failures import SPARK_ERRORS, as_lake_error, reported, safely
from lake.spark.profile import profiled
from lake.spark.session import own_session
from lake.views import explain
from lake.views.inputs import Chooser, Inputs, Until, capture, check_named, table_of
from lake.views.registry import OpenViews
from lake.views.table import Publication, deleted, open_log, publications, published, seconds_of, visible

logger = logging.getLogger("lakejoin")
P = ParamSpec("P")
R = TypeVar("R")
Consistency = Literal["strong", "eventual"]
Blocker = Callable[["Lakehouse", str, Collection[str]], Gate]
"""(lakehouse, view, accepted findings) → the gate of one refresh."""


def _verb(
    doing: str,
) -> Callable[[Callable[Concatenate[Lakehouse, P], R]], Callable[Concatenate[Lakehouse, P], R]]:
    """A method that raises every failure of Spark as a LakeError. `doing` and the view's name begin its message."""

    def decorated(method: Callable[Concatenate[Lakehouse, P], R]) -> Callable[Concatenate[Lakehouse, P], R]:
        @wraps(method)
        def reporting(lake: Lakehouse, /, *arguments: P.args, **named: P.kwargs) -> R:
            view = next(iter([*arguments, *(named[n] for n in ("view", "table") if n in named)]), None)
            view = view if isinstance(view, str) else None
            with reported(f"{doing} {view!r}" if view else doing, lambda: lake.shown_of(view)):
                return method(lake, *arguments, **named)

        return reporting

    return decorated


class Lakehouse(OpenViews):
    """Views over Delta tables, kept exact from snapshot to snapshot. Made by `lake.opening.open_lake`.

    `blocker`: makes the gate that checks a view's blocking expectations before a refresh publishes.
    """

    def __init__(
        self, config: Config, spark: SparkSession | None = None, kind: PathKind = "strong", *, blocker: Blocker | None = None
    ) -> None:
        super().__init__(config, spark, kind)
        self._blocker = blocker

    # -- verbs ------------------------------------------------------------------------------------------------------

    def on(self, consistency: Consistency) -> Lakehouse:
        """The same views on the strong path, or (eventual) on the real-time path. Raises ConfigError for another word."""
        if consistency not in ("strong", "eventual"):
            raise ConfigError(f"`consistency` is 'strong' or 'eventual', not {consistency!r}.")
        return self if self.path.kind == consistency else Lakehouse(self.config, self.spark, consistency, blocker=self._blocker)

    @_verb("Refreshing view")
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
            return self._told(result_of(nothing_new(stamp)), started)
        return self._refreshed(view, until, accept=accept)

    @_verb("Rebuilding view")
    def rebuild(self, view: str, until: Until = None, accept: Collection[str] = ()) -> RefreshResult:
        """Compute a view anew at a snapshot and publish the difference in one commit (all rows, where its columns changed)."""
        return self._refreshed(view, until, rebuild=True, accept=accept)

    @_verb("Rebuilding view")
    def rebuild_at(self, view: str, until: Until = None, dry_run: bool = False) -> BackfillResult:
        """The same as the one step of a backfill. `dry_run`: only say what snapshot that is of."""
        inputs = capture(self.spark, self.path, view, self.reads(view), until)
        step = BackfillStep(None, {name: pin.version.number for name, pin in inputs.pins.items() if name in self.config.tables}, 0, 0)
        result = None if dry_run else self.rebuild(view, step.until)
        found = replace(step, done=not dry_run, result=result)
        return BackfillResult(view, (found,), result.seconds if result is not None else 0.0)

    @_verb("Reading view")
    def read(self, view: str, consistency: Consistency | None = None, at: Mapping[str, int] | None = None) -> DataFrame:
        """The published rows: the query's columns, nothing hidden. Raises TargetError where the view was never built.

        `consistency`: "eventual" for the real-time path's rows, "strong" (the default) for those of the last refresh. `at`: those that
        answer for some versions of the base tables (not all need be named; the newest that fits), out of the view's history or that
        of its backfills. Raises TargetError where there are none.
        """
        lake = self if consistency is None else self.on(consistency)
        if at is not None:
            return visible(lake._at(view, at).rows())
        return visible(lake._built(lake.spark, view).pinned.rows())

    @_verb("Backfilling view")
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
        """Make a view's history over a past range again, in a table of its own: built at `since`, refreshed step by step to `until`.

        `since`, `until`: {table: version} of base tables, or a time; until: default newest. `step`: so many commits of the base tables,
        or so long a time. Each step can then be read with `read(at=)`. What is there already is not made again. `publish`: replace the
        view's own rows by those at `until`, in one commit. `restart`: make all of it again. `dry_run`: only say what the steps are, and
        which are there. `on_step`: told of each.
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
        current = self._judge(order)
        asked = backfill.Replay(replay, view, order, bases, current, restart)
        found = asked.there(found)
        backfill.refuse_gone(tables, heads, found)
        if not dry_run:
            found = asked.run(found, on_step)
        published = None
        if publish and not dry_run:
            end = found[-1].until
            rows = backfill.published_at((replay,), view, end, current)
            published = self._refreshed(view, {t: n for t, n in end.items() if t in self.reads(view)}, instead=rows)
        return BackfillResult(view, tuple(found), round(time.monotonic() - started, 3), published)

    @_verb("Refreshing view")
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
        """Bring a view that is far behind to a snapshot in steps of so many commits of its tables, or of so long a time, each published.

        Views that it reads are taken as they are published. `dry_run`: only say what the steps are. `on_step`: told of each. Raises
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
        """The versions of the view's table that were published, oldest first, with what they answer for."""
        return publications(self.spark, self._view_table(view))

    @_verb("Explaining view")
    def explain(self, view: str) -> Explanation:
        """What each operator of the view does on a refresh, and why it is not incremental where it is not."""
        with self._opened(view) as state:
            definition, inputs = self._prepare(view, state)
            ways = {s: way_of(inputs.pins[s]) for s in definition.sources}
            found = Budget()
            with suppress(TargetError):  # somebody else wrote the view's table: the next refresh says so
                current = published(state.spark, self._view_table(view))
                found = budget(self.config.view(view), definition, inputs, current) if current else found
            return explain.explain(definition, ways, found)

    @_verb("Verifying view")
    def verify(self, view: str, share: Share = Share()) -> Differences:  # noqa: B008 (it is immutable)
        """The view, or a share of its keys, against its query run from scratch, by plain Spark on the pinned tables, at its snapshot.

        Raises ExpiredError where those versions can't be read any more.
        """
        spark = own_session(self.spark)
        current = self._built(spark, view)
        assert current.stamp is not None
        self._refuse_edited(current.stamp)
        try:
            return verify.verify(spark, view, self.config, self._inputs_of(spark, current.stamp), current, share)
        except SPARK_ERRORS as error:
            raise verify.unreadable(view, current.stamp.snapshot, error) from error

    @_verb("Comparing the two paths of view")
    def agreement(self, view: str, trusted: bool = True) -> Agreement:
        """The view's real-time table against the strong view, each difference in a class, judged by the snapshots of both.

        `trusted`: where both are at one snapshot, the strong view is taken for the truth; else the query is run. Raises TargetError where
        one of them was never built.
        """
        spark, eventual = own_session(self.spark), self.on("eventual")
        strong, path = self._built(spark, view), eventual._built(spark, view)
        assert strong.stamp is not None
        assert path.stamp is not None
        where, reason = agreement.position(path.stamp.answers_for, strong.stamp.answers_for), ""
        held, known = visible(path.pinned.rows()), visible(strong.pinned.rows())
        with self._opened(view) as state:
            null_extended = self._prepare(view, state)[0].null_extended
        sides = agreement.Sides(held, known, None, verify.key_of(strong), null_extended)
        try:
            if where != "equal" or not trusted:
                frames = eventual._inputs_of(spark, path.stamp)
                sides = replace(sides, truth=verify.from_scratch(spark, view, self.config, frames))
            classes = agreement.classes(sides, where, lambda: deleted(strong.pinned, held.columns))
        except (ExpiredError, *SPARK_ERRORS) as error:
            if not isinstance(error, ExpiredError) and not is_of_a_file_gone(error):
                raise
            where, reason = "undecidable", str(verify.unreadable(view, path.stamp.snapshot, error))
            classes = agreement.undecided(sides)
        snapshots = (strong.stamp.answers_for, path.stamp.answers_for)
        return Agreement(view, *snapshots, where, held.count(), classes, sides.key, reason)

    @_verb("Reading the status of view")
    def status(self, view: str | None = None) -> list[SourceStatus]:
        """Per view and source: published and newest version, lag, how long the changes stay readable, how they are read.

        Of a view of many that can't say, one row says why. Raises LakeError for the view that was named.
        """
        return self._status(view) if view is not None else [row for name in self.config.views for row in self._known(name)]

    @_verb("Refreshing all views")
    def refresh_all(self, until: Until = None) -> list[RefreshResult]:
        """Refresh every view, each after those that it reads, to one snapshot of the base tables."""
        views = self.in_order(self.config.views)
        bases = self.bases(views)
        if until is None or isinstance(until, Mapping):
            asked = until or {}
            heads = {t: table_of(self.config, t).head(self.spark).version.number for t in bases}
            until = {**heads, **check_named(asked, bases)}
        results = []
        for view in views:
            own = {t: v for t, v in until.items() if t in self.reads(view)} if isinstance(until, Mapping) else until
            results.append(self.refresh(view, own))
        return results

    @_verb("Maintaining view")
    def maintain(self, view: str | None = None, dry_run: bool = False) -> Maintenance:
        """Compact and vacuum the tables of all views, or of one, and the sources that they read with `maintain: true`.

        Nothing goes that a view of the configuration has still to read. What keeps one table from it keeps no other. `dry_run`: only say
        what a vacuum would remove. Raises LakeError.
        """
        self._refuse_eventual("maintain")
        views = list(self.config.views) if view is None else [view]
        sources = [name for name in maintenance.sources(self, views) if name in self.config.tables]
        tables = [self._view_table(v) for v in views]
        tables += [table_of(self.config, name) for name in sources if self.config.tables[name].maintain]
        tables.append(Table("quality_results", f"{self.config.quality_path}/quality_results", None))
        read, now, spark = maintenance.readers((self, self.on("eventual")), self.config.views), datetime.now(UTC), own_session(self.spark)
        warnings = [maintenance.warning(row) for v in views for row in maintenance.known_status(self, v)]
        found, failed = list[Maintained](), dict[str, str]()
        for table in tables:
            try:
                if table.label in sources or open_log(spark, table) is not None:
                    found.append(maintenance.maintain(spark, table, read, now, dry_run))
            except LakeError as error:
                failed[table.label] = str(error)
        if not dry_run:
            for folder in (self.config.runs_path, *(f"{self.config.quality_path}/{name}" for name in ("validations", PAGES))):
                maintenance.forget_runs(spark, folder, now)
        return Maintenance(tuple(found), tuple(filter(None, warnings)), failed)

    # -- for doctor ---------------------------------------------------------------------------------------------------

    @_verb("Reading table")
    def source_head(self, table: str) -> Pinned:
        """A source's newest version. Raises SourceError, also where a declared key's column is missing."""
        declared = table_of(self.config, table)
        head = declared.head(self.spark)
        missing = [c for c in declared.primary_key if c.lower() not in {name.lower() for name in head.schema.names}]
        if missing:
            there = ", ".join(head.schema.names)
            raise SourceError(f"`tables.{table}.primary_key`: {declared} has no column {missing[0]!r}. It has: {there}.")
        return head

    @_verb("Reading the log of table")
    def feed_gap(self, table: str, since: int) -> str:
        """Why a source's change feed can't be read from a version on; empty where it can, or there is none. Raises SourceError."""
        head = self.source_head(table)
        return feed_gap(head, since) if head.has_feed else ""

    @_verb("Reading the log of table")
    def changes_gone(self, table: str, since: int) -> str:
        """Why a source's changes from a version on can't be read any more; empty where they can. Raises SourceError."""
        return changes_gone(self.source_head(table), since)

    @_verb("Reading the log of table")
    def changed_last(self, table: str) -> datetime:
        """When the newest commit was made that changes a source's rows, as far as its log is looked at. Raises SourceError."""
        return changed_last(self.source_head(table))

    @_verb("Reading the log of table")
    def source_commits(self, table: str) -> list[tuple[int, float]]:
        """(version, seconds since 1970) of each commit of a source that is still in its log, oldest first. Raises SourceError."""
        return [(int(c["version"]), seconds_of(c["timestamp"])) for c in self.source_head(table).log.history()]

    def folder(self, path: str) -> Folder:
        """Small text files at a path or URI, wherever Spark writes."""
        return Folder(self.spark, path)

    def probe_put_if_absent(self, folder: str, name: str) -> str | None:
        """Make a file in the folder, see that it can't be made twice, remove it; what went wrong, None if nothing."""
        return self.folder(folder).put_if_absent_problem(name)

    # -- what the verbs share ---------------------------------------------------------------------------------------

    def _refreshed(
        self, view: str, until: Until | Chooser, rebuild: bool = False, instead: Pinned | None = None, accept: Collection[str] = ()
    ) -> RefreshResult:
        started, gate = time.monotonic(), self._gate(view, accept)
        with self._opened(view) as state:
            for attempt in range(1, publish.ATTEMPTS + 1):
                definition, inputs = self._prepare(view, state, until)
                try:
                    result = Refresh(self.path, state.spark, definition, inputs, rebuild, state.cache, instead, gate).run()
                except LostRaceError:
                    if attempt == publish.ATTEMPTS:
                        raise
                    continue
                except KeyViolationError as error:
                    raise error.showing(self.shown(view)) from error.__cause__
                except SPARK_ERRORS as error:
                    raise self._failed(view, error, inputs) from error
                break
        return self._told(result, started)

    def _told(self, result: RefreshResult, started: float) -> RefreshResult:
        found = replace(result, seconds=round(time.monotonic() - started, 3))
        logger.info("refreshed", extra={"lakejoin": {"event": "refresh", **found.to_json()}})
        return found

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

    def _failed(self, view: str, error: Exception, inputs: Inputs) -> LakeError:
        if is_of_a_file_gone(error) and (gone := file_gone(error, inputs.pins, self._since(view))):
            return ExpiredError(
                f"View {view!r} has to read a file that is gone: {gone} (VACUUM removed it, if nobody else did). Nothing was written. "
                f'Run "{self._view_table(view).recreate_command}".'
            )
        shown = safely(lambda: self.shown(view))
        return as_lake_error(error, f"Computing view {view!r}", shown, "Nothing was written.")

    def _since(self, view: str) -> Mapping[str, int]:
        """What the view's rows were made of, where that is known."""
        with suppress(TargetError):
            stamp = self.stamp(view)
            return stamp.snapshot if stamp is not None else {}
        return {}

    def _at(self, view: str, at: Mapping[str, int]) -> Pinned:
        """The newest published version that answers for these versions of base tables: of the view's own table, or of its replay's."""
        return backfill.published_at((self, Lakehouse(self.config, self.spark, "replay")), view, at, self._judge([view]))

    def _refuse_eventual(self, verb: str) -> None:
        if self.path.kind != "strong":
            raise ConfigError(f"`{verb}` works on the strong path. Call it on the lake itself, or on `lake.on('strong')`.")

    def _known(self, view: str) -> list[SourceStatus]:
        try:
            return self._status(view)
        except LakeError as error:
            return [SourceStatus(view, "-", None, None, None, None, "not known", str(error))]

    def _status(self, view: str) -> list[SourceStatus]:
        reads = self.reads(view)
        if any(name in self.config.views and self.table_log(name) is None for name in reads):
            return [SourceStatus(view, name, None, None, None, None, "a view below it is yet to be built", "") for name in reads]
        with self._opened(view) as state:
            _, inputs = self._prepare(view, state)
            current = published(state.spark, self._view_table(view))
            stamp = current.stamp if current else None
            return [_source_status(view, inputs.tables[s], stamp, p) for s, p in inputs.pins.items()]


def _source_status(view: str, table: Table, stamp: Stamp | None, pinned: Pinned) -> SourceStatus:
    source, newest = table.label, pinned.version.number
    read = stamp.snapshot.get(source) if stamp else None
    if stamp is not None and read is not None:
        try:
            check_same(table, pinned, stamp.snapshot.versions[source])
        except SourceError as error:
            return SourceStatus(view, source, read, newest, None, None, "another table", str(error))
    left = expires_in(pinned, read, datetime.now(UTC)) if read is not None else None
    way = way_of(pinned)
    advice = (
        ""
        if pinned.has_feed
        else f"ALTER TABLE ... SET TBLPROPERTIES (delta.enableChangeDataFeed = true) makes changes of {source} cheaper"
    )
    lag = None if read is None else newest - read
    seconds, kept = left.total_seconds() if left is not None else None, changes_kept(pinned).total_seconds()
    return SourceStatus(view, source, read, newest, lag, seconds, way, advice, kept)
