"""The process of the JVM that PySpark has started."""

from __future__ import annotations

from pyspark import SparkContext


def end_jvm(seconds: float) -> None:
    """Tell the JVM to exit, and wait up to this many seconds until it has."""
    process = SparkContext._gateway.proc  # type: ignore[union-attr]
    process.stdin.close()
    process.wait(seconds)
