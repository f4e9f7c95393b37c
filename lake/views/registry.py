"""The views of a configuration, opened in a session: what they read, how they are defined, what is published of them.

What the verbs of lakehouse.py share. Nothing here writes a table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lake.catalyst.user_functions import registered_functions
from lake.config.models import Config, RealtimeConfig
from lake.core.constants import PathKind
from lake.core.phases import phase
from lake.core.plan import check_fingerprint, differing
from lake.core.redaction import Samples
from lake.core.stamp import Stamp
from lake.delta.actions import Commit
from lake.delta.identity import check_same
from lake.delta.log import Log
from lake.delta.pinned import Pinned
from lake.delta.tables import Table, pin_at
from lake.errors import LakeError, TargetError
from lake.relations.lookup_cache import LookupCache
from lake.spark.session import active_session, make_session, own_session, refuse_untested_session
from lake.views.definition import Definition, define
from lake.views.inputs import Chooser, Inputs, Until, ViewPath, capture, in_order
from lake.views.production_tables import place_of
from lake.views.query import named
from lake.views.sizes import are_small
from lake.views.table import Published, open_log, published, published_and_others, visible
from lake.views.up_to_date import unchanged
from lake.views.user_functions import load_function


@dataclass
class OpenView:
    """The state of a view between calls: a session of its own with the caller's functions, a lock, the names in its query, and the
    definition last analysed, with the inputs' schemas and keys that it was analysed over. `users`: how often the lock's owner has
    opened it."""

    spark: SparkSession
    functions: str
    lock: Any = field(default_factory=threading.RLock)
    users: int = 0
    cache: LookupCache | None = None
    names: list[str] | None = None
    seen: object = None
    definition: Definition | None = None


class OpenViews:
    """Views by their names in the configuration, on one path.

    `kind`: on the strong path; or "eventual", on the real-time path, whose tables begin as copies of the strong path's, and each refresh of
    theirs is a batch (realtime/run.py); or "replay", where a backfill makes a view's history again (backfill.py). `one_command`: the
    process ends after one command.
    """

    def __init__(self, config: Config, spark: SparkSession | None = None, kind: PathKind = "strong", one_command: bool = False) -> None:
        self.config = config
        self.path = ViewPath(config, kind, None if config.production is None else self._place)
        self._spark, self._one_command, self._tested = spark, one_command, False
        self._views: dict[str, OpenView] = {}
        self._lock, self._starting = threading.Lock(), threading.Lock()

    @property
    def spark(self) -> SparkSession:
        """The caller's session, or the one that Lakejoin makes."""
        if self._spark is None:
            with phase("start Spark"), self._starting:
                self._spark = self._spark or self._session()
        if not self._tested:
            self._refuse_untested(self._spark)
        return self._spark

    def _refuse_untested(self, spark: SparkSession) -> None:
        if not self.config.allow_untested:
            refuse_untested_session(spark)
        self._tested = True

    def _session(self) -> SparkSession:
        briefly = self._one_command and are_small(self.config)
        return make_session(self.config.spark, briefly=briefly, one_writer=self.config.single_writer)

    def _place(self, view: str) -> Table:
        """Where a view of a development environment is on the strong path."""
        self.config.view(view)
        return place_of(self.spark, self.config, view)

    def is_shared(self, view: str) -> bool:
        """Whether the view is read from production's table, in a development environment."""
        return self.config.production is not None and bool(self.view_table(view).reader)

    def in_order(self, views: Iterable[str]) -> list[str]:
        """The views, each after those that it reads. Raises DefinitionError naming a cycle."""
        return in_order(self.config, views, self.reads)

    def reads(self, view: str) -> list[str]:
        """The tables and views that a view names. Raises DefinitionError where views read each other in a cycle."""
        opened = self._views.get(view)
        if opened is not None and opened.names is not None:  # without the view's lock, which a refresh in another thread may hold
            return opened.names
        with self.opened(view) as state:
            if state.names is None:
                with phase("analyse"):
                    state.names = named(state.spark, view, self.config)
            return state.names

    def bases(self, views: Iterable[str]) -> list[str]:
        """The base tables that the views name themselves."""
        return list(dict.fromkeys(table for view in views for table in self.reads(view) if table in self.config.tables))

    def views_below(self, view: str) -> list[str]:
        """The view and those that it reads, directly or not."""
        found = [view]
        for name in found:
            found += [v for v in self.reads(name) if v in self.config.views and v not in found]
        return found

    def bases_below(self, view: str) -> list[str]:
        """The base tables that the view reads, also through other views."""
        return self.bases(self.views_below(view))

    def shown(self, view: str) -> Samples:
        """How much of the view's rows may be shown."""
        return self.config.shown(view, self.bases_below(view))

    def shown_of(self, view: str | None) -> Samples:
        """How much may be shown of a view's rows; without a (known) view, no more than of the most protected one."""
        if view in self.config.views:
            return self.shown(str(view))
        shown = Samples(self.config.samples)
        hidden = any(table.sensitive for table in self.config.tables.values()) or any(v.sensitive for v in self.config.views.values())
        return Samples("keys") if hidden and shown.how == "rows" else shown

    def definition_key(self, view: str) -> tuple[str, ...]:
        """The key that the view's definition has, whether it is built or not; none where a column of it is not among the query's."""
        with self.opened(view) as state:
            definition = self.prepare(view, state)[0]
        names = [c.name for c in definition.columns]
        return definition.key_names if all(n in names for n in definition.key_names) else ()

    def published_version(self, view: str) -> tuple[int, dict[str, int]] | None:
        """The newest version of the view's table, and the base tables' versions that it was built from; None where it was never built."""
        current = published(self.spark, self.view_table(view))
        return (current.pinned.version.number, dict(current.stamp.answers_for)) if current and current.stamp else None

    def stamp(self, view: str) -> Stamp | None:
        """What the view's rows were published with last, None where it was never built. Raises TargetError."""
        current = published(self.spark, self.view_table(view))
        return current.stamp if current is not None else None

    def table_log(self, view: str) -> Log | None:
        """The log of the view's table, None where there is none."""
        return open_log(self.spark, self.view_table(view))

    def state_bytes(self, view: str) -> int:
        """How many bytes Lakejoin keeps of the view besides its rows: its stamp."""
        current = self.built(self.spark, view)
        assert current.stamp is not None
        return len(current.stamp.to_json().encode())

    def cache_of(self, view: str) -> LookupCache | None:
        """The cache of looked-up rows."""
        with self.opened(view) as state:
            return state.cache

    def unchanged(self, view: str) -> Stamp | None:
        """The stamp of a view whose refresh is a no-op, where that can be found out without a JVM and none runs yet; else None."""
        return unchanged(self.config, view) if self._spark is None and self.path.kind == "strong" else None

    @contextmanager
    def opened(self, view: str) -> Iterator[OpenView]:
        """A view's state under its lock, in a session with the functions that the caller's session has now.

        The view's session is the thread's own meanwhile, for Delta asks the thread (a new one has none).
        """
        self.config.view(view)
        with self._lock:
            if view not in self._views:
                self._views[view] = OpenView(own_session(self.spark), registered_functions(self.spark))
        state = self._views[view]
        with state.lock:
            functions = registered_functions(self.spark)
            if state.functions != functions and not state.users:
                state.spark, state.functions, state.definition = own_session(self.spark), functions, None
            state.users += 1
            try:
                with active_session(state.spark):
                    yield state
            finally:
                state.users -= 1

    def prepare(self, view: str, state: OpenView, until: Until | Chooser = None) -> tuple[Definition, Inputs]:
        """Capture the newest version of each table that the view may read, once, and analyse the view if a schema is new."""
        names = self.reads(view)
        if any(name in self.config.views for name in names):
            self.in_order([view])
        inputs = capture(state.spark, self.path, view, names, until)
        settings = self.config.view(view)
        analysed = (inputs.schemas, inputs.primary_keys, load_function(settings, self.config) if settings.function else None)
        if state.definition is None or state.seen != analysed:
            with phase("analyse"):
                state.definition = define(state.spark, view, self.config, inputs.schemas, inputs.primary_keys)
            state.seen = analysed
            state.cache = self._cache(state.definition)
        return state.definition, inputs.only(state.definition.sources)

    def _cache(self, definition: Definition) -> LookupCache | None:
        """What the real-time path keeps of looked-up rows: of the first table that the query reads, and of the others."""
        settings = (self.config.view(definition.view).realtime or RealtimeConfig()).cache
        if not (self.path.eventual and settings.enabled):
            return None
        sources = list(dict.fromkeys(source for _, source in definition.relation.sources))
        return LookupCache(dict.fromkeys(sources, settings.right_size) | dict.fromkeys(sources[:1], settings.left_size))

    def fingerprint_of(self, view: str, at: Until = None) -> Mapping[str, str]:
        """What tells the view's definition from another one, over the schemas that its tables have now, or had."""
        with self.opened(view) as state:
            return self.prepare(view, state, at)[0].fingerprint

    def definition_check(self, views: Iterable[str]) -> Callable[[str, Stamp], bool]:
        """What tells whether a version of a view was made by its definition as it is now, over the schemas that its tables had then."""
        newest = {view: self.fingerprint_of(view) for view in views}

        def current(view: str, stamp: Stamp) -> bool:
            if not differing(stamp.fingerprint, newest[view]):
                return True
            if any(name in self.config.views for name in self.reads(view)):
                return False
            try:
                then = self.fingerprint_of(view, {t: n for t, n in stamp.snapshot.items() if t in self.reads(view)})
            except LakeError:  # which can't be had any more, or was no query over those schemas
                return False
            return not differing(stamp.fingerprint, then)

        return current

    def refuse_changed_definition(self, stamp: Stamp) -> None:
        """Raise DefinitionChangedError where a view's rows were published for another query than the configuration has now."""
        reads = self.reads(stamp.view)
        above = any(name in self.config.views for name in reads)  # then the views' tables say which versions these are of
        at = None if above else {t: n for t, n in stamp.snapshot.items() if t in reads}
        check_fingerprint(stamp.view, stamp.fingerprint, self.fingerprint_of(stamp.view, at))

    def view_table(self, view: str) -> Table:
        self.config.view(view)
        return self.path.table(view)

    def built(self, spark: SparkSession, view: str) -> Published:
        current = published(spark, self.view_table(view))
        if current is None or current.stamp is None:
            raise TargetError(f'View {view!r} has not been built yet. Run "{self.view_table(view).create_command}".')
        return current

    def built_and_others(self, spark: SparkSession, view: str) -> tuple[Published, list[Commit]]:
        """What was published last, also where someone else wrote into the table since, and the commits of others, oldest first."""
        current, others = published_and_others(spark, self.view_table(view))
        return (self.built(spark, view) if current is None or current.stamp is None else current), others

    def frames_of(self, spark: SparkSession, stamp: Stamp) -> dict[str, DataFrame]:
        """What a view's rows were made of: the rows of each table of `pins_of`."""
        return {t: visible(pinned.rows()) for t, pinned in self.pins_of(spark, stamp).items()}

    def pins_of(self, spark: SparkSession, stamp: Stamp) -> dict[str, Pinned]:
        """Each table that a view's rows were made of, at its version (one that a function is given, and does not read, as it is now).

        Raises ExpiredError, or SourceError where a table is another one now.
        """
        heads = {t: self.path.input(t).head(spark) for t in {*stamp.snapshot, *self.reads(stamp.view)}}
        for t, version in stamp.snapshot.versions.items():
            check_same(self.path.input(t), heads[t], version)
        return {t: pin_at(head, t, stamp.snapshot[t]) if t in stamp.snapshot else head for t, head in heads.items()}
