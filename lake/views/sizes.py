"""Whether all tables of a configuration are small, found out from the sizes of their files, so that no JVM is started for it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from urllib.parse import urlparse

from lake.config.models import Config

_SMALL = 256 << 20
_MOST_FILES = 20_000


def are_small(config: Config) -> bool:
    """Whether the folders of all tables and views are on this machine, and have few bytes: at most 256 MB in at most 20,000 files, those
    that are no longer part of a table included."""
    folders = [_local(path) for path in _places(config)]
    return None not in folders and _few_bytes(folder for folder in folders if folder is not None)


def _places(config: Config) -> Iterator[str | None]:
    for table in config.tables.values():
        yield None if table.path is None else config.source_path(table.path)
    for view in config.views:
        yield config.view_path(view)


def _local(path: str | None) -> str | None:
    """The folder, None if it is not one of this machine."""
    if path is None:
        return None
    place = urlparse(path)
    return place.path if place.scheme in ("", "file") else None


def _few_bytes(folders: Iterable[str]) -> bool:
    size = files = 0
    waiting = list(folders)
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                        continue
                    size, files = size + entry.stat().st_size, files + 1
                    if size > _SMALL or files > _MOST_FILES:
                        return False
        except FileNotFoundError:  # there is no such folder yet, or a file has gone meanwhile
            continue
        except OSError:
            return False
    return True
