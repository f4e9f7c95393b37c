"""One Spark session for the whole run, small and quick to start, and helpers that make lakes out of readable tables."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lake.spark.session import make_session
from tests.lakes import TestLake, read_as_large

logging.getLogger("py4j").setLevel(logging.WARNING)  # Airflow, once imported, turns every logger on
QUICK = {
    "spark.master": "local[2]",
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
}
LONG = {**QUICK, "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Xmn1g"}
"""For a run of more than a few minutes: the JVM's second compiler then saves a quarter of the time."""
COMPILED = {"spark.sql.codegen.factoryMode": "FALLBACK"}
"""Spark's own setting. Tests set it aside, since Spark takes longer to write code for their few rows than to go through them."""


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The run's only session: two cores, two shuffle partitions, UTC, no UI."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    settings = QUICK if "not slow" in request.config.option.markexpr else LONG
    session = make_session({**settings, "spark.sql.warehouse.dir": str(warehouse)})
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def held_or_read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the tests read the changes of small tables from feeds and files, as those of larger ones are: all tables here are small."""
    if zlib.crc32(request.node.nodeid.encode()) % 2:
        read_as_large(monkeypatch)


@pytest.fixture
def module(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Make a module of a user's: its name, its text."""

    def make(name: str, text: str) -> None:
        folder = tmp_path_factory.mktemp("modules")
        (folder / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(str(folder))

    return make


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> TestLake:
    """An empty lake in a folder of its own."""
    return TestLake(spark, tmp_path)
