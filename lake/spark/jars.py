"""Downloads Delta's jars once, by Spark's own resolver, so that later starts need no network.

The folder may hold other files: nothing is removed or overwritten but the jars that an earlier download has written, which are listed in
its `delta-VERSION-spark-VERSION.resolved` file.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

from lake.errors import ConfigError
from lake.spark.launch import refuse_unusable_java
from lake.spark.preflight import artifact, jar_folder, jars
from lake.spark.versions import minor
from lake.spark.watched_process import run_watched

DOWNLOADING = "Downloading Delta's jars from Maven Central (87 MB, once)"
_STALLED_AFTER = 120


def resolve(folder: Path, on_progress: Callable[[int], None] = lambda size: None) -> int:
    """Download the jars of the installed delta-spark into a folder; return their number, 0 if that was done before.

    `on_progress` gets the number of downloaded bytes. Raises ConfigError if the jars can't be downloaded, or the folder can't be written.
    """
    mark = folder / mark_name()
    if mark.exists():
        return 0
    refuse_unusable_java()
    with tempfile.TemporaryDirectory() as ivy:
        ended = run_watched([sys.executable, "-m", "lake.spark.jars", ivy], lambda: _size(Path(ivy)), on_progress, _STALLED_AFTER)
        found = sorted(Path(ivy, "jars").glob("*.jar"))
        if ended.problem or not found:
            raise ConfigError(
                f"Delta's jars can't be downloaded from Maven Central ({ended.problem or 'none were found'}). Check the network and "
                f'run "lakejoin setup", or set LAKEJOIN_JARS to a folder that has them.'
            )
        try:
            _store(found, folder, mark)
        except OSError as error:
            raise ConfigError(
                f"Delta's jars can't be written to {folder} ({error.strerror}). Set LAKEJOIN_JARS to a folder that can be written."
            ) from error
    return len(found)


def mark_name() -> str:
    """The name of the file that says which jars are there: Delta has other ones for each minor version of Spark."""
    return f"delta-{version('delta-spark')}-spark-{minor(version('pyspark'))}.resolved"


def at_first_use() -> list[str]:
    """The jars, downloaded now if they are not there, or are those for another Spark; empty if they can't be: Spark then resolves them
    itself, from its own cache."""
    folder = jar_folder()
    of_another = not (folder / mark_name()).exists() and any(folder.glob("delta-*.resolved"))
    if of_another or not jars():
        print(DOWNLOADING, file=sys.stderr)
        try:
            resolve(folder)
        except ConfigError as error:
            print(error, file=sys.stderr)
            return []
    return jars()


def _store(found: list[Path], folder: Path, mark: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for earlier in folder.glob("delta-*.resolved"):
        for jar in _written_by(earlier, {artifact(jar.name) for jar in found}):
            jar.unlink(missing_ok=True)
        earlier.unlink()
    written = [jar.name for jar in found if not (folder / jar.name).exists()]
    # through a temporary folder, so that no other process sees an incomplete jar
    with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as part:
        for name in written:
            os.replace(shutil.copy(found[0].with_name(name), part), folder / name)
    mark.write_text("".join(f"{name}\n" for name in written), encoding="utf-8")


def _written_by(mark: Path, artifacts: set[str]) -> list[Path]:
    """The jars that an earlier download has written.

    An empty list was made before there were lists: then those of the same artifacts, with the names that Spark's resolver gives
    (`group_artifact-version.jar`).
    """
    names = mark.read_text(encoding="utf-8").split()
    own = [mark.with_name(Path(name).name) for name in names]
    return own or [jar for jar in mark.parent.glob("*_*.jar") if artifact(jar.name) in artifacts]


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*.jar*") if file.is_file())


def _download(ivy: str) -> None:
    """Let Spark resolve the jars into a folder, in this process: it starts a JVM for that."""
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.jars.ivy", ivy)
    configure_spark_with_delta_pip(builder).getOrCreate().stop()


if __name__ == "__main__":
    _download(sys.argv[1])
