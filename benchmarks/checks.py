"""python -m benchmarks.checks: what it costs to hold a view against its query, beside the query alone; interleaved in one run.

Medians of CPU seconds and wall seconds of: the query run and thrown away; the exactness check of the whole view; that of one of 64 parts of
its keys.
Results go to benchmarks/results/checks.json.
"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console
from rich.table import Table

from benchmarks.measure import interleaved, medians, save
from benchmarks.nexmark import Bench
from lake.verify import Share

PARTS = 64


def run(events: int, rounds: int) -> dict[str, dict[str, float]]:
    """All three, `rounds` times each after one that is not counted."""
    bench = Bench(events, ["q20"])
    bench.lake.refresh("q20")
    works = {
        "query": lambda: bench.result("q20").write.format("noop").mode("overwrite").save(),
        "whole": lambda: bench.lake.verify("q20"),
        f"1/{PARTS}": lambda: bench.lake.verify("q20", Share(7, PARTS)),
    }
    found = interleaved(bench.spark, works, rounds)
    assert bench.lake.verify("q20").exact
    return {name: {**medians(times), "bids": bench.bids} for name, times in found.items()}


def main() -> int:
    """Print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_500_000, help="Nexmark events; about nine tenths are bids")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    results = run(options.events, options.rounds)
    table = Table("what", "CPU s", "of the query's", "s", "of the query's")
    for name, r in results.items():
        base = results["query"]
        table.add_row(name, f"{r['cpu']:.1f}", f"{r['cpu'] / base['cpu']:.2f}", f"{r['wall']:.1f}", f"{r['wall'] / base['wall']:.2f}")
    Console().print(table)
    save("checks", {"events": options.events, "rounds": options.rounds, "results": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
