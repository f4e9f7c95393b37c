"""Finds a table's newest version from the file names of its log, without a JVM, for triggers that poll every few seconds.

Delta's log has one file per version, `_delta_log/<twenty digits>.json`. While the last known version is in the log, only the names after
it are requested: two requests if nothing has changed. After many new commits the log is listed instead.
"""

from __future__ import annotations

import re

from pyarrow.fs import FileSelector, FileSystem, FileType

from lake.config.models import without_spark
from lake.errors import SourceError

_MOST_STEPS = 16
"""How many commits after the last known version are requested one by one before the log is listed."""
_NUMBERED = re.compile(r"(\d{20})\.(json|checkpoint\..*)")


def newest_version(path: str, seen: int | None = None) -> int:
    """The newest version of the Delta table at a path or URI. `seen`: the last known version.

    Raises SourceError if there is no Delta table, or the storage can't be reached.
    """
    try:
        files, folder = FileSystem.from_uri(without_spark(path))
        log = f"{folder}/_delta_log"
        if seen is not None and _exists(files, log, seen):
            for version in range(seen + 1, seen + 1 + _MOST_STEPS):
                if not _exists(files, log, version):
                    return version - 1
        return _listed(files, log)
    except (OSError, ValueError) as error:
        raise SourceError(f"The Delta log of {path} can't be read: {error}.") from error


def _exists(files: FileSystem, log: str, version: int) -> bool:
    return bool(files.get_file_info(f"{log}/{version:020}.json").type == FileType.File)


def _listed(files: FileSystem, log: str) -> int:
    found = files.get_file_info(FileSelector(log))
    numbers = [int(match.group(1)) for file in found if (match := _NUMBERED.fullmatch(file.base_name))]
    if not numbers:
        raise ValueError("there is no commit in it")
    return max(numbers)
