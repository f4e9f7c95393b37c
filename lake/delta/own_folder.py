"""The folder of a table that Lakejoin made: what is in it, and its removal, which ends with the newest commit of the log.

Law: while a file of a folder that is being removed is left, the newest commit is, unless the log had been removed before: whoever reads the
log finds the table as its newest commit describes it, or no table. Nothing outside of the folder is removed: links are not followed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from lake.delta.sidecar import Folder
from lake.delta.tables import Table
from lake.spark.failures import SPARK_ERRORS
from lake.spark.jvm.gateway import Java, jvm_of

LOG = "_delta_log"
_LOCAL = re.compile(r"(?:file:(?://)?)?(/.*)")
_MOVES_FOLDERS = ("hdfs", "viewfs", "abfs", "abfss")
_COMMIT = re.compile(r"\d{20}\.json")


@dataclass(frozen=True)
class Contents:
    """What is in a folder, with all that is below it. `names`: of its own files and folders; `tables`: folders below it that have a log of
    their own; `links`: symbolic links, the folder itself among them."""

    bytes: int
    files: int
    names: frozenset[str]
    tables: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


def local_path(path: str) -> Path | None:
    """A folder of this machine as Hadoop writes its path, None for one elsewhere."""
    found = _LOCAL.fullmatch(path)
    return Path(found[1]) if found else None


MOVE_ERRORS = (*SPARK_ERRORS, OSError, ValueError)
"""What `move_table` raises."""


def move_table(spark: SparkSession, here: Table, there: Table) -> None:
    """Move a table in one step: its folder, or its name in a catalog. Raises MOVE_ERRORS; it is then where it was."""
    if here.path is not None and there.path is not None:
        OwnFolder(spark, here.path).move(there.path)
    else:
        spark.sql(f"ALTER TABLE {here.sql} RENAME TO {there.sql}")


class OwnFolder:
    """A folder, wherever Spark writes. Raises Spark's errors, or OSError."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path.rstrip("/")
        self._spark = spark
        self._local = local_path(self.path)

    def contents(self) -> Contents | None:
        """What is in the folder, None where there is none."""
        return self._contents_elsewhere() if self._local is None else _contents(self._local)

    def newest_properties(self) -> dict[str, str]:
        """The table's properties by its newest commit, if that commit sets any: also of a log of which older commits are gone."""
        folder = Folder(self._spark, f"{self.path}/{LOG}")
        commits = [name for name in folder.names("0") if _COMMIT.fullmatch(name)]
        with suppress(ValueError):  # a line is no JSON, or the file does not match its checksum
            for line in folder.read(commits[-1]).split("\n") if commits else ():
                if "metaData" in (action := json.loads(line or "{}")):
                    return {str(k): str(v) for k, v in (action["metaData"].get("configuration") or {}).items()}
        return {}

    def immovable(self, place: str) -> str:
        """Why the folder can't be moved to a place in one step; empty where it probably can."""
        target = local_path(place)
        if self._local is not None and target is not None:
            parent = next(folder for folder in target.parents if folder.exists())
            return "they are on two file systems" if parent.stat().st_dev != self._local.stat().st_dev else ""
        files, _ = self._java
        if str(files.getScheme()) not in _MOVES_FOLDERS and self._local is None:
            return f"storage of {files.getScheme()}:// has no folders that could be moved in one step"
        other = self._path(place).getFileSystem(self._spark._jsparkSession.sessionState().newHadoopConf())
        return "they are on two storages" if files.getUri().compareTo(other.getUri()) else ""

    def move(self, place: str) -> None:
        """Move the folder, in one step. Raises OSError where there is something already, ValueError where the storage has no such step."""
        target = local_path(place)
        why = self.immovable(place)
        if why:
            raise ValueError(why)
        if self._local is not None and target is not None:
            if target.exists():
                raise FileExistsError(f"{target} exists")
            target.parent.mkdir(parents=True, exist_ok=True)
            self._local.rename(target)
        else:
            (files, folder), there = self._java, self._path(place)
            files.mkdirs(there.getParent())
            if files.exists(there) or not files.rename(folder, there):  # into a folder that exists it would move
                raise OSError(f"{place} exists, or can't be written")
        for moved in (self, OwnFolder(self._spark, place)):
            moved._forget()

    def remove(self) -> None:
        """Remove all files but the log, then the log from its oldest file to its newest commit, then the folders, if nobody has written
        into them meanwhile."""
        if self._local is None:
            self._remove_elsewhere()
        else:
            _remove(self._local)
        self._forget()

    def _forget(self) -> None:
        """Let Delta forget what it has read of the table: another one may be created here."""
        jvm = jvm_of(self._spark)
        jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(self._spark._jsparkSession, jvm.org.apache.hadoop.fs.Path(self.path))

    def _contents_elsewhere(self) -> Contents | None:
        text = str(jvm_of(self._spark).own_folders.below(*self._java))
        if not text:
            return None
        counts, names, tables = (part.split("\n") if part else [] for part in text.split("\n\n"))
        return Contents(int(counts[0]), int(counts[1]), frozenset(names), tuple(tables))

    def _remove_elsewhere(self) -> None:
        files, folder = self._java
        own = jvm_of(self._spark).own_folders
        own.removeBelow(files, folder, LOG)
        own.removeBelow(files, folder, "")

    def _path(self, place: str) -> Java:
        return jvm_of(self._spark).org.apache.hadoop.fs.Path(place)

    @property
    def _java(self) -> tuple[Java, Java]:
        folder = self._path(self.path)
        return folder.getFileSystem(self._spark._jsparkSession.sessionState().newHadoopConf()), folder


def _contents(folder: Path) -> Contents | None:
    if folder.is_symlink():
        return Contents(0, 0, frozenset(), links=(str(folder),))
    if not folder.is_dir():
        return None
    sizes, tables, links = list[int](), list[str](), list[str]()
    for here, folders, files in os.walk(folder):
        place = Path(here)
        links += [str(place / name) for name in [*folders, *files] if (place / name).is_symlink()]
        tables += [here] if LOG in folders and place != folder else []
        sizes += [(place / name).lstat().st_size for name in files]
    return Contents(sum(sizes), len(sizes), frozenset(os.listdir(folder)), tuple(tables), tuple(links))


def _remove(folder: Path) -> None:
    for name in os.listdir(folder):
        if name != LOG:
            _remove_one(folder / name)
    log = folder / LOG
    for name in log_order(os.listdir(log)) if log.is_dir() else ():
        _remove_one(log / name)
    for empty in (log, folder):
        with suppress(OSError):  # somebody has written into it
            empty.rmdir()


def _remove_one(place: Path) -> None:
    """A file, or a folder with all that is in it; of a link, the link."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def log_order(names: list[str]) -> Iterator[str]:
    """The files of a log in the order in which they are removed: those that are no commits, then the commits, the newest last."""
    yield from sorted(names, key=lambda name: (_COMMIT.fullmatch(name) is not None, name))
