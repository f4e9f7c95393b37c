"""make bench: tables of awkward shapes, each refreshed after a change beside the query recomputed and written.

skewed     one auction with a hundredth of all bids: that auction changes, so that all of its bids' rows do; and 1,000 bids of others
wide       200 columns, of which the view reads three
scattered  20,000 files of a few rows each

Warm, one after the other after each change, medians; every view is proved at the end. Results go to benchmarks/results/shapes.json.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.console import Console

from benchmarks.measure import DATA, interleaved, medians, plain_session, save
from examples.delta import write
from lake import Lakehouse, open_lake

_TABLES = ("facts", "dims")
_WARM_UP = 6
_COLUMNS = 200
_CHANGED = 1_000


@dataclass(frozen=True)
class Shape:
    """Two tables, `facts` (id, dim, value, ...) and `dims` (id, name), joined by `dim`; and the updates that are measured, by name.

    `facts`: of a range of ids, the table's rows as they are to be written.
    """

    rows: int
    facts: Callable[[DataFrame], DataFrame]
    changes: dict[str, Callable[[int], tuple[str, str, str]]]


def _near(step: int) -> tuple[str, str, str]:
    low = _CHANGED * (step + 1)
    return "facts", "value = value + 1", f"id BETWEEN {low} AND {low + _CHANGED - 1}"


def _skewed(ids: DataFrame) -> DataFrame:
    dim = F.when(F.col("id") % 100 == 99, -1).otherwise(F.floor(F.col("id") / 50))
    return ids.select("id", dim.alias("dim"), (F.col("id") % 9973).alias("value")).repartitionByRange(16, "dim", "id")


def _wide(ids: DataFrame) -> DataFrame:
    more = [(F.col("id") * n % 1009).alias(f"c{n}") for n in range(_COLUMNS - 3)]
    narrow = ids.select("id", F.floor(F.col("id") / 50).alias("dim"), (F.col("id") % 9973).alias("value"), *more)
    return narrow.repartitionByRange(16, "id")


def _scattered(ids: DataFrame) -> DataFrame:
    return ids.select("id", F.floor(F.col("id") / 50).alias("dim"), (F.col("id") % 9973).alias("value")).repartitionByRange(20_000, "id")


SHAPES = {
    "skewed": Shape(
        5_000_000,
        _skewed,
        {"the auction with 1 % of all bids": lambda step: ("dims", f"name = 'n{step}'", "id = -1"), "1,000 others": _near},
    ),
    "wide": Shape(1_000_000, _wide, {"1,000 rows in one place": _near}),
    "scattered": Shape(2_000_000, _scattered, {"1,000 rows in one place": _near}),
}


class Bench:
    """One shape: its tables, the view over them, and the query as plain Spark writes it."""

    def __init__(self, shape: Shape) -> None:
        shutil.rmtree(DATA, ignore_errors=True)
        DATA.mkdir(parents=True)
        self.query = "SELECT f.id, f.value, d.name FROM facts f JOIN dims d ON f.dim = d.id"
        tables = {name: {"path": name, "primary_key": "id"} for name in _TABLES}
        config: dict[str, Any] = {"root": str(DATA), "spark": {"spark.driver.memory": "6g"}, "tables": tables}
        self.lake: Lakehouse = open_lake(config | {"views": {"v": {"query": self.query}}})
        self.spark, self._step = self.lake.spark, 0
        write(shape.facts(self.spark.range(shape.rows)), f"{DATA}/facts")
        dims = self.spark.range(-1, shape.rows // 50 + 1)
        write(dims.select("id", F.concat(F.lit("d"), F.col("id")).alias("name")).coalesce(2), f"{DATA}/dims")
        self.lake.refresh("v")

    def change(self, what: Callable[[int], tuple[str, str, str]]) -> None:
        self._step += 1
        table, values, where = what(self._step)
        self.spark.sql(f"UPDATE delta.`{DATA}/{table}` SET {values} WHERE {where}")

    def refresh(self) -> None:
        self.lake.refresh("v")

    def recompute(self) -> None:
        plain_session(self.spark, DATA, _TABLES).sql(self.query).write.format("delta").mode("overwrite").save(f"{DATA}/recomputed")

    def measure(self, rounds: int, what: Callable[[int], tuple[str, str, str]]) -> dict[str, Any]:
        """Medians of refresh and recompute, and what one more refresh did."""
        works: dict[str, Callable[[], None]] = {"refresh": self.refresh, "recompute": self.recompute}
        seconds = interleaved(self.spark, works, rounds, before=partial(self.change, what))
        self.change(what)
        looked = self.lake.refresh("v", profile=True)
        assert looked.profile is not None
        found = {name: medians(times) | {"all": times} for name, times in seconds.items()}
        return {**found, "mode": looked.mode, "reason": looked.reason, "profile": looked.profile.to_json()}


def main() -> int:
    """Print the medians and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    options = parser.parse_args()
    console, results = Console(), {}
    for name in options.shapes:
        shape = SHAPES[name]
        bench = Bench(shape)
        for _ in range(_WARM_UP):
            bench.change(_near)
            bench.refresh()
        cases = {case: bench.measure(options.rounds, what) for case, what in shape.changes.items()}
        assert bench.lake.verify("v").exact, f"{name} is not exact"
        results[name] = {"rows": shape.rows, "cases": cases}
        for case, found in cases.items():
            shown = ", ".join(f"{n} {found[n]['cpu']:.2f} CPU s {found[n]['wall']:.2f} s" for n in ("refresh", "recompute"))
            console.print(f"{name}, {case}: {found['mode']}; {shown}")
    save("shapes", {"shapes": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
