"""make bench: a table's changes read from its change data feed against read from the files that its commits moved (decision 9).

TPC-H's line items, four columns; 0.1 % of the orders' come and go in a step of two commits (an INSERT, a DELETE with deletion vectors). The
changes of the last step, and of all steps at once, read both ways in turn, warm. Medians; results go to benchmarks/results/changes.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame
from rich.console import Console

from benchmarks.measure import interleaved, medians, save
from benchmarks.tpch import Bench
from lake.delta.file_changes import file_changes, rows, rows_of_feed
from lake.delta.log import Log
from lake.spark import zset

_COLUMNS = ("l_orderkey", "l_extendedprice", "l_discount", "l_shipdate")


def _count(read: Callable[[int], DataFrame], since: int, into: set[int]) -> None:
    into.add(zset.consolidate(read(since)).count())


def main() -> int:
    """Print the medians and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    bench, console = Bench(options.scale, []), Console()
    for step in range(options.steps):
        bench.change(0.001, step)
    pinned = Log(bench.spark, bench.lake.config.source_path("lineitem")).head()
    ways: dict[str, Callable[[int], DataFrame]] = {
        "feed": lambda since: rows_of_feed(pinned, since, _COLUMNS),
        "files": lambda since: rows(pinned, file_changes(pinned, since), _COLUMNS),
    }
    results = {}
    for commits in (2, pinned.version.number):
        since, found = pinned.version.number - commits, set[int]()
        works = {way: partial(_count, read, since, found) for way, read in ways.items()}
        seconds = interleaved(bench.spark, works, options.rounds)
        assert len(found) == 1, f"not the same: {found}"
        cpu = {way: medians(times)["cpu"] for way, times in seconds.items()}
        results[str(commits)] = {"changes": found.pop(), "seconds": seconds, "ratio": cpu["files"] / cpu["feed"]}
        console.print(f"{commits} commits: feed {cpu['feed']:.1f}, files {cpu['files']:.1f} CPU s, ratio {cpu['files'] / cpu['feed']:.2f}")
    save("changes", {"scale": options.scale, "commits": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
