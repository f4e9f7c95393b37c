"""Whether all tables of a configuration are small, found out from the sizes of their files, so that no JVM is started for it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from lake.config.models import Config
from lake.delta.local_log import local_folder

_SMALL = 256 << 20
_MOST_FILES = 20_000


def are_small(config: Config) -> bool:
    """Whether the folders of all tables and views are on this machine, and have few bytes: at most 256 MB in at most 20,000 files, those
    that are no longer part of a table included."""
    configs = [config] if config.production is None else [config, config.production]
    folders = [local_folder(each.path_of(name)) for each in configs for name in [*each.tables, *each.views]]
    return None not in folders and _few_bytes(folder for folder in folders if folder is not None)


def _few_bytes(folders: Iterable[Path]) -> bool:
    size = files = 0
    waiting = list[str | Path](folders)
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
