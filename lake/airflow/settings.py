"""Where a lakejoin.yml is, and what its views and tables are called in Airflow."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from airflow.sdk import Asset, AssetWatcher

from lake.airflow.triggers import NewVersion
from lake.config.loader import load_each
from lake.config.models import Config
from lake.errors import ConfigError


@dataclass(frozen=True)
class Deployment:
    """A configuration file, one of its environments, and the views in it that are not valid."""

    file: str
    env: str | None
    config: Config
    wrong: Mapping[str, ConfigError]

    @staticmethod
    def of(file: str | Path | None = None, env: str | None = None) -> Deployment:
        """The file that is named, or that LAKEJOIN_CONFIG names, with its environment (LAKEJOIN_ENV). Raises ConfigError."""
        place = file or os.environ.get("LAKEJOIN_CONFIG")
        if place is None:
            raise ConfigError("Which lakejoin.yml? Set the environment variable LAKEJOIN_CONFIG for Airflow's processes.")
        chosen = env or os.environ.get("LAKEJOIN_ENV") or None
        config, wrong = load_each(place, chosen)
        return Deployment(str(Path(place).resolve()), chosen, config, wrong)

    @property
    def options(self) -> list[str]:
        """The command's options before its verb."""
        return ["--config", self.file, *(["--env", self.env] if self.env else [])]

    @property
    def in_cluster(self) -> bool:
        """Whether the driver runs on the cluster, not beside the worker."""
        return bool(self.config.airflow.submit.get("deploy_mode") == "cluster")

    @property
    def env_vars(self) -> dict[str, str]:
        """A driver beside the worker runs in the worker's Python, whatever `python3` is on its path."""
        return {} if self.in_cluster else {"PYSPARK_DRIVER_PYTHON": sys.executable}

    def dag_id(self, *parts: str) -> str:
        return "_".join([self.config.airflow.prefix, *parts])

    def alias(self, view: str) -> str:
        """What stands for a view's asset among a task's outlets: events are sent only where rows were published."""
        return f"{self.config.airflow.prefix}/{view}/published"

    def asset(self, name: str) -> Asset:
        """The asset of a table or view; that of a table is watched unless an upstream DAG updates it."""
        return self._assets[name]

    @cached_property
    def _assets(self) -> dict[str, Asset]:
        return {name: self._made(name) for name in [*self.config.tables, *self.config.views]}

    def _made(self, name: str) -> Asset:
        called, settings = f"{self.config.airflow.prefix}/{name}", self.config.airflow
        if name in self.config.views:
            return Asset(name=called, uri=_uri(self.config.view_path(name) or str(self.config.view_name(name))))
        table = self.config.tables[name]
        if table.asset is not None:
            return Asset(table.asset)
        if table.path is None:
            return Asset(name=called, uri=_uri(str(table.name)))
        path = self.config.source_path(table.path)
        return Asset(
            name=called, uri=_uri(path), watchers=[AssetWatcher(name=called, trigger=NewVersion(name, path, settings.poll_seconds))]
        )


def _uri(place: str) -> str:
    """A path or a name in a catalog as an asset's URI."""
    return f"file://{place}" if place.startswith("/") else place if ":" in place else f"delta://{place}"
