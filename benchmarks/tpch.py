"""make bench: TPC-H's 22 queries as views, refreshed, against the queries recomputed and written.

Orders and their line items come and go by the standard's two refresh functions: of each change half are new ones, half are deleted.
Every query is refreshed, refreshed as a view that must be incremental, and recomputed after every change, one after the other in one
session, warm (a change comes first that is not measured). Medians of CPU and wall seconds, ratios, and the share of changed rows at which
an incremental refresh and a recompute cost the same: measured, between the shares of changes, and by Lakejoin's own estimate, from which
on it recomputes (lookups not counted). Results go to benchmarks/results/tpch.json, or tpch-SCALE.json at another scale than 1, after each
round (`exact` false: not proved yet), so that a run that is cut short is not lost.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

import yaml
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.measure import DATA, measured, plain_session, save
from examples.tpch.tables import TABLES, Tpch, generate
from lake import Lakehouse, open_lake
from lake.config.view_sources import one_query
from lake.core.results import RefreshResult

_ROOT = DATA / "tpch"
_CONFIG = Path(__file__).parent.parent / "examples" / "tpch" / "lakejoin.yml"


def _forced(query: str) -> str:
    return f"{query}_incremental"


@dataclass
class Case:
    """One query at one share of changes: (CPU, wall) seconds of each refresh, of each that must be incremental (none for a query that can't
    be), and of each recompute; and how it was refreshed."""

    refresh: list[tuple[float, float]] = field(default_factory=list)
    incremental: list[tuple[float, float]] = field(default_factory=list)
    recompute: list[tuple[float, float]] = field(default_factory=list)
    modes: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def cpu(self, which: str) -> float:
        return statistics.median(cpu for cpu, _ in getattr(self, which))

    def wall(self, which: str) -> float:
        return statistics.median(wall for _, wall in getattr(self, which))

    def ratio(self, which: str = "refresh") -> float:
        """CPU of a refresh as a share of that of a recompute."""
        return self.cpu(which) / self.cpu("recompute")


class Bench:
    """The tables at a scale factor, the views over them, and the queries beside."""

    def __init__(self, scale: float, queries: list[str]) -> None:
        shutil.rmtree(_ROOT, ignore_errors=True)
        _ROOT.mkdir(parents=True)
        config = yaml.safe_load(_CONFIG.read_text())
        self.texts = {q: (_CONFIG.parent / v["query_file"]).read_text() for q, v in config["views"].items() if q in queries}
        views: dict[str, dict[str, str]] = {q: {"query": text} for q, text in self.texts.items()}
        views |= {_forced(q): {"query": text, "refresh_mode": "incremental"} for q, text in self.texts.items()}
        settings = {**config, "root": str(_ROOT), "views": views, "spark": {"spark.driver.memory": "8g"}}
        self.lake: Lakehouse = open_lake(settings)
        self.spark: SparkSession = self.lake.spark
        generate(_ROOT / "parquet", scale)
        self.tables = Tpch(self.spark, _ROOT)
        self.tables.load(_ROOT / "parquet", files=16)
        self.forced = {q for q in self.texts if self.lake.explain(q).incremental}

    def change(self, share: float, step: int) -> None:
        self.tables.insert_orders(share / 2, step)
        self.tables.delete_orders(share / 2, step)

    def recompute(self, query: str) -> None:
        """What a user would do instead: the query written whole."""
        session = plain_session(self.spark, _ROOT, TABLES)
        session.sql(one_query(self.texts[query])).write.format("delta").mode("overwrite").save(str(_ROOT / "recomputed" / query))

    def estimated(self, query: str) -> float | None:
        """The share of the changing tables' rows from which on a refresh gives way, by estimate."""
        found = self.lake.explain(query)
        changing = [table for table in ("orders", "lineitem") if table in found.sources]
        rows = sum(self.spark.read.format("delta").load(str(_ROOT / table)).count() for table in changing)
        return found.most_changes / rows if rows and found.most_changes is not None else None

    def turn(self, query: str, case: Case | None) -> None:
        """Refresh and recompute a query, noted where there is a case to note it in."""
        outcome: list[RefreshResult] = []
        mine = measured(self.spark, lambda: outcome.append(self.lake.refresh(query)))
        if query in self.forced:
            forced = measured(self.spark, lambda: outcome.append(self.lake.refresh(_forced(query))))
            if case is not None:
                case.incremental.append(forced)
        other = measured(self.spark, lambda: self.recompute(query))
        if case is not None:
            case.refresh.append(mine)
            case.recompute.append(other)
            case.modes.append(outcome[0].mode)
            case.reasons.append(outcome[0].reason)


@dataclass(frozen=True)
class Run:
    """The cases by share and query, and by query the share from which on a refresh gives way by estimate."""

    results: dict[float, dict[str, Case]]
    estimates: dict[str, float | None]


def run(options: argparse.Namespace) -> Run:
    """All queries at all shares; the views are proved at the end."""
    console, bench = Console(), Bench(options.scale, options.queries)
    shares = options.shares
    for query in bench.texts:
        console.print(f"{query} built in {bench.lake.refresh(query).seconds:.1f} s")
        if query in bench.forced:
            bench.lake.refresh(_forced(query))
    results: dict[float, dict[str, Case]] = {share: defaultdict(Case) for share in shares}
    estimates = {query: bench.estimated(query) for query in bench.texts}
    for step, share in enumerate([shares[0], *[s for s in shares for _ in range(options.rounds)]]):
        bench.change(share, step)
        for query in bench.texts:
            bench.turn(query, results[share][query] if step else None)
        console.print(f"{share:.1%} changed: {'measured' if step else 'warm'}")
        keep(Run(results, estimates), options, exact=False)
    views = [*bench.texts, *map(_forced, sorted(bench.forced))]
    wrong = [view for view in views if not bench.lake.verify(view).exact]
    assert not wrong, f"not exact: {wrong}"
    console.print("all views are exact")
    return Run(results, estimates)


def keep(found: Run, options: argparse.Namespace, exact: bool) -> None:
    """Write what was measured so far."""
    body = {
        str(share): {q: {**asdict(c), "ratio": c.ratio()} for q, c in cases.items() if c.refresh} for share, cases in found.results.items()
    }
    save(
        "tpch" if options.scale == 1 else f"tpch-{options.scale:g}",
        {"scale": options.scale, "rounds": options.rounds, "exact": exact, "results": body, "gives_way_at_share": found.estimates},
    )


def crossing(cases: dict[float, Case]) -> str:
    """The share at which an incremental refresh costs what a recompute does (log-linear between the shares measured)."""
    if set(next(iter(cases.values())).modes) == {"none"}:
        return ""
    points = [(math.log(share), math.log(case.ratio("incremental"))) for share, case in sorted(cases.items()) if case.incremental]
    if not points:
        return ""
    if points[0][1] >= 0:
        return f"< {math.exp(points[0][0]):.1%}"
    for (x0, y0), (x1, y1) in pairwise(points):
        if y0 < 0 <= y1:
            return f"{math.exp(x0 + (x1 - x0) * -y0 / (y1 - y0)):.1%}"
    return f"> {math.exp(points[-1][0]):.1%}"


def show(measured_run: Run) -> None:
    """A table a share, with the geometric mean."""
    for share, cases in measured_run.results.items():
        head = ("query", "mode", "refresh", "incremental", "recompute", "ratio", "seconds", "recompute", "crosses", "by estimate")
        table = Table(*head, title=f"{share:.1%} changed: CPU seconds and their ratio, wall seconds")
        for query, case in cases.items():
            forced = f"{case.cpu('incremental'):.2f}" if case.incremental else ""
            cells = [f"{case.cpu('refresh'):.2f}", forced, f"{case.cpu('recompute'):.2f}", f"{case.ratio():.2f}"]
            walls = [f"{case.wall(which):.2f}" for which in ("refresh", "recompute")]
            estimated = measured_run.estimates[query]
            cross = crossing({s: found[query] for s, found in measured_run.results.items()})
            modes = "/".join(dict.fromkeys(case.modes))
            table.add_row(query, modes, *cells, *walls, cross, "" if estimated is None else f"{estimated:.2%}")
        Console().print(table)
        mean = statistics.geometric_mean(case.ratio() for case in cases.values())
        cheaper = sum(case.ratio() < 1 for case in cases.values())
        Console().print(f"{share:.1%} changed: geometric mean of CPU {mean:.2f} of recomputing; cheaper: {cheaper} of {len(cases)}")


def main() -> int:
    """Print the tables and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.001, 0.01, 0.1])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--queries", nargs="+", default=[f"q{n:02}" for n in range(1, 23)])
    options = parser.parse_args()
    found = run(options)
    show(found)
    keep(found, options, exact=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
