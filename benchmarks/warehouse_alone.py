"""python -m benchmarks.warehouse_alone: the warehouse of 49 views, each side in new processes of its own.

benchmarks.warehouse measures both sides in one warm process. Here a new process builds the views with Lakejoin and refreshes them batch by
batch; then a new process runs all queries with plain Spark at the same points and overwrites their tables. This is repeated in turns, so
each side starts without compiled code. The seconds are those of `refresh_all` or of the queries, without the start of Spark. Medians over
the turns, for the build and for each batch: CPU seconds, seconds, and shares of plain Spark's. Results go to
benchmarks/results/warehouse_alone.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Seconds, save
from benchmarks.warehouse import Bench, compared, total
from examples.warehouse.shape import Shape

_SIDES = ("lakejoin", "spark")


def side(name: str, trades: int, batches: int) -> Seconds:
    """(CPU, wall) of the build and of each batch after it, in this process."""
    bench = Bench(Shape(trades))

    def once() -> tuple[float, float]:
        return total(bench.refresh()[0] if name == "lakejoin" else bench.recompute(), bench.order)

    found = [once()]
    for turn in range(batches):
        bench.tables.bring(turn + 2)
        found.append(once())
    return found


def apart(name: str, trades: int, batches: int) -> Seconds:
    """The same in a process of its own, which says it in its last line."""
    command = [sys.executable, "-m", "benchmarks.warehouse_alone", "--side", name, "--trades", str(trades), "--batches", str(batches)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [(cpu, wall) for cpu, wall in json.loads(done.stdout.splitlines()[-1])]


def show(steps: dict[str, dict[str, Any]]) -> None:
    """A row for the build and for each batch."""
    shown = Table("", "refresh: CPU s", "s", "recompute: CPU s", "s", "of its CPU")
    for name, body in steps.items():
        mine, plain = body["refresh"], body["recompute"]
        numbers = [mine["cpu"], mine["wall"], plain["cpu"], plain["wall"], body["of cpu"]]
        shown.add_row(name, *[f"{number:.2f}" for number in numbers])
    Console().print(shown)


def main() -> int:
    """Print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trades", type=int, default=50_000)
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--turns", type=int, default=3, help="processes of each side")
    parser.add_argument("--side", choices=_SIDES, help="measure one side in this process, and print its seconds as JSON")
    options = parser.parse_args()
    if options.side:
        print(json.dumps(side(options.side, options.trades, options.batches)))
        return 0
    turns = []
    for turn in range(options.turns):
        turns.append({name: apart(name, options.trades, options.batches) for name in _SIDES})
        Console().print(f"turn {turn + 1} of {options.turns}")
    names = ["build", *(f"batch {number + 1}" for number in range(options.batches))]
    steps = {name: compared(*([turn[one][at] for turn in turns] for one in _SIDES)) for at, name in enumerate(names)}
    show(steps)
    save("warehouse_alone", {"trades": options.trades, "turns": options.turns, "steps": steps})
    return 0


if __name__ == "__main__":
    sys.exit(main())
