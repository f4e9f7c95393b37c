"""make bench: the query of a view is edited, and its table brought to the edited query by `apply`, beside a rebuild of the same view.

Nexmark's q20 (bids with their auctions). Of each edit: `apply` from the first query, and `rebuild` from it, in turn; in between the view
goes back to the first query, which is not counted. Medians; every edited view is proved. Results go to benchmarks/results/edits.json.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from benchmarks.measure import DATA, interleaved, medians, save
from examples.delta import write
from examples.nexmark.generator import Nexmark
from lake import Lakehouse, open_lake

_EXAMPLE = Path(__file__).parent.parent / "examples/nexmark/lakejoin.yml"
EDITS: dict[str, Callable[[str], str]] = {
    "written in another way": lambda query: query.replace("b.auction = a.id", "a.id = b.auction AND b.auction = a.id"),
    "a column dropped": lambda query: query.replace(", a.extra AS auction_extra", ""),
    "a condition more": lambda query: f"{query} WHERE a.category <> 10",
    "a column computed": lambda query: query.replace("a.item_name", "b.price * 0.908 AS euros, a.item_name"),
    "a bound moved": lambda query: f"{query} WHERE b.price > 1000000",
    "another join": lambda query: query.replace("b JOIN", "b LEFT JOIN"),
}
"""The first query is q20; of "a bound moved", q20 with a bound a hundredth lower."""


class Bench:
    """A lake of some events, and the lakehouse of one view with any query over them."""

    def __init__(self, events: int) -> None:
        self.root = DATA / f"edits-{events}"
        self.settings: dict[str, Any] = yaml.safe_load(_EXAMPLE.read_text())
        self.query: str = self.settings["views"]["q20"]["query"].strip()
        self.lake = self.opened(self.query)
        self.spark = self.lake.spark
        if not (self.root / "bid").exists():
            for table in ("auction", "bid"):
                write(getattr(Nexmark(), table)(self.spark, 0, events), self.lake.config.source_path(table))
        shutil.rmtree(self.root / "views", ignore_errors=True)

    def opened(self, query: str) -> Lakehouse:
        views = {"q20": {**self.settings["views"]["q20"], "query": query}}
        spark = self.lake.spark if hasattr(self, "lake") else None
        memory = {"spark.driver.memory": "8g"}
        return open_lake({**self.settings, "root": str(self.root), "views": views, "spark": memory}, spark=spark)


def main() -> int:
    """Print the medians and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    bench, console, results = Bench(options.events), Console(), {}
    for name, edit in EDITS.items():
        moved = name == "a bound moved"
        first = bench.opened(f"{bench.query} WHERE b.price > 990000" if moved else bench.query)
        edited = bench.opened(edit(bench.query))
        first.rebuild("q20") if (bench.root / "views").exists() else first.refresh("q20")
        how = next(view.how or view.action for view in edited.plan().views)

        def back(first: Lakehouse = first) -> None:
            first.rebuild("q20")

        def apply(edited: Lakehouse = edited) -> None:
            (done,) = edited.apply()
            assert done.mode != "none"

        def rebuild(edited: Lakehouse = edited) -> None:
            edited.rebuild("q20")

        works = {"apply": apply, "back": back, "rebuild": rebuild, "and back": back}
        seconds = interleaved(bench.spark, works, options.rounds)
        apply()
        assert edited.verify("q20").exact, name
        cost = {way: medians(seconds[way]) for way in ("apply", "rebuild")}
        ratio = cost["apply"]["cpu"] / cost["rebuild"]["cpu"]
        results[name] = {"how": how, "seconds": seconds, "ratio": ratio}
        console.print(
            f"{name} ({how}): apply {cost['apply']['cpu']:.1f} CPU s, {cost['apply']['wall']:.1f} s; rebuild {cost['rebuild']['cpu']:.1f} "
            f"CPU s, {cost['rebuild']['wall']:.1f} s; ratio {ratio:.2f}"
        )
    save("edits", {"events": options.events, "rounds": options.rounds, "edits": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
