"""The warm engine: one Spark session, and the open lakehouse of the configuration, opened again when a file of it has changed."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lake.config.loader import load, load_each, variables
from lake.config.models import Config
from lake.config.view_sources import query_text
from lake.delta.newest_version import newest_version
from lake.errors import ConfigError, LakeError
from lake.lakehouse import Lakehouse
from lake.opening import opened
from lake.server.environment import differing, digests
from lake.spark.session import make_session
from lake.spark.session_digest import defaults_text
from lake.views.user_functions import forget_functions

_KEPT_OPEN = 2
"""A configuration with an invalid view is open in two ways: scheduled runs leave that view out."""
_SKIPPED = ("site-packages", "dist-packages", "node_modules", "__pycache__")


class OtherSettingsError(LakeError):
    """The server can't answer as the command would: its Spark settings or its environment differ."""


@dataclass
class Engine:
    """The session and the open lakehouses of one configuration file. `besides`: settings of the session beside those of `spark:`.

    Raises ConfigError if the file is not valid.
    """

    file: Path
    env: str | None
    besides: Mapping[str, str] = field(default_factory=dict)
    salt: str = field(default_factory=lambda: secrets.token_hex(16))
    _environment: dict[str, str] = field(init=False)
    _spark: SparkSession | None = None
    _settings: dict[str, str] = field(init=False)
    _defaults: str = field(init=False)
    _open: tuple[tuple[object, Lakehouse], ...] = ()
    _functions: object = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._environment = digests(os.environ, self.salt)  # before Spark adds variables of its own
        self._settings, self._defaults = dict(self.config().spark), defaults_text()

    def start(self) -> Config:
        """Start Spark; returns the configuration as it is now. Raises LakeError."""
        config = self.config()
        self._spark = make_session(self._settings, self.besides, one_writer=config.single_writer)
        return config

    @property
    def spark(self) -> SparkSession:
        assert self._spark is not None, "the engine was started"
        return self._spark

    def config(self) -> Config:
        """The valid part of the configuration as it is now. Raises ConfigError."""
        return load_each(self.file, self.env)[0]

    def lake(self, strict: bool) -> Lakehouse:
        """The lakehouse of the configuration as it is now. If not `strict`, without views whose configuration is invalid.

        Raises ConfigError, and OtherSettingsError if its Spark settings are others than those of the session.
        """
        config = load(self.file, self.env) if strict else self.config()
        self._refuse_other_settings(config)
        with self._lock:
            functions = _functions(config)
            if functions != self._functions:
                forget_functions(config)
                self._functions = functions
            state = (config, _queries(config), functions)
            known = next((lake for open_state, lake in self._open if open_state == state), None)
            if known is None:
                known = opened(config, self.spark)
                self._open = ((state, known), *self._open)[:_KEPT_OPEN]
            return known

    def newest(self, config: Config, name: str, seen: int | None) -> int | None:
        """The newest version of a table of the configuration, or of a view's table; `seen`: the last known one. Raises LakeError if it
        can't be read."""
        path = config.path_of(name)
        if path is not None and (name in config.tables or config.production is None):
            return newest_version(path, seen)
        if name in config.tables:
            return self.lake(False).source_head(name).version.number
        published = self.lake(False).published_version(name)
        return published[0] if published is not None else None

    def refuse_other_process(self, client: Mapping[str, str]) -> None:
        """Raise OtherSettingsError if a process of the client's would run its command with other Spark settings, or other values of
        variables that matter. `client`: digests of its variables (lake/server/environment.py)."""
        try:
            config, referred = self.config(), variables(self.file, self.env)
        except ConfigError:  # the command itself says what is wrong
            return
        self._refuse_other_settings(config)
        names = differing(self._environment, client, referred)
        if names:
            raise OtherSettingsError(
                f"The server was started with other values of the environment variables {', '.join(names)}. Nothing was done. Run "
                '"lakejoin serve --stop" and start the server again, or use --server off.'
            )

    def _refuse_other_settings(self, config: Config) -> None:
        """The digests of results (lake/spark/session_digest.py) are of these settings as they are now, so they must be the session's."""
        same = {
            f"under `spark:` in {self.file}": dict(config.spark) == self._settings,
            "in spark-defaults.conf": defaults_text() == self._defaults,
        }
        for where in (where for where, is_same in same.items() if not is_same):
            raise OtherSettingsError(
                f"The settings {where} have changed since the server started, and a running Spark session keeps its own. Nothing was done. "
                'Run "lakejoin serve --stop" and start the server again, or use --server off.'
            )


def _queries(config: Config) -> dict[str, str]:
    """The queries of the views that have them in files of their own; empty for a file that can't be read, which its view will report."""
    found = {}
    for name, view in config.views.items():
        if view.query_file is not None:
            try:
                found[name] = query_text(view, config)
            except LakeError:
                found[name] = ""
    return found


def _functions(config: Config) -> Any:
    """The Python files beside the configuration, if it has views that are functions: their paths, sizes and times of change."""
    if all(view.function is None for view in config.views.values()):
        return None
    return {str(file): _changed(file) for file in _python_files(config.directory)}


def _changed(file: Path) -> tuple[int, int] | None:
    """The size and the time of change; None for a file that has just gone, or a link that leads nowhere."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _python_files(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_delta_log")) and name not in _SKIPPED]
        yield from (Path(place, name) for name in files if name.endswith(".py") and not name.startswith("."))
