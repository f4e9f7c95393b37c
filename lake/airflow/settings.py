"""Reads the lakejoin.yml of a deployment, and names its views and tables in Airflow."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from airflow.sdk import Asset, AssetWatcher

from lake.airflow.private_settings import read_by_spark_submit
from lake.airflow.triggers import NewVersion
from lake.config.loader import load_each
from lake.config.models import Config
from lake.errors import ConfigError


@dataclass(frozen=True)
class Deployment:
    """A configuration file, one of its environments, and the errors of its invalid views."""

    file: str
    env: str | None
    config: Config
    wrong: Mapping[str, ConfigError]

    @staticmethod
    def of(file: str | Path | None = None, env: str | None = None) -> Deployment:
        """The given file, or that of LAKEJOIN_CONFIG, with the given environment, or that of LAKEJOIN_ENV. Raises ConfigError."""
        place = file or os.environ.get("LAKEJOIN_CONFIG")
        if place is None:
            raise ConfigError(
                "There is no path of a lakejoin.yml. Set the environment variable LAKEJOIN_CONFIG for all processes of Airflow."
            )
        chosen = env or os.environ.get("LAKEJOIN_ENV") or None
        config, wrong = load_each(place, chosen)
        return Deployment(str(Path(place).resolve()), chosen, config, wrong)

    @property
    def options(self) -> list[str]:
        """The options of the lakejoin command that come before the verb."""
        return ["--config", self.file, *(["--env", self.env] if self.env else [])]

    @property
    def in_cluster(self) -> bool:
        """Whether the driver runs on the cluster, not on the machine of the worker."""
        return bool(self.config.airflow.submit.get("deploy_mode") == "cluster")

    @property
    def env_vars(self) -> dict[str, str]:
        """Environment variables of the application: a driver on the worker's machine uses the Python of the worker."""
        return {} if self.in_cluster else {"PYSPARK_DRIVER_PYTHON": sys.executable}

    @property
    def public_conf(self) -> dict[str, str]:
        """The Spark settings that may be shown: those of `spark:` and of `airflow.submit.conf` whose text has no ${VARIABLE}."""
        return {
            name: value for name, value in {**self.config.spark, **self._submit_conf}.items() if name not in self.config.secret_settings
        }

    @property
    def private_conf(self) -> dict[str, str]:
        """The other settings that spark-submit must know; the application reads the rest of `spark:` from lakejoin.yml."""
        for_submit = {name: value for name, value in self.config.spark.items() if read_by_spark_submit(name)}
        return {name: value for name, value in {**for_submit, **self._submit_conf}.items() if name in self.config.secret_settings}

    @property
    def _submit_conf(self) -> dict[str, str]:
        return dict(self.config.airflow.submit.get("conf", {}))

    def dag_id(self, *parts: str) -> str:
        return "_".join([self.config.airflow.prefix, *parts])

    def alias(self, view: str) -> str:
        """The name of the asset alias that a refresh has as its outlet: it adds events only for views whose rows were published."""
        return f"{self.config.airflow.prefix}/{view}/published"

    def asset(self, name: str) -> Asset:
        """The asset of a table or view. The asset of a table has a watcher, unless an upstream DAG updates it."""
        return self._assets[name]

    @cached_property
    def _assets(self) -> dict[str, Asset]:
        return {name: self._new_asset(name) for name in [*self.config.tables, *self.config.views]}

    def _new_asset(self, name: str) -> Asset:
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
    """A path, or a name in a catalog, as the URI of an asset."""
    return f"file://{place}" if place.startswith("/") else place if ":" in place else f"delta://{place}"
