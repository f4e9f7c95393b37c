"""A table's newest version, from the names of its log's files: no JVM, for what looks every few seconds.

Delta's log is one file a version, `_delta_log/<twenty digits>.json`. While the version that was newest is there, only the names after it
are asked for: one request where nothing has changed.
"""

from __future__ import annotations

import re

from pyarrow.fs import FileSelector, FileSystem, FileType

from lake.config.models import without_spark
from lake.errors import SourceError

_NUMBERED = re.compile(r"(\d{20})\.(json|checkpoint\..*)")


def newest_version(path: str, seen: int | None = None) -> int:
    """The newest version of the Delta table at a path or URI. `seen`: what it was before.

    Raises SourceError where there is no Delta table, or it can't be reached.
    """
    try:
        files, folder = FileSystem.from_uri(without_spark(path))
        log = f"{folder}/_delta_log"
        newest = seen if seen is not None and _there(files, log, seen) else _listed(files, log)
        while _there(files, log, newest + 1):
            newest += 1
        return newest
    except (OSError, ValueError) as error:
        raise SourceError(f"The Delta log of {path} can't be read: {error}.") from error


def _there(files: FileSystem, log: str, version: int) -> bool:
    return bool(files.get_file_info(f"{log}/{version:020}.json").type == FileType.File)


def _listed(files: FileSystem, log: str) -> int:
    found = files.get_file_info(FileSelector(log))
    numbers = [int(match.group(1)) for file in found if (match := _NUMBERED.fullmatch(file.base_name))]
    if not numbers:
        raise ValueError("there is no commit in it")
    return max(numbers)
