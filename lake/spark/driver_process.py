"""The process of the JVM that PySpark has started."""

from __future__ import annotations

from pyspark import SparkContext


def end_jvm(seconds: float) -> None:
    """Let the JVM end by itself, and wait for that."""
    process = SparkContext._gateway.proc  # type: ignore[union-attr]
    process.stdin.close()
    process.wait(seconds)
