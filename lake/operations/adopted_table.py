"""Finds the table that a view is to adopt, and moves it to the view's place in one step, where it is elsewhere.

A process that ends between the move and the adoption leaves the table at the view's place, where the next call finds it. Whatever else goes
wrong in between, the table is moved back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lake.config.models import Config
from lake.delta.own_folder import MOVE_ERRORS, OwnFolder, local_path, move_table
from lake.delta.pinned import Pinned
from lake.delta.tables import Table, reason
from lake.delta.two_writers import location
from lake.errors import ConcurrencyError, LakeError, TargetError
from lake.operations.view_files import resolved
from lake.views.inputs import table_of
from lake.views.registry import OpenViews
from lake.views.table import DROPPING, open_log, published

_NAME = re.compile(r"\w+(\.\w+)+")


@dataclass(frozen=True)
class Foreign:
    """A table that Lakejoin did not make, at its newest version: where it is, and the place of the view's table."""

    here: Table
    own: Table
    pinned: Pinned

    @property
    def moves(self) -> bool:
        """Whether it has to be moved."""
        return place_of(self.here) != place_of(self.own)


def place_of(table: Table) -> str:
    """A table's path, or its name in a catalog."""
    return str(table.path or table.name)


def find(spark: SparkSession, views: OpenViews, view: str, where: str | None) -> Foreign:
    """The table at a path (or of a name in a catalog), by default that at the view's own place.

    Raises TargetError where there is none, it is a view's already, the view reads it, or it can't be moved to the view's place.
    """
    own = views.view_table(view)
    here = own if where is None else _named(spark, views.config, view, where, own)
    own_log, log = open_log(spark, own), open_log(spark, here)
    if log is None and here is not own and own_log is not None and own_log.head().properties.get("lakejoin.view") is None:
        here, log = own, own_log  # a process ended after it had moved the table
    if log is None:
        said = f'Name the table: "lakejoin adopt {view} --table PATH".' if where is None else _other_name(spark, where, here)
        raise TargetError(f"There is no Delta table at {place_of(here)}. Nothing was written. {said}")
    if own_log is not None:
        _refuse_taken(spark, own, here)
    found = Foreign(here, own, log.head())
    _refuse_a_view(found)
    _refuse_declared(spark, views, found)
    if found.moves:
        _refuse_unmovable(spark, found)
    return found


def _other_name(spark: SparkSession, where: str, here: Table) -> str:
    """What to do about a name by which there is no Delta table."""
    if here.path is None:
        return f"{where} is a table of another format, or a view. Of Parquet files, CONVERT TO DELTA {where} makes a Delta table."
    schema = spark.catalog.currentDatabase()
    if re.fullmatch(r"\w+", where) and spark.catalog.tableExists(f"{schema}.{where}"):
        return f"For the table of the catalog, write --table {schema}.{where}."
    also = " The catalog has no table of that name either." if _NAME.fullmatch(where) else ""
    return f"Name the folder that has its `_delta_log`, or the table's name in the catalog.{also}"


def _named(spark: SparkSession, config: Config, view: str, where: str, own: Table) -> Table:
    name = where.removeprefix("spark_catalog.")  # parts of Delta accept no name of three parts
    if _NAME.fullmatch(name) and spark.catalog.tableExists(name):
        here = Table(view, None, name)
        if spark.catalog.getTable(name).tableType == "VIEW":
            raise TargetError(f"{name} is a view of the catalog, not a table. Nothing was written. Name the table that it reads.")
    else:
        here = Table(view, config.source_path(where).rstrip("/"), None)
    return own if resolved(location(spark, here)) == resolved(location(spark, own)) else here


def _refuse_taken(spark: SparkSession, own: Table, here: Table) -> None:
    """Raise TargetError where there is a table at the view's place that is not the one to be adopted."""
    if open_log(spark, own) is not None and _head(spark, own).properties.get("lakejoin.view") == own.label:
        current = published(spark, own)
        if current is not None and current.stamp is not None:
            raise TargetError(
                f"View {own.label!r} is built already, at {current.stamp.snapshot}: there is nothing to adopt. Nothing was written. "
                f'"lakejoin refresh {own.label}" brings it up to date; to adopt another table, first run "lakejoin drop {own.label}".'
            )
        raise TargetError(
            f"At {place_of(own)} there is the empty table of view {own.label!r}, whose first refresh did not end. Nothing was written. "
            f'Run "lakejoin drop {own.label}" first.'
        )
    if here is not own:
        raise TargetError(
            f"At {place_of(own)}, the place of view {own.label!r}, there is a table already, so {place_of(here)} can't be moved there. "
            f'Nothing was written. Move it away, or adopt it: "lakejoin adopt {own.label}" without --table.'
        )


def _head(spark: SparkSession, table: Table) -> Pinned:
    log = open_log(spark, table)
    assert log is not None
    return log.head()


def _refuse_a_view(found: Foreign) -> None:
    properties, place = found.pinned.properties, place_of(found.here)
    if properties.get(DROPPING):
        raise TargetError(f'{place} is the table of view {properties[DROPPING]!r}, whose drop was begun. Run "lakejoin drop" to finish it.')
    if properties.get("lakejoin.view"):
        other = properties["lakejoin.view"]
        raise TargetError(
            f"{place} is the table of view {other!r} already, of this lakehouse or of another one. Nothing was written. To give a view of "
            f"this lakehouse another name, set `renamed_from: {other}`."
        )


def _refuse_declared(spark: SparkSession, views: OpenViews, found: Foreign) -> None:
    here, view = resolved(location(spark, found.here)), found.own.label
    below = views.bases_below(view)
    for name in views.config.tables:
        try:
            same = resolved(location(spark, table_of(views.config, name))) == here
        except TargetError:  # it is in a schema that does not exist
            continue
        if same and name in below:
            raise TargetError(f"{place_of(found.here)} is {name}, a table that view {view!r} reads. Nothing was written. Name another one.")
        if same:
            raise TargetError(
                f"{place_of(found.here)} is `tables.{name}` of the configuration. Nothing was written. Remove it there, and let the views "
                f"that read it read view {view!r}; then run it again."
            )


def _refuse_unmovable(spark: SparkSession, found: Foreign) -> None:
    here, own = found.here, found.own
    why = _of_names(spark, here, own)
    if why:
        raise TargetError(f"{place_of(here)} can't become {place_of(own)}: {why}")
    if here.path is None:
        return
    folder = OwnFolder(spark, here.path)
    contents = folder.contents() if local_path(here.path) is not None else None
    inside = [*contents.links, *contents.tables] if contents is not None else []
    why = f"{inside[0]} is a symbolic link, or another table" if inside else folder.immovable(str(own.path))
    if why:
        raise TargetError(f"{here.path} can't be moved to {own.path}: {why}. Nothing was written. {_instead(here, own)}")


def _of_names(spark: SparkSession, here: Table, own: Table) -> str:
    """Why a table can't be moved to another place where one of the two is a name in a catalog, and what to do; empty where it can."""
    if own.name is not None and here.path is not None:
        as_view = f"CREATE TABLE {own.name} USING delta LOCATION '{here.path}'"
        return (
            f"one is a path, the other a name in a catalog. Nothing was written. Give it the view's name ({as_view}), and adopt it without "
            "--table; it stays in its folder."
        )
    if here.name is None:
        return ""
    folder, managed = location(spark, here).removeprefix("file:"), spark.catalog.getTable(here.name).tableType == "MANAGED"
    if own.path is not None:
        return (
            f"one is a name in a catalog, the other a path. Nothing was written. Adopt its folder: --table {folder}. After that"
            f"{' (not before: it would delete the rows)' if managed else ''}, let the name lead to the view: DROP TABLE {here.name}; "
            f"CREATE TABLE {here.name} USING delta LOCATION '{own.path}'."
        )
    schemas = [str(table.name).rpartition(".")[0].lower() for table in (here, own)]
    if schemas[0] == schemas[1]:
        return ""
    if managed:
        return f"Spark renames no table from one schema to another. Nothing was written. {_instead(here, own)}"
    return (
        f"Spark renames no table from one schema to another. Nothing was written. Give its folder the view's name (CREATE TABLE {own.name} "
        f"USING delta LOCATION '{folder}'), adopt it without --table, and after that DROP TABLE {here.name}, which leaves the files."
    )


def _instead(here: Table, own: Table) -> str:
    """What to do about a table that can't be moved."""
    copy = f"opy it: CREATE TABLE {own.sql} USING delta AS SELECT * FROM {here.sql}; then adopt it without --table."
    if here.path is None:
        return f"C{copy}"
    folder, _, name = here.path.rpartition("/")
    return f"Either set `target: {{path: {folder}}}` and call the view {name!r}, so that it is at the view's place, or c{copy}"


@contextmanager
def at_its_place(spark: SparkSession, found: Foreign) -> Iterator[Pinned]:
    """Within it, the table is at the view's place; if it fails before the table is the view's, the table is moved back.

    Yields the version that was found. Raises ConcurrencyError where somebody has written meanwhile, TargetError where the table can't be
    moved.
    """
    now = _same(found, _head(spark, found.here))
    if not found.moves:
        yield now
        return
    _move(spark, found.here, found.own)
    try:
        yield _same(found, _head(spark, found.own))
    except (Exception, KeyboardInterrupt) as error:
        if _head(spark, found.own).properties.get("lakejoin.view") != found.own.label:
            try:
                _move(spark, found.own, found.here)
            except LakeError as stays:
                raise TargetError(f"{error} The table is at {place_of(found.own)} now, and could not be moved back: {stays}") from error
        raise


def _same(found: Foreign, now: Pinned) -> Pinned:
    """The newest version, if it is the one that was found."""
    then = found.pinned.version
    if now.version != then:
        raise ConcurrencyError(
            f"Another process wrote into {place_of(found.here)} while it was compared with the query of view {found.own.label!r}: it was "
            f"at version {then.number}, and is at {now.version.number}. Nothing was written. Stop what writes into it, for example the "
            "nightly job, and run it again."
        )
    return now


def _move(spark: SparkSession, here: Table, there: Table) -> None:
    try:
        move_table(spark, here, there)
    except MOVE_ERRORS as error:
        raise TargetError(
            f"{place_of(here)} can't be moved to {place_of(there)}: {reason(error)}. It is as it was. {_instead(here, there)}"
        ) from error
