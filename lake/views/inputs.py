"""What a view reads, each at one version: tables, and other views.

A view is a source like a table: its published rows, and their change feed. Its stamp names the base table versions that they were built
from. If a view reads both a table and a view built on that table, it reads the table at that version (a diamond, trap 22).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from lake.config.models import HIDDEN_PREFIX, Config
from lake.core.constants import SUFFIXES, PathKind
from lake.core.phases import phase
from lake.core.snapshots import Snapshot, Version
from lake.delta.pinned import Pinned
from lake.delta.tables import Table, pin_at
from lake.errors import ConfigError, DefinitionError, SourceError
from lake.spark.types import nullable
from lake.views.table import KEY, Published, published

Chooser = Callable[[Mapping[str, Pinned]], Mapping[str, int]]
"""From the newest versions of the base tables that a view may choose for, to those to refresh to; newest where not named."""
Until = Mapping[str, int] | datetime | str | None


@dataclass(frozen=True)
class Inputs:
    """What a view reads, captured once. `views`: which of it are views; `bases`: the base tables' versions that these were built from."""

    tables: Mapping[str, Table]
    pins: Mapping[str, Pinned]
    views: frozenset[str]
    bases: Snapshot

    @property
    def schemas(self) -> dict[str, T.StructType]:
        """The columns that a query sees of each table: of a view, those that are not hidden.

        All may be NULL, at every level, so that a query stays the same when NOT NULL is dropped from a table.
        """
        return {t: T.StructType([_seen(f) for f in p.schema.fields if not f.name.startswith(HIDDEN_PREFIX)]) for t, p in self.pins.items()}

    @property
    def primary_keys(self) -> dict[str, tuple[str, ...]]:
        """The key of each: a table's declared one, a view's own if all its columns are to be seen."""
        return {t: table.primary_key or tuple(json.loads(self.pins[t].properties.get(KEY, "[]"))) for t, table in self.tables.items()}

    def only(self, names: Sequence[str]) -> Inputs:
        """The inputs that a query really reads."""
        return replace(self, tables={n: self.tables[n] for n in names}, pins={n: self.pins[n] for n in names})

    def base_snapshot(self) -> Snapshot | None:
        """The base tables' versions that a view over these inputs is built from, None where all inputs are tables."""
        direct = {t: p.version for t, p in self.pins.items() if t not in self.views}
        return Snapshot({**self.bases.versions, **direct}) if len(direct) < len(self.pins) else None


NO_INPUTS = Inputs({}, {}, frozenset(), Snapshot({}))
"""Of what is done with rows that are there, without reading a source."""


def table_of(config: Config, name: str, kind: PathKind = "strong") -> Table:
    """Where a table is, or a view's table on one of its paths. Raises DefinitionError for a name that is neither."""
    if name in config.views:
        return view_place(config, name, kind)
    if name not in config.tables:
        raise DefinitionError(f"The table {name!r} is no longer declared under `tables:` in the configuration.")
    declared = config.tables[name]
    path = None if declared.path is None else config.source_path(declared.path)
    return Table(name, path, declared.name, declared.primary_key, reader=_development(config))


def _development(config: Config) -> str:
    """The development environment that a configuration is for, empty where it is for none."""
    return "" if config.production is None else str(config.environment)


def view_place(config: Config, view: str, kind: PathKind = "strong") -> Table:
    """Where the table of a view is on a path, or would be; the view need not be in the configuration. Of a development environment: its own
    place."""
    place = view + SUFFIXES[kind]
    return Table(view, config.view_path(place), config.view_name(place), kind=kind, owner=_development(config))


def production_place(config: Config, view: str) -> Table | None:
    """Where production has the table of a view; None where it has no such view, or the configuration is for no development environment."""
    if config.production is None or view not in config.production.views:
        return None
    return replace(view_place(config.production, view), reader=_development(config))


@dataclass(frozen=True)
class ViewPath:
    """One of the ways that views are kept: the strong path, or the real-time path or a backfill's, which have tables of their own.

    `place`: where a view is on the strong path; by default where the configuration puts it (views/production_tables.py).
    """

    config: Config
    kind: PathKind = "strong"
    place: Callable[[str], Table] | None = None

    @property
    def eventual(self) -> bool:
        return self.kind == "eventual"

    def table(self, view: str) -> Table:
        """The view's own table."""
        return self.strong(view) if self.kind == "strong" else table_of(self.config, view, self.kind)

    def strong(self, view: str) -> Table:
        """The view's table on the strong path."""
        return table_of(self.config, view) if self.place is None else self.place(view)

    def owning(self, view: str) -> ViewPath:
        """The same, with the view where a development environment has tables of its own, whether it has one yet or not."""
        return replace(self, place=lambda other: table_of(self.config, other) if other == view else self.strong(other))

    def input(self, name: str) -> Table:
        """What a view reads under a name: another view's table on the same path, but in real time only of one that runs there too."""
        view = self.config.views.get(name)
        if view is None:
            return table_of(self.config, name)
        return self.table(name) if self.kind != "eventual" or view.realtime is not None else self.strong(name)


def in_order(config: Config, views: Iterable[str], reads: Callable[[str], Sequence[str]]) -> list[str]:
    """The views, each after those that it reads. Raises DefinitionError naming a cycle."""
    done: list[str] = []

    def visit(view: str, path: tuple[str, ...]) -> None:
        if view in path:
            raise DefinitionError(f"Views read each other in a cycle: {' → '.join([*path[path.index(view) :], view])}.")
        if view not in done:
            for other in reads(view):
                if other in config.views:
                    visit(other, (*path, view))
            done.append(view)

    wanted = list(views)
    for view in wanted:
        visit(view, ())
    return [view for view in done if view in wanted]


@phase("read logs")
def capture(spark: SparkSession, path: ViewPath, view: str, names: Sequence[str], until: Until | Chooser) -> Inputs:
    """Capture each input of a view once: base tables at `until` (or newest), views as they are published.

    Raises SourceError, ExpiredError, TargetError, or ConfigError where `until` can't be had.
    """
    tables = {name: path.input(name) for name in names}
    parents = {name: _parent(spark, view, table) for name, table in tables.items() if name in path.config.views}
    bases = _bases(view, parents)
    heads = {name: table.head(spark) for name, table in tables.items() if name not in parents}
    free = {name: head for name, head in heads.items() if name not in bases}
    wanted = dict(until(free)) if callable(until) else ends(until, list(heads))
    pins = {name: parents[name].pinned if name in parents else heads[name] for name in tables}
    for name, head in heads.items():
        at = wanted.get(name)
        if name in bases:
            if isinstance(at, int) and at != bases[name]:
                raise SourceError(
                    f"View {view!r} can't be brought to version {at} of {name}: another view that it reads is at version {bases[name]}."
                )
            at = bases[name]
        pins[name] = head if at is None else pin_at(head, name, at)
    for name, pinned in pins.items():
        if not pinned.schema.fields:
            raise SourceError(f"The table {tables[name]} has no columns yet. Create it with columns before a view reads it.")
    return Inputs(tables, pins, frozenset(parents), bases)


def _parent(spark: SparkSession, view: str, table: Table) -> Published:
    found = published(spark, table)
    if found is None or found.stamp is None:
        raise SourceError(f'View {view!r} reads view {table.label!r}, which has not been built yet. Run "{table.create_command}".')
    return found


def _bases(view: str, parents: Mapping[str, Published]) -> Snapshot:
    found: dict[str, Version] = {}
    named: dict[str, str] = {}
    for parent, current in parents.items():
        assert current.stamp is not None
        for table, version in current.stamp.answers_for.versions.items():
            if found.setdefault(table, version) != version:
                raise SourceError(
                    f"View {view!r} reads views built from different versions of {table}: {named[table]} from {found[table].number}, "
                    f'{parent} from {version.number}. Bring them to the same ("lakejoin refresh --all" does).'
                )
            named[table] = parent
    return Snapshot(found)


def ends(until: Until, tables: Sequence[str], what: str = "until") -> dict[str, int | datetime]:
    """The version or time to pin each table at."""
    if until is None:
        return {}
    if isinstance(until, Mapping):
        return dict(check_named(until, tables, what))
    try:
        moment = datetime.fromisoformat(until) if isinstance(until, str) else until
    except ValueError as error:
        raise ConfigError(f"`{what}` must be versions ({{table: number}}) or a time such as 2026-01-31T12:00:00, not {until!r}.") from error
    return dict.fromkeys(tables, moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def versions_at(heads: Mapping[str, Pinned], when: Until, others: str) -> dict[str, int]:
    """The version of each table at one end of a range; of tables that it does not name the newest, or that "as of" the last one named."""
    wanted = ends(when, list(heads), "until" if others == "newest" else "since")
    found = {name: pin_at(heads[name], name, at).version.number for name, at in wanted.items()}
    if others == "newest" or not found:
        return {name: head.version.number for name, head in heads.items()} | found
    moment = max(pin_at(heads[name], name, number).time for name, number in found.items())
    return {name: pin_at(head, name, moment, or_first=True).version.number for name, head in heads.items()} | found


def check_named(until: Mapping[str, int], tables: Sequence[str], what: str = "until") -> dict[str, int]:
    """The versions as they are given. Raises ConfigError for a table that is not among those that are read."""
    unknown = [t for t in until if t not in tables]
    if unknown:
        raise ConfigError(f"`{what}` names {unknown[0]!r}, which the view does not read. It reads: {', '.join(tables)}.")
    return {t: int(v) for t, v in until.items()}


def _seen(field: T.StructField) -> T.StructField:
    return T.StructField(field.name, nullable(field.dataType), True, field.metadata)
