"""python -m benchmarks.checks: what it costs to hold a view against its query, beside the query alone; interleaved in one run.

Medians of CPU seconds and wall seconds of: the query run and thrown away; the exactness check of the whole view; that of one of 64 parts of
its keys. For q20, and for a narrower view, both of as many rows as there are bids.
Results go to benchmarks/results/checks.json.
"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console
from rich.table import Table

from benchmarks.measure import interleaved, medians, save
from benchmarks.nexmark import Bench
from lake.operations.verify import Share

PARTS = 64
VIEWS = ("q20", "sellers")


def run(bench: Bench, view: str, rounds: int) -> dict[str, dict[str, float]]:
    """All three, `rounds` times each after one that is not counted."""
    bench.lake.refresh(view)
    works = {
        "query": lambda: bench.result(view).write.format("noop").mode("overwrite").save(),
        "whole": lambda: bench.lake.verify(view),
        f"1/{PARTS}": lambda: bench.lake.verify(view, Share(7, PARTS)),
    }
    found = interleaved(bench.spark, works, rounds)
    proved = bench.lake.verify(view)
    assert proved.exact
    return {name: {**medians(times), "bids": bench.bids, "rows": proved.rows} for name, times in found.items()}


def main() -> int:
    """Print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=6_500_000, help="Nexmark events; about four fifths become bids")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    bench = Bench(options.events, list(VIEWS))
    results = {view: run(bench, view, options.rounds) for view in VIEWS}
    table = Table("view", "rows", "what", "CPU s", "of the query's", "s", "of the query's")
    for view, found in results.items():
        base = found["query"]
        for name, r in found.items():
            spent = [text for of in ("cpu", "wall") for text in (f"{r[of]:.1f}", f"{r[of] / base[of]:.2f}")]
            table.add_row(view, f"{r['rows']:,.0f}", name, *spent)
    Console().print(table)
    save("checks", {"events": options.events, "rounds": options.rounds, "results": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
