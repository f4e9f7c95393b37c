"""Finds, and removes, what Lakejoin wrote beside the tables of an environment's views: results of checks, files of scheduled runs.

    target      v/   _lakejoin/quality/   _lakejoin/runs/   notes.txt
    removed     v/   _lakejoin/quality/   _lakejoin/runs/

It goes with the last view, and only from folders that are the environment's by default, where no view of another project is beside them. A
file is known by its folder and its name; links are not followed. What Lakejoin did not write stays, and is named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lake.config.models import PAGES, REPORT, Config
from lake.core.environments import KeptFiles
from lake.delta.own_folder import LOG, OwnFolder, local_path
from lake.delta.sidecar import Folder
from lake.delta.tables import Table
from lake.delta.two_writers import location
from lake.errors import TargetError
from lake.operations.removed_views import Lake, tables_in_target, view_of
from lake.operations.view_files import resolved

_RESULTS = "quality_results"
_QUALITY = {PAGES: (".html",), "docs": (".html", ".json"), "validations": (".json",), "": (f"/{REPORT}",)}
_RUNS = {"": (".json",)}
"""The folders of small files below a place, the deepest first, each with the ends of its files' names."""
_FOREIGN, _LINK = "Lakejoin did not write it", "it is a symbolic link"


@dataclass(frozen=True)
class _Place:
    """A folder of Lakejoin's, as a URI. `parts`: its folders of small files; `given`: the setting that names it, empty by default."""

    spark: SparkSession
    what: str
    uri: str
    parts: Mapping[str, tuple[str, ...]]
    given: str

    def found(self) -> tuple[list[tuple[Folder, str]], OwnFolder | None, list[str]]:
        """The small files that Lakejoin wrote, each in its folder; the table of results, if there is one; what else there is."""
        files, strange = list[tuple[Folder, str]](), list[str]()
        for part, ends in self.parts.items():
            folder = self._folder(part)
            if link := _link(folder.path, self.uri):
                strange.append(f"{_shown(link)} ({_LINK})")
                continue
            inside = {other.removeprefix(part).strip("/").partition("/")[0] for other in self.parts if other.startswith(part)}
            for name in folder.names():
                if f"/{name}".endswith(ends):
                    files.append((folder, name))
                elif name not in inside and (part or name != _RESULTS):
                    strange.append(f"{_shown(folder.path)}/{name} ({_FOREIGN})")
        table = OwnFolder(self.spark, f"{self.uri}/{_RESULTS}")
        contents = table.contents() if self.parts is _QUALITY and not _link(self.uri, self.uri) else None
        if contents is None or (LOG in contents.names and not contents.links and not contents.tables):
            return files, None if contents is None else table, list(dict.fromkeys(strange))
        return files, None, [*dict.fromkeys(strange), f"{_shown(table.path)} ({_FOREIGN})"]

    def remove(self) -> None:
        """Remove what Lakejoin wrote, and the folders that are then empty."""
        files, table, _ = self.found()
        for folder, name in files:
            folder.delete(name)
        if table is not None:
            table.remove()
        for folder in (*map(self._folder, self.parts), Folder(self.spark, _above(self.uri))):
            if not _link(folder.path, self.uri):
                folder.remove_if_empty()

    def _folder(self, part: str) -> Folder:
        return Folder(self.spark, f"{self.uri}/{part}".rstrip("/"))


def beside_tables(lake: Lake, dropping: Collection[str], runs: Collection[str], remove: bool) -> tuple[list[KeptFiles], list[str]]:
    """What there is beside the tables of a development environment, and what stays there, each with the reason; `remove`: it is removed.

    `dropping`: the folders of tables, and `runs`: the files of scheduled runs, that go with the views.
    """
    places = list(_places(lake.spark, lake.config))
    others, stays = _in_target(lake, dropping, places)
    found = list[KeptFiles]()
    for place in places:
        kept, strange = _kept(place, runs)
        why = f"`{place.given}` names it" if place.given else f"there are views of another project, such as {others[0]}" if others else ""
        if why:
            stays += [f"{_shown(place.uri)} ({why})"] if kept is not None else []
            continue
        stays += strange
        found += [kept] if kept is not None else []
        if remove:
            place.remove()
    return found, stays


def _kept(place: _Place, but: Collection[str]) -> tuple[KeptFiles | None, list[str]]:
    files, table, strange = place.found()
    sizes = [folder.size(name) for folder, name in files if name not in but]
    contents = table.contents() if table is not None else None
    number = len(sizes) + (contents.files if contents is not None else 0)
    total = sum(sizes) + (contents.bytes if contents is not None else 0)
    return (KeptFiles(place.what, _shown(place.uri), total, number) if number else None), strange


def _places(spark: SparkSession, config: Config) -> Iterator[_Place]:
    """The folders that an environment writes to beside its views."""
    quality, runs = (location(spark, Table("", path, None)) for path in (config.quality_path, config.runs_path))
    yield _Place(spark, "results of checks", quality, _QUALITY, "quality.results" if config.quality.results is not None else "")
    yield _Place(spark, "files of scheduled runs", runs, _RUNS, "airflow.runs" if config.airflow.runs is not None else "")


def _in_target(lake: Lake, dropping: Collection[str], places: Collection[_Place]) -> tuple[list[str], list[str]]:
    """The tables of views beside those that are dropped; and in folders what else there is, with the reason why it stays."""
    others, strange, gone = list[str](), list[str](), {resolved(place) for place in dropping}
    for above in {_above(place.uri) for place in places if not place.given}:
        own = [place.uri.rpartition("/")[2] for place in places if _above(place.uri) == above]
        strange += [f"{_shown(above)}/{name} ({_FOREIGN})" for name in Folder(lake.spark, above).names() if name not in own]
    for table in tables_in_target(lake):
        with suppress(TargetError):  # the catalog has no place of it
            place = location(lake.spark, table)
            if resolved(place) in gone or any(f"{other.uri}/".startswith(f"{place}/") for other in places):
                continue
            if view_of(lake.spark, table):
                others.append(str(table.path or table.name))
            elif table.path is not None:
                strange.append(f"{table.path} ({_FOREIGN})")
    return others, strange


def _above(uri: str) -> str:
    return uri.rpartition("/")[0]


def _link(uri: str, place: str) -> str:
    """The first symbolic link on the way from the folder above a place to a folder in it; empty if there is none."""
    way = [_above(place), place]
    for name in uri.removeprefix(place).strip("/").split("/") if uri.startswith(place) else ():
        way.append(f"{way[-1]}/{name}")
    return next((each for each in way if (local := local_path(each.rstrip("/"))) is not None and local.is_symlink()), "")


def _shown(uri: str) -> str:
    return str(local_path(uri) or uri)
