"""A JVM that starts in half the time: what it makes of some ten thousand classes is kept once, by `make setup`, and mapped at each start.

Class data sharing of the JVM's own: an archive is written when a JVM ends that has done what a refresh does. Later ones take their classes
from it where class path and JVM are the same, and load them as ever where they are not.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext

from lake import open_lake
from lake.spark.preflight import class_archive

_ENDS = 300
"""Seconds that a JVM may take to end: it writes the archive then."""


def make(archive: Path) -> bool:
    """Write the archive; returns whether it is there. Does nothing where it is."""
    if archive.exists():
        return True
    part = archive.with_suffix(".part")
    part.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        _work(folder, f"-XX:ArchiveClassesAtExit={part} -Xlog:disable")
        process = SparkContext._gateway.proc  # type: ignore[union-attr]
        process.stdin.close()
        process.wait(_ENDS)
    if part.exists():
        part.replace(archive)
    return archive.exists()


def _work(folder: str, options: str) -> None:
    """What most commands do, on a small lake."""
    view = {"query": "SELECT a.id, a.n, b.s FROM a JOIN b ON a.n = b.id"}
    counts = {"query": "SELECT b.s, count(*) AS n, sum(a.n) AS total FROM a LEFT JOIN b ON a.n = b.id GROUP BY b.s"}
    tables = {"a": {"path": "a", "primary_key": "id"}, "b": {"path": "b", "primary_key": "id"}}
    settings = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": options}
    lake = open_lake({"root": folder, "spark": settings, "tables": tables, "views": {"v": view, "counts": counts}})
    feed = {"delta.enableChangeDataFeed": "true"}
    for name, rows in (("a", "SELECT id, id % 9 AS n, current_date() AS d FROM range(999)"), ("b", "SELECT id, 'x' AS s FROM range(9)")):
        lake.spark.sql(rows).write.format("delta").options(**feed).save(f"{folder}/{name}")
    lake.refresh_all()
    lake.spark.sql(f"UPDATE delta.`{folder}/a` SET n = n + 1 WHERE id < 99")
    lake.spark.sql(f"DELETE FROM delta.`{folder}/b` WHERE id = 8")
    lake.refresh_all()
    for name in ("v", "counts"):
        lake.verify(name)
        lake.read(name).limit(9).collect()
    lake.status()
    lake.spark.stop()


if __name__ == "__main__":
    if not make(class_archive()):
        print("Classes could not be archived: Spark starts as it does by itself.")
    sys.exit(0)
