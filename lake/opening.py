"""Opens a lakehouse: the one place where the rooms are put together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lake.config.loader import load
from lake.config.models import Config
from lake.lakehouse import Lakehouse
from lake.refresh.compute import Candidate, Gate


def open_lake(
    config: str | Path | Mapping[str, Any] = "lakejoin.yml", spark: SparkSession | None = None, env: str | None = None
) -> Lakehouse:
    """Open a lakehouse by its lakejoin.yml, or by a dict of the same shape.

    `spark`: an existing classic session with Delta; by default a session is created when it is first needed. Raises ConfigError.
    """
    return opened(load(config, env), spark)


def opened(config: Config, spark: SparkSession | None = None, one_command: bool = False) -> Lakehouse:
    """The lakehouse of a validated configuration; its refreshes check blocking expectations before they publish. `one_command`: the process
    ends after one command."""
    return Lakehouse(config, spark, blocker=_blocker, one_command=one_command)


def _blocker(lake: Lakehouse, view: str, accept: Collection[str]) -> Gate:
    def gate(candidate: Candidate) -> None:
        from lake.quality.gate import Blocking  # loads Great Expectations, which takes seconds: only when there are rows to check

        Blocking(lake, view, accept)(candidate)

    return gate
