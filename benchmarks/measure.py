"""What the benchmarks share: CPU seconds of some work, and where results go."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pyspark
from pyspark.sql import SparkSession

DATA = Path(__file__).with_name(".data")
RESULTS = Path(__file__).with_name("results")
K = TypeVar("K")


def cpu_seconds(spark: SparkSession) -> float:
    """CPU seconds used so far by this process and the JVM that it drives."""
    pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    return sum(t.user + t.system for t in (psutil.Process(p).cpu_times() for p in (pid, os.getpid())))


def measured(spark: SparkSession, work: Callable[[], object]) -> tuple[float, float]:
    """(CPU seconds, wall seconds) of some work."""
    cpu, wall = cpu_seconds(spark), time.monotonic()
    work()
    return cpu_seconds(spark) - cpu, time.monotonic() - wall


Seconds = list[tuple[float, float]]
"""(CPU, wall) of some work, time after time."""


def interleaved(
    spark: SparkSession, works: Mapping[K, Callable[[], object]], rounds: int, before: Callable[[], object] = lambda: None
) -> dict[K, Seconds]:
    """Some works in turn, so many rounds after one that is not counted; `before`: what comes first in each."""
    found: dict[K, Seconds] = {name: [] for name in works}
    for turn in range(rounds + 1):
        before()
        for name, work in works.items():
            took = measured(spark, work)
            found[name] += [took] if turn else []
    return found


def plain_session(spark: SparkSession, lake: Path, tables: Iterable[str] = ()) -> SparkSession:
    """One with Spark's ordinary settings and Lakejoin's time zone, which knows the newest rows of some tables of a lake by their names."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    for table in tables:
        session.read.format("delta").load(str(lake / table)).createOrReplaceTempView(table)
    return session


def medians(found: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Of what `measured` gave some times."""
    return {"cpu": statistics.median(cpu for cpu, _ in found), "wall": statistics.median(wall for _, wall in found)}


def save(name: str, body: Mapping[str, Any]) -> None:
    """Write benchmarks/results/NAME.json, with the machine and its versions."""
    save_to(RESULTS / f"{name}.json", body)


def save_to(file: Path, body: Mapping[str, Any]) -> None:
    """Write a JSON file of results, with the machine and its versions."""
    file.parent.mkdir(exist_ok=True)
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform(), "spark": pyspark.__version__}
    file.write_text(json.dumps({"machine": machine, **body}, indent=1) + "\n")
