"""Resolve Delta's jars once, by Spark's own resolver, so that later starts ask no registry. Run by `make setup`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

from lake.spark.preflight import jar_folder


def resolve(folder: Path) -> int:
    """Fill the folder with the jars of the installed delta-spark; returns how many. Does nothing where they are there."""
    mark = folder / f"delta-{version('delta-spark')}.resolved"
    if mark.exists():
        return 0
    with tempfile.TemporaryDirectory() as ivy:
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.jars.ivy", ivy)
        configure_spark_with_delta_pip(builder).getOrCreate().stop()
        found = sorted(Path(ivy, "jars").glob("*.jar"))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for jar in found:
            shutil.copy(jar, folder / jar.name)
    mark.touch()
    return len(found)


if __name__ == "__main__":
    resolve(jar_folder())
    sys.exit(0)
