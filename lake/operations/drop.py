"""Drops a view: its tables on all paths, with leases and other small files beside them, and the files of scheduled runs of this view only.

    find → refuse → mark each table, in one commit → remove the files, the log last → remove the files of runs

The commit takes the property `lakejoin.view` from the table, and names the view in `lakejoin.dropping`. From then on nothing takes it for
a view: a refresh that is running can't publish (its commit conflicts with this one), a later one is refused. A drop that was killed finds
that property, and goes on. The log is removed last, and its newest commit last of all, because that is what says so. Without a log, nobody
would know whose data files are left; without its newest commits, an older version would look like a view.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from pyspark.sql import SparkSession

from lake.config.models import nearest
from lake.core.constants import LEASE_FOLDER
from lake.core.removals import Dropped, KeptTable
from lake.delta import two_writers
from lake.delta.lease import Lease, refuse_held
from lake.delta.own_folder import LOG, OwnFolder
from lake.delta.sidecar import Folder
from lake.delta.tables import Table, reason
from lake.errors import ConcurrencyError, ConfigError, LakeError, TargetError
from lake.operations.removed_views import Lake
from lake.operations.view_files import kept_runs, kept_tables, resolved, tables_of
from lake.spark.failures import SPARK_ERRORS
from lake.spark.session import own_session
from lake.views.inputs import table_of
from lake.views.table import DROPPING, open_log, set_properties


class Views(Lake, Protocol):
    """What is asked of the lakehouse."""

    def reads(self, view: str, /) -> list[str]: ...


def drop(lake: Views, view: str, force: bool = False, dry_run: bool = False) -> Dropped:
    """Drop a view, which need not be in the configuration any more. `force`: also if others read it; `dry_run`: only say what there is.

    Raises ConfigError if there is nothing of such a view; TargetError if a table was not made for it, or others read it; ConcurrencyError
    while its real-time path runs. Nothing was removed then.
    """
    spark, config = own_session(lake.spark), lake.config
    if not config.is_view_name(view):
        raise ConfigError(f"{view!r} is no name of a view.")
    tables = kept_tables(spark, config, view)
    runs = kept_runs(spark, config, view)
    if not tables and not runs and view not in config.views:
        where = str(config.view_path("") or config.view_name("v")).removesuffix(".v")
        raise ConfigError(f"There is nothing of a view {view!r} in {where}, and none in the configuration. {nearest(view, config.views)}")
    readers = tuple(_readers(lake, view, tables))
    if readers and not force:
        raise TargetError(
            f"View {view!r} is read by {', '.join(readers)} of the configuration. Nothing was removed. Drop or change those first, or add "
            "--force to drop it all the same."
        )
    leases = [Folder(spark, f"{table.folder}/{LEASE_FOLDER}") for table in tables if table.kind == "eventual"]
    for lease in leases:
        refuse_held(view, lease)
    found = Dropped(view, tuple(tables), tuple(runs), readers, view in config.views, dropped=not dry_run)
    if not dry_run:
        todo = _Drop(spark, lake, found)
        with _held(view, leases):
            todo.mark()
        todo.remove()
    return found


def _readers(lake: Views, view: str, tables: list[KeptTable]) -> Iterator[str]:
    """The views and tables of the configuration that read a view, or its tables."""
    config = lake.config
    for other in config.views if view in config.views else ():
        with suppress(LakeError):  # its next refresh says why its query can't be read
            if other != view and view in lake.reads(other):
                yield f"view {other}"
    for other, settings in config.views.items():
        if settings.renamed_from == view and any(table.kind == "strong" for table in tables):
            yield f"view {other} (`renamed_from: {view}`)"
    places = {resolved(table.folder) for table in tables}
    for name in config.tables:
        with suppress(TargetError):  # it is in a schema that does not exist
            if resolved(two_writers.location(lake.spark, table_of(config, name))) in places:
                yield f"table {name}"


@contextmanager
def _held(view: str, leases: list[Folder]) -> Iterator[None]:
    """Within it, and if it succeeds until the table is removed, no real-time path of the view can start."""
    held = [Lease.take(view, lease) for lease in leases]
    try:
        yield
    except BaseException:
        for lease in held:
            with suppress(LakeError, *SPARK_ERRORS):
                lease.renew("stopped", {})
        raise


class _Drop:
    """One drop. It can be run again, wherever it was stopped."""

    def __init__(self, spark: SparkSession, lake: Views, found: Dropped) -> None:
        self._spark, self._config, self._found = spark, lake.config, found
        self._tables = {table.kind: table for table in tables_of(lake.config, found.view)}

    def mark(self) -> None:
        """Mark all tables, the view's own first. Raises TargetError."""
        for kept in self._found.tables:
            if kept.state == "whole":
                self._mark(self._tables[kept.kind])

    def remove(self) -> None:
        """Remove all tables, the view's own last, then the files of runs. Raises TargetError or ConcurrencyError."""
        for kept in reversed(self._found.tables):
            self._remove(kept)
        runs = Folder(self._spark, self._config.runs_path)
        for name in self._found.runs:
            runs.delete(name)

    def _mark(self, table: Table) -> None:
        two_writers.refuse(self._spark, table, self._config.single_writer)
        try:
            set_properties(self._spark, table, {"lakejoin.view": "", DROPPING: table.label})
        except SPARK_ERRORS as error:
            raise TargetError(f"The table of view {table} can't be marked as dropped: {reason(error)}. Run it again.") from error

    def _remove(self, kept: KeptTable) -> None:
        folder, table = OwnFolder(self._spark, kept.folder), self._tables[kept.kind]
        try:
            if kept.by_name and self._is_marked(kept, folder):
                self._spark.sql(f"DROP TABLE IF EXISTS {table.sql}")
            if self._is_marked(kept, folder):
                folder.remove()
            elif folder.contents() is not None:
                raise ConcurrencyError(f"{kept.place} was created again meanwhile by another process. It was not removed.")
        except (OSError, *SPARK_ERRORS) as error:
            raise TargetError(
                f"The table of view {table} can't be removed completely: {reason(error)}. Nothing reads it as a view any more. "
                f'Run "lakejoin drop {table.label}" again to finish.'
            ) from error

    def _is_marked(self, kept: KeptTable, folder: OwnFolder) -> bool:
        """Whether what is in the folder now is still what is to be removed."""
        if kept.state == "leftover":
            contents = folder.contents()
            return contents is not None and LOG not in contents.names
        if folder.newest_properties().get(DROPPING) == self._found.view:
            return True
        log = open_log(self._spark, self._tables[kept.kind])
        if log is None or log.head().properties.get(DROPPING) != self._found.view:
            return False
        self._mark(self._tables[kept.kind])  # somebody has written after the mark, which must be the newest commit
        return folder.newest_properties().get(DROPPING) == self._found.view
