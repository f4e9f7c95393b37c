"""What a command costs with `lakejoin serve` and without it, in turn: `lakejoin refresh q20` from a shell, after the same kind of change.

    cold       the command starts Spark itself (`--server off`)
    server     the command is carried out by a warm server: CPU of the command and of the server
    warm       the refresh alone, as the server reports it, with the CPU of the server
    no-op      the command when nothing has changed, by the server and without it
    idle       the server's share of a core, and its memory, over half a minute

Medians of CPU and wall seconds; results go to benchmarks/results/server.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.cold import COMMAND, run
from benchmarks.followers import family
from benchmarks.measure import Seconds, medians, save
from benchmarks.nexmark import CONFIG, Bench, Change
from lake.server.client import Client
from lake.server.socket_folder import place_of

_CHANGE = Change(1_000)
_WARM_UP = 12
_IDLE = 30.0


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and its children so far."""
    return sum(t.user + t.system for t in (p.cpu_times() for p in family(pid)))


@contextmanager
def served(runtime: Path) -> Iterator[Client]:
    """A server of the benchmark's lake."""
    os.environ["LAKEJOIN_RUNTIME_DIR"] = str(runtime)
    subprocess.run([*COMMAND, "serve", "--background"], check=True)
    try:
        yield Client(place_of(CONFIG, None).socket)
    finally:
        subprocess.run([*COMMAND, "serve", "--stop"], check=True)


def by_server(pid: int) -> tuple[float, float]:
    """(CPU, wall) seconds of one command and of what it makes the server do."""
    before, started = cpu_of(pid), time.monotonic()
    command = subprocess.Popen([*COMMAND, "refresh", "q20"], stdout=subprocess.DEVNULL)
    _, code, used = os.wait4(command.pid, 0)
    wall = time.monotonic() - started
    if code:
        raise RuntimeError(f"{command.args} ended with {code}")
    return used.ru_utime + used.ru_stime + cpu_of(pid) - before, wall


def warm(client: Client, pid: int) -> tuple[float, float]:
    """(CPU, wall) seconds of one refresh in the server."""
    before = cpu_of(pid)
    _, answer = client.ask("POST", "/v1/refresh", {"views": ["q20"]})
    return cpu_of(pid) - before, answer["refreshes"][0]["seconds"]


def idle(pid: int) -> dict[str, float]:
    """The share of a core, and the resident memory in GB, while nothing is asked."""
    before, started = cpu_of(pid), time.monotonic()
    time.sleep(_IDLE)
    share = (cpu_of(pid) - before) / (time.monotonic() - started)
    return {"cores": round(share, 4), "gigabytes": round(sum(p.memory_info().rss for p in family(pid)) / 1e9, 2)}


def measure(bench: Bench, client: Client, rounds: int) -> dict[str, Any]:
    """Each in turn, after a change of its own where there is to be one."""
    pid = int(client.get("/v1/server")["pid"])
    works: dict[str, tuple[Change, Callable[[], tuple[float, float]]]] = {
        "warm": (_CHANGE, lambda: warm(client, pid)),
        "server": (_CHANGE, lambda: by_server(pid)),
        "cold": (_CHANGE, lambda: run()),
        "no-op, server": (Change(0), lambda: by_server(pid)),
        "no-op, cold": (Change(0), lambda: run()),
    }
    for _ in range(_WARM_UP):
        bench.change(_CHANGE)
        warm(client, pid)
    found: dict[str, Seconds] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, (change, work) in works.items():
            bench.change(change)
            took = work()
            found[name] += [took] if turn else []
    return {name: medians(seconds) | {"all": seconds} for name, seconds in found.items()} | {"idle": idle(pid)}


def main() -> int:
    """Print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_500_000, help="Nexmark events; about nine tenths are bids")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    bench = Bench(options.events, ["q20"])
    bench.lake.refresh("q20")
    with tempfile.TemporaryDirectory() as runtime, served(Path(runtime) / "run") as client:
        found = measure(bench, client, options.rounds)
    assert bench.lake.verify("q20").exact
    save("server", {"bids": bench.bids, "rounds": options.rounds, **found})
    table = Table("q20", "CPU s", "s", title=f"{bench.bids:,} bids, {_CHANGE}")
    for name, seconds in found.items():
        if name != "idle":
            table.add_row(name, f"{seconds['cpu']:.2f}", f"{seconds['wall']:.2f}")
    Console().print(table)
    print(json.dumps(found["idle"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
