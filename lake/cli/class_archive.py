"""Makes an archive of the classes that a refresh loads, with which a JVM starts in half the time (class data sharing, AppCDS).

A JVM that does the work of a refresh writes the archive as it ends. Later JVMs map it if their class path and Java are the same, and start
as usual if they are not. It is made in a process of its own, which prints a line for each step and is ended if it makes no progress.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from lake.spark.preflight import class_archive
from lake.spark.watched_process import make_once

_STALLED_AFTER = 180
_ENDS = 150
"""Seconds that the JVM may take to end: it writes the archive then."""


def make(archive: Path, on_progress: Callable[[int], None] = lambda size: None, stalled_after: float = _STALLED_AFTER) -> str:
    """Make the archive if it does not exist; return what went wrong in one line, empty if nothing. Those of other classes are removed."""
    return make_once(archive, "lake.cli.class_archive", "classes-*.jsa", on_progress, stalled_after)


def _work(folder: str, options: str) -> None:
    """Run what most commands run, on a small lake."""
    from lake import open_lake

    view = {"query": "SELECT a.id, a.n, b.s FROM a JOIN b ON a.n = b.id"}
    counts = {"query": "SELECT b.s, count(*) AS n, sum(a.n) AS total FROM a LEFT JOIN b ON a.n = b.id GROUP BY b.s"}
    tables = {"a": {"path": "a", "primary_key": "id"}, "b": {"path": "b", "primary_key": "id"}}
    settings = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": options}
    lake = open_lake({"root": folder, "spark": settings, "tables": tables, "views": {"v": view, "counts": counts}})
    feed = {"delta.enableChangeDataFeed": "true"}
    for name, rows in (("a", "SELECT id, id % 9 AS n, current_date() AS d FROM range(999)"), ("b", "SELECT id, 'x' AS s FROM range(9)")):
        lake.spark.sql(rows).write.format("delta").options(**feed).save(f"{folder}/{name}")
    print("tables written", flush=True)
    lake.refresh_all()
    print("views built", flush=True)
    lake.spark.sql(f"UPDATE delta.`{folder}/a` SET n = n + 1 WHERE id < 99")
    lake.spark.sql(f"DELETE FROM delta.`{folder}/b` WHERE id = 8")
    lake.refresh_all()
    print("views refreshed", flush=True)
    for name in ("v", "counts"):
        lake.verify(name)
        lake.read(name).limit(9).collect()
    lake.status()
    print("views verified", flush=True)
    lake.spark.stop()


def _write(part: str) -> None:
    """Do the work in a JVM that writes the archive when it ends."""
    from lake.spark.driver_process import end_jvm

    with tempfile.TemporaryDirectory() as folder:
        _work(folder, f"-XX:ArchiveClassesAtExit={part} -Xlog:disable")
        end_jvm(_ENDS)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _write(sys.argv[1])
    elif problem := make(class_archive()):
        print(f"The class archive can't be made ({problem}). Spark works without it, and starts slower.")
