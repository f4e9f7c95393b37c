"""`lakejoin init`: writes a lakejoin.yml, with comments, for the Delta tables in a folder. No Spark."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import yaml
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lake.core.constants import SUFFIXES
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
    """The Delta tables below a folder: name → folder. Folders of tables are not searched for further tables."""
    found: dict[str, Path] = {}
    for here, folders, _ in os.walk(folder):
        if "_delta_log" in folders:
            folders.clear()
            if not _is_lakejoins(Path(here)):
                name = re.sub(r"\W", "_", Path(here).resolve().name, flags=re.ASCII)
                name = name if re.match(r"[A-Za-z_]", name) else f"t_{name}"
                while name.lower() in {n.lower() for n in found} or name.endswith(tuple(filter(None, SUFFIXES.values()))):
                    name += "_2"
                found[name] = Path(here)
        folders.sort()
    return found


def _is_lakejoins(table: Path) -> bool:
    """Whether it is a view's table, or the results of checks."""
    try:
        configuration = DeltaTable(table).metadata().configuration
    except (DeltaError, OSError):  # it can't be read: the file lists it, and its first use reports the error
        return False
    return "lakejoin.view" in configuration or table.name == "quality_results"


def _text(value: str) -> str:
    """A text in YAML, quoted if YAML would read it as another type."""
    plain = re.fullmatch(r"\w[\w./-]*|\.[\w./-]*", value) and yaml.safe_load(value) == value
    return value if plain else json.dumps(value, ensure_ascii=False)


def write_config(folder: Path, config: Path, force: bool) -> list[str]:
    """Write the file and return the names of the tables in it. Raises ConfigError."""
    if config.exists() and not force:
        raise ConfigError(f"{config} already exists. Overwrite it with --force, or give another file with --config.")
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder.")
    tables = find_tables(folder)
    if not tables:
        raise ConfigError(f"There is no Delta table (a folder with a _delta_log in it) under {folder}.")
    if "_delta_log" in os.listdir(folder):  # the folder is a table itself: views must not be stored inside it
        folder = folder.resolve().parent
    root = os.path.relpath(folder.resolve(), config.resolve().parent)
    lines = [
        "# Written by lakejoin init. Relative table paths start at root; ${VARIABLES} come from the environment.",
        f"root: {_text(root)}",
        "# target: where view tables live: a path, or catalog.schema; default: root/views",
        "",
        "tables:",
        "  # primary_key lets a view be published by its key: declare it where it holds.",
    ]
    for name, path in tables.items():
        place = Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
        place = f"./{place}" if ":" in place else place  # with a colon it would be a URI
        lines.append(f"  {_text(name)}: {{path: {_text(place)}}}   # primary_key: [...]")
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("\n".join(lines) + "\n" + _VIEWS.format(table=next(iter(tables))), encoding="utf-8")
    return list(tables)
