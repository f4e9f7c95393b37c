"""make demo-realtime: shows both paths of q20 in the terminal while Nexmark writes, and compares them at the end.

The generator inserts, raises and withdraws bids, and inserts and changes auctions. The real-time path follows; the strong path is refreshed
every fifteen seconds. Before and after each refresh, the demo counts the rows in which the two differ.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.live import Live
from rich.table import Table

from examples.nexmark.generator import Nexmark
from examples.nexmark.writer import Writer, make_tables
from lake import Lakehouse, open_lake
from lake.core.formatting import path_texts
from lake.realtime.metrics import Metrics
from lake.realtime.run import RealtimePath

CONFIG = Path(__file__).with_name("lakejoin.yml")
VIEW = "q20"
_REFRESHED_EVERY = 15.0


class StrongPath(threading.Thread):
    """Refreshes the view periodically, and counts the rows in which the two paths differ before and after."""

    def __init__(self, lake: Lakehouse) -> None:
        super().__init__(name="strong", daemon=True)
        self.lake, self.refreshes = lake, 0
        self.ahead: int | None = None
        self.behind: int | None = None
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(_REFRESHED_EVERY):
            self.ahead = differing(self.lake)
            self.lake.refresh(VIEW)
            self.refreshes += 1
            self.behind = differing(self.lake)


def differing(lake: Lakehouse) -> int:
    """The number of rows that only one path has."""
    strong, eventual = lake.read(VIEW), lake.read(VIEW, consistency="eventual")
    return strong.exceptAll(eventual).count() + eventual.exceptAll(strong).count()


def shown(metrics: Metrics, writer: Writer, strong: StrongPath) -> Table:
    """The current state of both paths as a table."""
    table = Table("what", "now", title="q20 in real time, while Nexmark writes", title_justify="left", header_style="bold", min_width=70)
    texts = path_texts(metrics.to_json())
    rows: dict[str, Any] = {
        "events written": f"{writer.written:,} ({writer.rate:,} a second{f', {writer.late:.0f} s late' if writer.late > 1 else ''})",
        "latency p50 / p95 / p99": texts["latency"],
        "batches": f"{metrics.batches:,}, the last took {metrics.batch_seconds:.1f} s",
        "changed rows in / view rows out": f"{metrics.rows_in:,} / {metrics.rows_out:,}",
        "rows in the current batch": f"{metrics.in_flight_rows:,}",
        "versions that wait for the next batch": f"{metrics.backlog_versions:,}",
        "cache hits": texts["hits"] or "-",
        "strong path": f"{strong.refreshes} refreshes",
        "differing rows before / after a refresh": f"{_dash(strong.ahead)} / {_dash(strong.behind)}",
    }
    for name, value in rows.items():
        table.add_row(name, str(value))
    return table


def _dash(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def main(arguments: list[str]) -> int:
    """Run the demo; returns 0 if both paths are equal and exact at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="events before the stream begins")
    parser.add_argument("--rate", type=int, default=1_000, help="events a second")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=42)
    options = parser.parse_args(arguments)
    console = Console()
    settings = yaml.safe_load(CONFIG.read_text())
    root = (CONFIG.parent / settings["root"]).resolve().with_name("realtime")
    settings["views"][VIEW]["realtime"] = True
    lake, stream = open_lake({**settings, "root": str(root)}), Nexmark(seed=options.seed)
    shutil.rmtree(root, ignore_errors=True)
    console.print(f"Creating a lake of {options.events:,} events in {root}")
    make_tables(lake.spark, stream, options.events, root)
    lake.refresh(VIEW)
    writer = Writer(root, stream, options.events, options.rate, options.seconds)
    writer.prepare(lake.spark)
    return _live(lake, writer, console)


def _live(lake: Lakehouse, writer: Writer, console: Console) -> int:
    stop, eventual, strong = threading.Event(), lake.on("eventual"), StrongPath(lake)
    eventual.refresh(VIEW)
    path = RealtimePath(eventual, VIEW, stop)
    running = threading.Thread(target=path.run, daemon=True)
    for thread in (running, strong, writer):
        thread.start()
    with Live(console=console, refresh_per_second=2, get_renderable=lambda: shown(path.metrics, writer, strong)):
        while writer.is_alive() and running.is_alive():
            writer.join(0.2)
        for thread in (writer, strong):
            thread.ended.set()
            thread.join()
        stop.set()
        running.join()
    console.print("The writer has ended. Draining the real-time path, refreshing the strong path, comparing both:")
    last = RealtimePath(eventual, VIEW, threading.Event(), drain=True)
    last.run()
    lake.refresh(VIEW)
    left, exact = differing(lake), all(found.verify(VIEW).exact for found in (lake, eventual))
    error = path.metrics.error or last.metrics.error
    proof = "exact" if exact else "NOT EXACT"
    console.print(f"  {error}" if error else f"  {left:,} rows differ; each against the query run from scratch: {proof}")
    return 0 if not error and left == 0 and exact and writer.written == writer.rate * writer.seconds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
