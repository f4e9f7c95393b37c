"""Finds what Lakejoin keeps of a view: its tables on all paths, and the files of scheduled runs of this view only.

A table is a view's if it is where the configuration puts that view's tables, and says so itself: by its property `lakejoin.view`, or, once
its drop was begun, by `lakejoin.dropping`. Nothing is written here.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession

from lake.config.models import PIN, PROJECT, Config, run_file
from lake.core.constants import LEASE_FOLDER, SUFFIXES
from lake.core.removals import KeptState, KeptTable
from lake.core.stamp import Stamp
from lake.delta.own_folder import Contents, OwnFolder, local_path
from lake.delta.pinned import Pinned
from lake.delta.sidecar import Folder
from lake.delta.tables import Table, reason
from lake.delta.two_writers import location
from lake.errors import TargetError
from lake.spark.failures import SPARK_ERRORS
from lake.views.inputs import view_place
from lake.views.table import DROPPING, open_log


def tables_of(config: Config, view: str) -> list[Table]:
    """Where the tables of a view are, or would be, on each path; the view need not be in the configuration."""
    return [view_place(config, view, kind) for kind in SUFFIXES]


def kept_tables(spark: SparkSession, config: Config, view: str) -> list[KeptTable]:
    """The tables that exist of a view. Raises TargetError where one was not made for it, or its folder holds anything else."""
    found, ours = list[KeptTable](), view in config.views
    for table in tables_of(config, view):
        kept = _Place(spark, config, table, ours).kept()
        found += [kept] if kept is not None else []
        ours = ours or (kept is not None and kept.state == "whole")
    return found


def kept_runs(spark: SparkSession, config: Config, view: str) -> list[str]:
    """The names of the files of scheduled runs of this view and no other."""
    folder = Folder(spark, config.runs_path)
    names = folder.names()
    pins = [name for name in names if name.endswith(PIN) and run_file(view) in name]
    runs = {name.removesuffix(PIN) for name in pins if views_of_run(folder, name) == {view}}
    return [name for run in sorted(runs) for name in files_of_run(names, run)]


def files_of_run(names: Collection[str], run: str) -> list[str]:
    """The files of a scheduled run among others: its pin, its result, and the results of its parts."""
    parts = sorted(name for name in names if name.startswith(f"{run}@") and not name.endswith(PIN))
    return [name for name in (f"{run}{PIN}", f"{run}.json") if name in names] + parts


def views_of_run(folder: Folder, pin: str) -> set[str]:
    """The views that a run refreshes, by its pin; none if the file can't be read."""
    try:
        return set(json.loads(folder.read(pin))["before"])
    except (ValueError, TypeError, LookupError):
        return set()


@dataclass(frozen=True)
class _Place:
    """The place of one table of a view. `ours`: the view is of the configuration's project, so that a table of it without a project is as
    well: it was written before the project was given."""

    spark: SparkSession
    config: Config
    table: Table
    ours: bool

    def kept(self) -> KeptTable | None:
        """What is there, None if nothing is."""
        folder = OwnFolder(self.spark, location(self.spark, self.table))
        contents = folder.contents()
        head = self._head(folder)
        if contents is None and head is None:
            return None
        contents = contents or Contents(0, 0, frozenset())
        self._refuse_others(folder.path, contents)
        properties = folder.newest_properties() if head is None else head.properties
        state = self._state(contents, properties)
        if state is None:
            raise TargetError(
                f"What is at {self.table.path or self.table.name} was not made by Lakejoin for view {self.table.label!r}"
                f"{self._made_for(properties)}. Nothing was removed. If it is not needed, remove it yourself."
            )
        if contents.files == 0 and self.table.path is None and head is None:
            return None
        times = (None, None) if head is None else (last_published(head), head.time)
        by_name, place = self.table.path is None, str(self.table.path or self.table.name)
        return KeptTable(self.table.kind, place, by_name, folder.path, state, contents.bytes, contents.files, *times)

    def _head(self, folder: OwnFolder) -> Pinned | None:
        """The newest version; None if there is no log, or only a part of one of which a drop has removed the rest."""
        try:
            log = open_log(self.spark, self.table)
            return log.head() if log is not None else None
        except (TargetError, *SPARK_ERRORS) as error:
            if folder.newest_properties().get(DROPPING) == self.table.label:
                return None
            raise TargetError(
                f"The log of {self.table.path or self.table.name} can't be read ({reason(error)}), so it is not known whether it is the "
                f"table of view {self.table.label!r}. Nothing was removed. If it is not needed, remove it yourself."
            ) from error

    def _state(self, contents: Contents, properties: dict[str, str]) -> KeptState | None:
        """None for what is not this view's, or of another project."""
        if properties.get(DROPPING) == self.table.label:
            return "half dropped"
        given = self.config.project if self.ours else None
        if properties.get("lakejoin.view") == self.table.label and properties.get(PROJECT, given) == self.config.project:
            return "whole"
        return "leftover" if contents.files == 0 or contents.names <= {LEASE_FOLDER} else None

    def _made_for(self, properties: dict[str, str]) -> str:
        """Whose it is, where that is known."""
        other, project = properties.get("lakejoin.view"), properties.get(PROJECT)
        if other == self.table.label:
            wanted = f"`project: {self.config.project}`" if self.config.project else "no `project`"
            return f" of this lakejoin.yml, which has {wanted}: the table's is {project or 'none'}"
        return f" (it is view {other!r}'s)" if other else ""

    def _refuse_others(self, path: str, contents: Contents) -> None:
        """Raise TargetError for a folder in which there is, or may be, something else than one table."""
        if contents.links:
            raise TargetError(
                f"{contents.links[0]} is a symbolic link. Lakejoin removes only what is in the folder of view {self.table.label!r} itself. "
                "Nothing was removed. Remove the link, and what it points to, yourself; then run it again."
            )
        own = f"{resolved(path)}/"
        inside = [*contents.tables, *(place for place in _places(self.spark, self.config) if place.startswith(own))]
        if inside:
            raise TargetError(
                f"The folder {path} of view {self.table.label!r} also holds {inside[0]}, which is something else. Nothing was removed. "
                "Move that elsewhere, then run it again."
            )


def _places(spark: SparkSession, config: Config) -> Iterator[str]:
    """The folders that the configuration names, as URIs, without those of views."""
    paths = [config.path_of(name) for name in config.tables]
    paths += [config.root_path, config.runs_path, config.quality_path, str(config.directory.resolve())]
    for path in filter(None, paths):
        yield resolved(location(spark, Table("", path, None)))


def resolved(uri: str) -> str:
    """A folder as one text: on this machine without links on the way."""
    local = local_path(uri)
    return uri.rstrip("/") if local is None else str(local.resolve())


def last_published(head: Pinned) -> datetime | None:
    """When a version with a stamp was last committed to a table, None if there is none in its log."""
    for number in range(head.version.number, -1, -1):
        try:
            commit = next(head.log.commits(number - 1, number))
        except (StopIteration, *SPARK_ERRORS):
            return None
        if Stamp.from_json(commit.user_metadata) is not None:
            return commit.time
    return None
