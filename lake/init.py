"""`lakejoin init`: a commented lakejoin.yml from the Delta tables that are found under a folder. No Spark."""

from __future__ import annotations

import os
import re
from pathlib import Path

from lake.errors import ConfigError

_VIEWS = """
views:
  # A view is one SELECT over the tables above (or query_file: my_view.sql, or function: my_module:my_view).
  # my_view:
  #   query: SELECT ... FROM {table} ...
  #   schedule: "*/5 * * * *"        # optional, for the DAGs; or refresh: changes
  #   description: what a row of it is
"""


def find_tables(folder: Path) -> dict[str, Path]:
    """Name → folder of each Delta table below a folder; tables are not looked for inside tables."""
    found: dict[str, Path] = {}
    for here, folders, _ in os.walk(folder):
        if "_delta_log" in folders:
            folders.clear()
            name = re.sub(r"\W", "_", Path(here).name)
            name = name if re.match(r"[A-Za-z_]", name) else f"t_{name}"
            while name.lower() in {n.lower() for n in found}:
                name += "_2"
            found[name] = Path(here)
        folders.sort()
    return found


def write_config(folder: Path, config: Path, force: bool) -> list[str]:
    """Write the file and return the names of the tables in it. Raises ConfigError."""
    if config.exists() and not force:
        raise ConfigError(f"{config} is there already. Give --force to write over it, or another name with --config.")
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder.")
    tables = find_tables(folder)
    if not tables:
        raise ConfigError(f"There is no Delta table (a folder with a _delta_log in it) under {folder}.")
    root = os.path.relpath(folder.resolve(), config.resolve().parent)
    lines = [
        "# Written by lakejoin init. Relative table paths start at root; ${VARIABLES} come from the environment.",
        f"root: {root}",
        "# target: where view tables live: a path, or catalog.schema; default: root/views",
        "",
        "tables:",
        "  # primary_key lets a view be published by its key: declare it where it holds.",
    ]
    for name, path in tables.items():
        lines.append(f"  {name}: {{path: {path.relative_to(folder).as_posix() or '.'}}}   # primary_key: [...]")
    config.write_text("\n".join(lines) + "\n" + _VIEWS.format(table=next(iter(tables))), encoding="utf-8")
    return list(tables)
