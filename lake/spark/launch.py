"""Starts the JVM of a Spark session: refuses a missing or old Java before it starts, and keeps Java's start-up warning off standard error.

PySpark would start the JVM itself, with the standard error of this process. Spark always adds the incubator module of vectors, and Java
prints a warning about that for which there is no option. So the JVM writes to a pipe here, and all other lines are passed on unchanged.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from lake.errors import ConfigError
from lake.spark import lazy_testing
from lake.spark.preflight import java_problem

_NOISE = b"WARNING: Using incubator modules"
_STDERR = 2
_FIRST_LINES = 20
_ENDS_WITHIN = 5.0


def refuse_unusable_java() -> None:
    """Raises ConfigError with what `lakejoin doctor` says if this machine's Java can't run Spark."""
    problem = java_problem()
    if problem is not None:
        raise ConfigError(problem)


def launch(settings: Mapping[str, str]) -> None:
    """Start the JVM for the first Spark session of this process. Raises ConfigError if Java ends instead, with what it said."""
    if SparkContext._gateway is not None:
        return
    read_end, write_end = os.pipe()
    lines = _Lines(read_end)
    try:
        gateway = launch_gateway(SparkConf().setAll(list(settings.items())), {"stderr": write_end})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        os.close(write_end)
        raise ConfigError(_ended(lines.said())) from error
    os.close(write_end)
    lazy_testing.install()
    SparkContext._ensure_initialized(gateway=gateway)


@dataclass
class _Lines:
    """The lines that the JVM writes to standard error: passed on as they come, without the noise. The first are kept for an error."""

    read_end: int
    first: list[str] = field(default_factory=list)
    _thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._pass_on, name="standard error of the JVM", daemon=True)
        self._thread.start()

    def said(self) -> list[str]:
        """The first lines of a JVM that has ended."""
        self._thread.join(_ENDS_WITHIN)
        return self.first

    def _pass_on(self) -> None:
        with os.fdopen(self.read_end, "rb") as lines:
            for line in lines:
                if line.startswith(_NOISE):
                    continue
                if len(self.first) < _FIRST_LINES:
                    self.first.append(line.decode(errors="replace").strip())
                os.write(_STDERR, line)


def _ended(lines: list[str]) -> str:
    said = next((line for line in lines if line and "could not create the java virtual machine" not in line.lower()), "")
    shown = f": {said}" if said else " (its own message is above)"
    return f'Java ended while Spark started{shown}. Correct the settings under `spark:`, or Java; "lakejoin doctor" examines it.'


def has_ended() -> bool:
    """Whether the JVM that this process has started has ended."""
    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None
