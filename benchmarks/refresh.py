"""make bench: a refresh of Nexmark q20 against the query recomputed and written, interleaved in one run.

For each kind of change: medians of CPU seconds (of the whole process tree: driver, executors and Python) and wall seconds of both,
and their ratio. Warm, as in a service that has refreshed before: some unmeasured refreshes of both kinds come first, and one
unmeasured round of each case. Results go to benchmarks/results/refresh.json.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from pathlib import Path

import yaml
from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table

from benchmarks.measure import DATA, measured, save
from examples.delta import write
from examples.nexmark.generator import Nexmark
from lake import Lakehouse, open_lake

_VIEWS = Path(__file__).parent.parent / "examples" / "nexmark" / "lakejoin.yml"


class Bench:
    """Bids and auctions of a given size, the view over them, and the query recomputed beside it."""

    def __init__(self, events: int) -> None:
        shutil.rmtree(DATA, ignore_errors=True)
        config = yaml.safe_load(_VIEWS.read_text()) | {"root": str(DATA), "spark": {"spark.driver.memory": "6g"}}
        self.lake: Lakehouse = open_lake(config)
        self.spark = self.lake.spark
        self.query = config["views"]["q20"]["query"]
        stream = Nexmark()
        for table in ("auction", "bid"):
            rows = getattr(stream, table)(self.spark, 0, events)
            ordered = rows.repartitionByRange(16, "id" if table == "auction" else "auction")
            write(ordered, f"{DATA}/{table}")
        self.bids = self.spark.read.format("delta").load(f"{DATA}/bid").count()
        self.auctions = events // stream.epoch * stream.auctions

    def change(self, kind: str, number: int, step: int) -> None:
        """Raise about `number` bids, in one place (recent auctions) or spread over all."""
        if number == 0:
            return
        table = f"delta.`{DATA}/bid`"
        if kind == "in one place":
            low = self.auctions * 9 // 10
            share = max(1, round(number / (self.bids / self.auctions)))
            where = f"auction BETWEEN {low + step * share} AND {low + (step + 1) * share - 1}"
        else:
            where = f"pmod(xxhash64(auction, bidder, {step}), {max(1, self.bids // number)}) = 0"
        self.spark.sql(f"UPDATE {table} SET price = price + 1 WHERE {where}")

    def recompute(self) -> None:
        """What a user would do instead: the query written whole."""
        self._result().write.format("delta").mode("overwrite").save(f"{DATA}/recomputed")

    def query_alone(self) -> None:
        """The query run, and its rows thrown away."""
        self._result().write.format("noop").mode("overwrite").save()

    def _result(self) -> DataFrame:
        session = self.spark.newSession()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        for table in ("auction", "bid"):
            session.read.format("delta").load(f"{DATA}/{table}").createOrReplaceTempView(table)
        return session.sql(self.query)


WARM_UP = 4
CASES = (("no change", 0), ("in one place", 1_000), ("spread", 1_000), ("spread", 50_000))


def run(events: int, rounds: int) -> list[dict[str, object]]:
    """All cases, `rounds` times each after a warm-up, refresh and recompute taking turns."""
    console = Console()
    bench = Bench(events)
    console.print(f"{bench.bids:,} bids")
    build = measured(bench.spark, lambda: bench.lake.refresh("q20"))
    console.print(f"build: {build[0]:.1f} CPU s, {build[1]:.1f} s")
    results: list[dict[str, object]] = []
    step = 0
    for kind in ("in one place", "spread") * WARM_UP:
        bench.change(kind, 1_000, step)
        step += 1
        bench.lake.refresh("q20")
    bench.recompute()
    for kind, number in CASES:
        ours, theirs, read = [], [], []
        for turn in range(rounds + 1):
            bench.change(kind, number, step)
            step += 1
            outcome = []
            mine = measured(bench.spark, lambda found=outcome: found.append(bench.lake.refresh("q20")))  # type: ignore[misc]
            other = measured(bench.spark, bench.recompute)
            if turn:
                ours.append(mine)
                theirs.append(other)
                read.append(outcome[0].changes_read)
        case = {"case": f"{number:,} changes {kind}" if number else kind, "changes_read": read}
        for name, found in (("refresh", ours), ("recompute", theirs)):
            case[f"{name}_cpu"] = statistics.median(c for c, _ in found)
            case[f"{name}_wall"] = statistics.median(w for _, w in found)
        results.append(case)
        console.print(case)
    assert bench.lake.verify("q20").exact
    console.print(f"state: {bench.lake.state_bytes('q20')} bytes; the view is exact")
    return results


def main() -> int:
    """Print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=6_400_000, help="Nexmark events; about nine tenths are bids")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    results = run(options.events, options.rounds)
    table = Table("case", "refresh CPU s", "recompute CPU s", "ratio", "refresh s", "recompute s")
    for r in results:
        cpu, other = float(str(r["refresh_cpu"])), float(str(r["recompute_cpu"]))
        wall, rewall = float(str(r["refresh_wall"])), float(str(r["recompute_wall"]))
        table.add_row(str(r["case"]), f"{cpu:.1f}", f"{other:.1f}", f"1 / {other / cpu:.1f}", f"{wall:.2f}", f"{rewall:.2f}")
    Console().print(table)
    save("refresh", {"events": options.events, "rounds": options.rounds, "results": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
