"""python -m benchmarks.parallel: many small views refreshed one after the other, and side by side; in turn, in one run.

24 views of one to three tables of 20,000 rows. Before each refresh of all, 20 rows of each table are updated and five inserted. Medians of
wall seconds and CPU seconds, and of each round's ratio to one view after the other.
Results go to benchmarks/results/parallel.json.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Seconds, measured, medians, save
from lake import Lakehouse, open_lake
from lake.spark.session import make_session

ROWS = 20_000
TABLES = ("a", "b", "c")
SHAPES = (
    "SELECT id, g, v * {n} AS scaled FROM a WHERE v > {n}",
    "SELECT g, sum(v) AS total, count(*) AS n, {n} AS shape FROM a GROUP BY g",
    "SELECT a.id, a.v, b.v + {n} AS of_b FROM a JOIN b ON a.id = b.id",
    "SELECT a.id, a.v, b.v + {n} AS of_b FROM a LEFT JOIN b ON a.id = b.id AND b.v > {n}",
    "SELECT a.id, b.v AS of_b, c.v + {n} AS of_c FROM a JOIN b ON a.id = b.id JOIN c ON b.id = c.id",
    "SELECT id, g, v FROM c WHERE v > {n} AND NOT EXISTS (SELECT 1 FROM b WHERE b.id = c.id AND b.v > c.v)",
)


def views(number: int) -> dict[str, dict[str, str]]:
    """So many views, each shape as often as another, no two of them equal."""
    return {f"v{i}": {"query": SHAPES[i % len(SHAPES)].format(n=i)} for i in range(number)}


def opened(spark: SparkSession, root: Path, number: int) -> Lakehouse:
    """A lake of the tables and so many views, which are built."""
    for table in TABLES:
        frame = spark.sql(f"SELECT id, id % 500 AS g, (id * 7919) % 1000 AS v FROM range({ROWS})")
        frame.coalesce(1).write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(root / table))
    tables = {table: {"path": table, "primary_key": "id"} for table in TABLES}
    lake = open_lake({"root": str(root), "tables": tables, "views": views(number)}, spark)
    lake.refresh_all()
    return lake


def changes(spark: SparkSession, root: Path) -> Iterator[None]:
    """Change some rows of each table, as often as asked."""
    turn = 0
    while True:
        turn += 1
        for table in TABLES:
            place, first = f"delta.`{root / table}`", turn * 20 % (ROWS - 20)
            spark.sql(f"UPDATE {place} SET v = (v + 17) % 1000 WHERE id >= {first} AND id < {first + 20}")
            new = ROWS + 5 * turn
            spark.sql(f"INSERT INTO {place} SELECT id, id % 500, id % 1000 FROM range({new}, {new + 5})")
        yield


def run(spark: SparkSession, lake: Lakehouse, root: Path, rounds: int, many: int) -> dict[int, Seconds]:
    """(CPU, wall) by the number of views at once, round after round after one that is not counted."""
    found: dict[int, Seconds] = {1: [], many: []}
    change = changes(spark, root)
    for turn in range(rounds + 1):
        for parallel, times in found.items():
            next(change)
            took = measured(spark, lambda n=parallel: lake.refresh_all(parallel=n))  # type: ignore[misc]
            if turn:
                times.append(took)
    return found


def compared(times: Seconds, one: Seconds) -> dict[str, Any]:
    """The medians, those of the ratios to the rounds of one view after the other, and each round."""
    cpu, wall = ([took[at] / other[at] for took, other in zip(times, one, strict=True)] for at in (0, 1))
    ratios = {"of cpu": statistics.median(cpu), "of wall": statistics.median(wall), "wall ratios": wall}
    return {**medians(times), **ratios, "rounds": times}


def main() -> int:
    """Print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--views", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parallel", type=int, default=2, help="how many views at once")
    parser.add_argument("--fair", action="store_true", help="with spark.scheduler.mode=FAIR")
    options = parser.parse_args()
    spark = make_session({"spark.scheduler.mode": "FAIR"} if options.fair else {})
    with tempfile.TemporaryDirectory() as folder:
        lake = opened(spark, Path(folder), options.views)
        found = run(spark, lake, Path(folder), options.rounds, options.parallel)
        assert all(lake.verify(view).exact for view in list(lake.config.views)[: len(SHAPES)])
    results = {str(parallel): compared(times, found[1]) for parallel, times in found.items()}
    shown = Table("views at once", "s", "of one's", "least and most", "CPU s", "of one's")
    for name, r in results.items():
        between = f"{min(r['wall ratios']):.2f}-{max(r['wall ratios']):.2f}"
        shown.add_row(name, f"{r['wall']:.1f}", f"{r['of wall']:.2f}", between, f"{r['cpu']:.1f}", f"{r['of cpu']:.2f}")
    Console().print(shown)
    save("parallel", {"views": options.views, "rounds": options.rounds, "fair": options.fair, "results": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
