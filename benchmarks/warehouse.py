"""python -m benchmarks.warehouse: a warehouse of 49 views refreshed, against plain Spark that recomputes and overwrites all of them.

examples/warehouse, a brokerage by TPC-DI's data model. All views are built, then batch after batch of a hundredth of new rows, updates and
deletes is refreshed (`refresh_all`, one view after the other); plain Spark writes the same queries as Delta tables, in the same order, in a
session of its own with its ordinary settings, in turn with Lakejoin and in the same process. The first batches are not counted, since Java
still compiles for them (benchmarks.warehouse_alone measures these, and the build). CPU and wall seconds of each view; medians by round of
all views, and of each kind (the views' tags in lakejoin.yml). Every view is compared with its query at the end. Results go to
benchmarks/results/warehouse.json after each round (`exact` false: not proved yet). DuckDB is not measured beside: it is not among the
packages of this project.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.measure import DATA, Seconds, measured, medians, plain_session, save
from examples.warehouse.lake import opened, queries
from examples.warehouse.shape import Shape
from examples.warehouse.tables import Warehouse
from lake import Lakehouse
from lake.config.view_sources import one_query
from lake.core.results import RefreshResult

_ROOT = DATA / "warehouse"
_NAME = re.compile(r"\b(?:staging|bronze|silver|gold)\.\w+")


class Measuring(Lakehouse):
    """A lakehouse that notes what each refresh of a view took."""

    took: dict[str, tuple[float, float]]

    def refresh(self, view: str, *args: Any, **options: Any) -> RefreshResult:
        found: list[RefreshResult] = []
        refresh = super().refresh
        self.took[view] = measured(self.spark, lambda: found.append(refresh(view, *args, **options)))
        return found[0]


@dataclass
class Side:
    """What the views took on one side, once for each round."""

    rounds: list[dict[str, tuple[float, float]]] = field(default_factory=list)

    def totals(self, views: Collection[str]) -> Seconds:
        """(CPU, wall) of some views together, by round."""
        return [total(took, views) for took in self.rounds]


def total(took: Mapping[str, tuple[float, float]], views: Collection[str]) -> tuple[float, float]:
    """(CPU, wall) of some views together."""
    return sum(took[view][0] for view in views), sum(took[view][1] for view in views)


class Bench:
    """The source tables at a size, the views over them, and their queries beside."""

    def __init__(self, shape: Shape) -> None:
        shutil.rmtree(_ROOT, ignore_errors=True)
        lake = opened(_ROOT, {"spark.driver.memory": "8g"})
        self.lake = Measuring(lake.config, lake.spark)
        self.spark: SparkSession = lake.spark
        self.session = plain_session(self.spark, _ROOT)
        self.tables = Warehouse(self.spark, _ROOT, shape)
        self.tables.load()
        self.order = self.lake.in_order(self.lake.config.views)
        texts = queries()
        self.plain = {view: one_query(_NAME.sub(lambda found: f"delta.`{self._place(found[0])}`", texts[view])) for view in self.order}
        self.kinds: dict[str, list[str]] = defaultdict(list)
        for view in self.order:
            self.kinds[self.lake.config.view(view).tags[0]].append(view)

    def _place(self, name: str) -> Path:
        """Where plain Spark reads a table: a source where it is, a view where plain Spark wrote it."""
        layer, table = name.split(".")
        return _ROOT / table if layer == "staging" else _ROOT / "recomputed" / layer / table

    def refresh(self) -> tuple[dict[str, tuple[float, float]], list[RefreshResult]]:
        """Refresh all views: what each took, and what was done."""
        self.lake.took = {}
        results = self.lake.refresh_all(parallel=1)
        return self.lake.took, results

    def recompute(self) -> dict[str, tuple[float, float]]:
        """What a user would do instead: each query written whole, after those that it reads."""
        return {view: measured(self.spark, partial(self._write, view)) for view in self.order}

    def _write(self, view: str) -> None:
        self.session.sql(self.plain[view]).write.format("delta").mode("overwrite").save(str(self._place(view)))


@dataclass
class Run:
    """What was measured: of Lakejoin, of plain Spark (empty if it was not run), and what each refresh did."""

    mine: Side = field(default_factory=Side)
    plain: Side = field(default_factory=Side)
    done: dict[str, list[RefreshResult]] = field(default_factory=lambda: defaultdict(list))


def run(options: argparse.Namespace, bench: Bench, found: Run) -> None:
    """Build, then refresh round after round; what was found is kept after each, and proved at the end."""
    console, beside = Console(), options.beside == "spark"
    bench.refresh()
    if beside:
        bench.recompute()
    console.print(f"{len(bench.order)} views built")
    for turn in range(options.warm + options.rounds):
        bench.tables.bring(turn + 2)
        took, results = bench.refresh()
        plain = bench.recompute() if beside else {}
        if turn >= options.warm:
            found.mine.rounds.append(took)
            found.plain.rounds += [plain] if beside else []
            for result in results:
                found.done[result.view].append(result)
            keep(options, bench, found, exact=False)
        console.print(f"batch {turn + 2}: {'measured' if turn >= options.warm else 'warm'}")
    wrong = [view for view in bench.order if not bench.lake.verify(view).exact]
    assert not wrong, f"not exact: {wrong}"
    console.print("all views are exact")


def compared(mine: Seconds, plain: Seconds) -> dict[str, Any]:
    """Medians, and those of the ratios of each round."""
    body: dict[str, Any] = {"refresh": medians(mine)}
    if plain:
        ratios = [[took[at] / other[at] for took, other in zip(mine, plain, strict=True)] for at in (0, 1)]
        body |= {"recompute": medians(plain), "of cpu": statistics.median(ratios[0]), "of wall": statistics.median(ratios[1])}
    return body


def summary(bench: Bench, found: Run) -> dict[str, dict[str, Any]]:
    """By kind of view, and for all."""
    groups = {**bench.kinds, "all": bench.order}
    return {k: {"views": len(views), **compared(found.mine.totals(views), found.plain.totals(views))} for k, views in groups.items()}


def of_view(view: str, found: Run) -> dict[str, Any]:
    """What one view took, and how it was refreshed."""
    results = found.done[view]
    return {
        "modes": [result.mode for result in results],
        "reasons": sorted({result.reason for result in results if result.reason}),
        "changes_read": [result.changes_read for result in results],
        "rows_changed": [result.rows_inserted + result.rows_deleted for result in results],
        **compared(found.mine.totals([view]), found.plain.totals([view])),
    }


def keep(options: argparse.Namespace, bench: Bench, found: Run, exact: bool) -> None:
    """Write what was measured so far."""
    body = {
        "trades": options.trades,
        "warm": options.warm,
        "rounds": len(found.mine.rounds),
        "exact": exact,
        "by kind": summary(bench, found),
    }
    save("warehouse", {**body, "views": {view: of_view(view, found) for view in bench.order}})


def show(bench: Bench, found: Run) -> None:
    """A row for each kind, and what was not incremental."""
    shown = Table("kind", "views", "refresh: CPU s", "s", "recompute: CPU s", "s", "of its CPU")
    for kind, body in summary(bench, found).items():
        beside = body.get("recompute", {})
        numbers = [body["refresh"]["cpu"], body["refresh"]["wall"], beside.get("cpu"), beside.get("wall"), body.get("of cpu")]
        shown.add_row(kind, str(body["views"]), *["" if number is None else f"{number:.2f}" for number in numbers])
    Console().print(shown)
    modes = [result.mode for results in found.done.values() for result in results]
    Console().print(", ".join(f"{mode}: {modes.count(mode)}" for mode in sorted(set(modes))))
    for view, results in found.done.items():
        for reason in sorted({result.reason for result in results if result.mode == "recompute"}):
            Console().print(f"{view} was recomputed: {reason}")


def main() -> int:
    """Print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trades", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=int, default=5, help="batches before them that are not counted")
    parser.add_argument("--beside", choices=("spark", "nothing"), default="spark", help="what recomputes all views after each batch")
    options = parser.parse_args()
    bench, found = Bench(Shape(options.trades)), Run()
    run(options, bench, found)
    show(bench, found)
    keep(options, bench, found, exact=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
