"""make bench-realtime: Nexmark's q20 followed in real time while it is written, measured from outside.

Each case has a lake of its own, a copy of the same base, and one follower, a process of its own. The writer's commits (by delta-rs) are
recorded before, and put there second by second (benchmarks/replay.py); with `--live` they are written beside the follower, on the same
cores. The cases: 1,000 events a second for ten minutes; for two minutes with the cache on and off; higher rates; and Spark's own
stream-stream join on the same stream. Latency is taken from the logs: of each commit of a source, how long until a commit of the
view was there that had processed it. The first minute, while the follower's JVM is cold, is told apart. Afterwards every lake's real-time
table is verified. Results go to benchmarks/results/realtime.json after each case; `python -m benchmarks.plots` draws them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from benchmarks.followers import Follower
from benchmarks.measure import DATA, RESULTS, save_to
from benchmarks.replay import Replay
from benchmarks.streams import BIN, SOURCES, Stream, cold, commits, newest, reached, realtime_table
from examples.nexmark.generator import Nexmark
from examples.nexmark.realtime import CONFIG, VIEW
from examples.nexmark.writer import Writer, make_tables
from lake import Lakehouse, open_lake
from lake.core.constants import LEASE_FOLDER
from lake.realtime.metrics import quantile
from lake.realtime.table_maintenance import TableMaintenance
from lake.spark.session import own_session

_ROOT = DATA / "realtime"
_BATCH_STANDS_FOR = 1_200.0
_DAYS = 4
CASES = ("steady", "cache", "rates", "stream_join", "day")


class Bench:
    """The base lake: events, the view built. Each case gets a copy."""

    def __init__(self, events: int, seed: int, live: bool = False) -> None:
        shutil.rmtree(_ROOT, ignore_errors=True)
        self.events, self.stream, self.live = events, Nexmark(seed=seed), live
        base = _ROOT / "base"
        lake = open_lake({**self._config(base), "spark": {"spark.driver.memory": "2g"}})
        self.spark = lake.spark
        make_tables(self.spark, self.stream, events, base)
        lake.refresh(VIEW)

    def path(self, name: str, rate: int, seconds: int, **realtime: Any) -> dict[str, Any]:
        """The real-time path beside the writer."""
        lake = self._fresh(name, realtime or True)
        follower = Follower(
            [sys.executable, "-m", "lake.cli", "--config", str(lake / "lakejoin.yml"), "realtime", VIEW, "--json"], lake / "log.txt"
        )
        writer = self._writer(lake, rate, seconds, self.live)
        with follower:
            self._until(follower, lambda: bool(reached(lake)))
            started, ended, drained = self._run(follower, writer, lambda: reached(lake) == newest(lake))
        lines = [json.loads(line) for line in (lake / "log.txt").read_text().splitlines() if line.startswith("{")]
        exact = self.eventual(lake).verify(VIEW).exact
        assert exact, f"{name}: the real-time table is not exact"
        table = realtime_table(lake)
        lease = sum(f.stat().st_size for f in (table / LEASE_FOLDER).glob("*"))
        state = len(next(commits(table, newest_first=True)).metadata or "") + lease
        return {
            **self._watched(lake, follower, writer, started, ended, drained),
            **Stream.of(lake).summary(started, ended),
            "batches": lines[-1]["batches"],
            "hit_rates": lines[-1]["hit_rates"],
            "failures": lines[-1]["failures"],
            "state_bytes": state,
            "exact": exact,
        }

    def stream_join(self, rate: int, seconds: int) -> dict[str, Any]:
        """Spark's stream-stream join beside the writer; its CPU is counted from when it has read the base."""
        lake = self._fresh("stream_join", True)
        checkpoint = lake / "checkpoint"
        places = [str(lake), str(checkpoint), str(lake / "joined")]
        follower = Follower([sys.executable, "-m", "benchmarks.streamjoin", *places], lake / "log.txt")
        writer = self._writer(lake, rate, seconds, self.live)
        with follower:
            self._until(follower, lambda: _read(checkpoint, lake))
            started, ended, drained = self._run(follower, writer, lambda: _read(checkpoint, lake))
        progress = json.loads((checkpoint / "progress.json").read_text())
        return {
            **self._watched(lake, follower, writer, started, ended, drained),
            "state_bytes": sum(f.stat().st_size for f in (checkpoint / "state").rglob("*") if f.is_file()),
            "state_memory_bytes": sum(operator["memoryUsedBytes"] for operator in progress["stateOperators"]),
            "state_rows": sum(operator["numRowsTotal"] for operator in progress["stateOperators"]),
        }

    def day(self, rate: int = 200) -> dict[str, Any]:
        """Simulated days of batches: after each the table's log is made twenty minutes older, and maintenance's clock goes on as much.

        A day counts for removed data files as well: they are kept for as long as its batches take.
        """
        lake = self._fresh("day", True)
        eventual, batches = self.eventual(lake), int(_DAYS * 86_400 / _BATCH_STANDS_FOR)
        writer = self._writer(lake, rate, batches)
        eventual.refresh(VIEW)
        table, number = realtime_table(lake), 0
        kept = "'delta.deletedFileRetentionDuration' = 'interval 3 minutes'"
        self.spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ({kept})")
        log = eventual.table_log(VIEW)
        assert log is not None
        maintenance = TableMaintenance(own_session(self.spark), log, clock=lambda: number * _BATCH_STANDS_FOR)
        counts = []
        for number in range(1, batches + 1):
            writer.write(number - 1)
            eventual.refresh(VIEW)
            maintenance.run(lambda: eventual.stamp(VIEW), idle=True)
            for file in (table / "_delta_log").rglob("*"):
                os.utime(file, (file.stat().st_atime, file.stat().st_mtime - _BATCH_STANDS_FOR))
            found = [f for f in table.rglob("*") if f.is_file()]
            in_log = [f for f in found if "_delta_log" in f.parts]
            counts.append(
                {"batch": number, "log_files": len(in_log), "data_files": len(found) - len(in_log), "live_files": log.head().files}
            )
        assert eventual.verify(VIEW).exact
        return {"batches": batches, "days": _DAYS, "counts": counts}

    def eventual(self, lake: Path) -> Lakehouse:
        return open_lake(lake / "lakejoin.yml", spark=self.spark).on("eventual")

    # -- what the cases share ---------------------------------------------------------------------------------------

    def _config(self, lake: Path) -> dict[str, Any]:
        return {**yaml.safe_load(CONFIG.read_text()), "root": str(lake), "spark": {"spark.driver.memory": "4g"}}

    def _fresh(self, name: str, realtime: Any) -> Path:
        lake = _ROOT / name
        shutil.copytree(_ROOT / "base", lake)
        config = self._config(lake)
        config["views"][VIEW]["realtime"] = realtime
        (lake / "lakejoin.yml").write_text(yaml.safe_dump(config))
        return lake

    def _writer(self, lake: Path, rate: int, seconds: int, live: bool = True) -> Writer:
        """What puts the stream there, ready to start: as it writes, or as it has written before."""
        writer = (Writer if live else Replay)(lake, self.stream, self.events, rate, seconds)
        writer.prepare(self.spark)
        return writer

    @staticmethod
    def _run(follower: Follower, writer: Writer, drained: Callable[[], bool]) -> tuple[float, float, float]:
        """Write, then wait until the follower has drained: when writing began, when it ended, when the follower was done."""
        started = time.time()
        writer.start()
        early = started + cold(writer.seconds) - 2 * BIN
        while writer.is_alive():
            follower.alive()
            writer.join(0.5)
            if time.time() > early:
                follower.note_live_heap()
                early = math.inf
        if writer.written != writer.rate * writer.seconds:
            raise RuntimeError("the writer failed")
        ended = time.time()
        Bench._until(follower, drained)
        done = time.time()
        follower.note_live_heap()
        return started, ended, done

    @staticmethod
    def _until(follower: Follower, reached: Callable[[], bool], seconds: float = 600.0) -> None:
        deadline = time.monotonic() + seconds
        while not reached():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{' '.join(follower.command)} has not drained within {seconds:.0f} s")
            follower.alive(0.5)

    def _watched(self, lake: Path, follower: Follower, writer: Writer, started: float, ended: float, drained: float) -> dict[str, Any]:
        """What can be said of any follower."""
        changes, cpu = self._changes(lake), follower.cpu(started, drained)
        memory = [(s.time - started, s.memory) for s in follower.samples if started <= s.time <= ended]
        middle, last = ([m for at, m in memory if low <= at / (ended - started) < high] for low, high in ((0.4, 0.6), (0.8, 1.01)))
        return {
            "rate": writer.rate,
            "seconds": writer.seconds,
            "written_in_seconds": ended - started,
            "drained_after_seconds": drained - ended,
            "changes": changes,
            "cpu_seconds": cpu,
            "cpu_per_100k_changes": cpu / changes * 100_000,
            "memory_bytes": quantile([m for _, m in memory], 0.99),  # a JVM that forks is seen twice for a moment
            "memory_growth": statistics.median(last) / statistics.median(middle),
            "memory": [(round(at), m) for at, m in memory[::BIN]],
            "live_heap_bytes": follower.live,
        }

    def _changes(self, lake: Path) -> int:
        """Rows inserted, deleted and updated in the sources since the base."""
        total = 0
        for source in SOURCES:
            feed = self.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", "1").load(str(lake / source))
            total += feed.where("_change_type <> 'update_preimage'").count()
        return total


def _read(checkpoint: Path, lake: Path) -> bool:
    """Whether the stream-stream join has committed all versions of the sources that are there."""
    done = [int(f.name) for f in (checkpoint / "commits").glob("*") if f.name.isdigit()]
    if not done or not (checkpoint / "progress.json").exists():
        return False
    offsets = [json.loads(line) for line in (checkpoint / "offsets" / str(max(done))).read_text().splitlines()[2:]]
    # an offset stands before a version's first file (index below 0), or after one of its files; versions are taken whole
    done_versions = sorted(o["reservoirVersion"] - (o["index"] < 0) for o in offsets)
    return done_versions == sorted(newest(lake).values())


def cases(bench: Bench, options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """The cases asked for, by name."""
    short = min(120, options.seconds)
    every: Mapping[str, dict[str, Callable[[], dict[str, Any]]]] = {
        "steady": {"steady": lambda: bench.path("steady", options.rate, options.seconds)},
        "cache": {
            "cache on": lambda: bench.path("cache-on", options.rate, short, cache={"enabled": True}),
            "cache off": lambda: bench.path("cache-off", options.rate, short, cache={"enabled": False}),
        },
        "rates": {f"{rate} a second": lambda rate=rate: bench.path(f"rate-{rate}", rate, short) for rate in options.rates},  # type: ignore[misc]
        "stream_join": {"stream-stream join": lambda: bench.stream_join(options.rate, short)},
        "day": {"day": bench.day},
    }
    for name in options.cases:
        yield from every[name].items()


def show(console: Console, results: Mapping[str, Mapping[str, Any]]) -> None:
    """A line a case."""
    table = Table("case", "latency p50 / p95 / p99 s", "backlog", "drained s", "CPU s per 100,000 changes", "memory MB", "state KB")
    for name, found in results.items():
        if "rate" not in found:
            continue
        latency = " / ".join("-" if v is None else f"{v:.1f}" for v in found["latency"].values()) if "latency" in found else ""
        backlog = f"{found['backlog_middle']:.0f} → {found['backlog_last']:.0f}" if "backlog_last" in found else ""
        numbers = [f"{found['drained_after_seconds']:.1f}", f"{found['cpu_per_100k_changes']:.1f}"]
        table.add_row(name, latency, backlog, *numbers, f"{found['memory_bytes'] / 1e6:,.0f}", f"{found['state_bytes'] / 1e3:,.1f}")
    console.print(table)


def main(arguments: list[str] | None = None) -> int:
    """Run the cases, print the table and write the JSON; 0 where everything drained and is exact."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="events before the stream begins")
    parser.add_argument("--rate", type=int, default=1_000, help="events a second")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--rates", type=int, nargs="*", default=[2_000, 4_000, 8_000])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--live", action="store_true", help="Write beside the follower, on the same cores, instead of before")
    parser.add_argument("--out", type=Path, default=RESULTS / "realtime.json")
    options = parser.parse_args(arguments)
    console, bench = Console(), Bench(options.events, options.seed, options.live)
    results: dict[str, dict[str, Any]] = {}
    for name, run in cases(bench, options):
        console.print(f"{name} ...")
        results[name] = run()
        save_to(options.out, {"events": options.events, "seed": options.seed, "live": options.live, "results": results})
    show(console, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
