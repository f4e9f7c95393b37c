"""`lakejoin refresh` as a scheduler starts it: a process each time, its CPU seconds and those of its JVM, watched from outside."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

import psutil

from benchmarks.followers import family
from benchmarks.measure import medians
from benchmarks.nexmark import CONFIG, SPREAD, Bench, Change

COMMAND = [sys.executable, "-m", "lake.cli", "--config", str(CONFIG)]
_LOOK = 0.05
KILLED = Change(1_000)
CASES = (Change(0), KILLED, Change(1_000, SPREAD), Change(0.01, SPREAD), Change(0.2, SPREAD))


def run(kill_after: float | None = None) -> tuple[float, float]:
    """(CPU, wall) seconds of one command without a server; `kill_after`: it and its JVM are killed then."""
    started, cpu, command = time.monotonic(), dict[int, float](), [*COMMAND, "--server", "off", "refresh", "q20"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        try:
            tree = family(process.pid)
            for one in tree:
                times = one.cpu_times()
                cpu[one.pid] = times.user + times.system
            if kill_after is not None and time.monotonic() - started > kill_after:
                for one in reversed(tree):
                    one.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK)
    if kill_after is None and process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return sum(cpu.values()), time.monotonic() - started


def cold(bench: Bench, rounds: int) -> dict[str, Any]:
    """Medians of q20's refresh by each of `CASES`, and after one that was killed in its middle. This process's own session rests
    meanwhile."""
    bench.lake.refresh("q20")
    found: dict[str, list[tuple[float, float]]] = {str(case): [] for case in CASES} | {"after SIGKILL": []}
    for turn in range(rounds + 1):
        took = {}
        for case in CASES:
            bench.change(case)
            took[str(case)] = run()
        bench.change(KILLED)
        run(kill_after=0.7 * took[str(KILLED)][1])
        took["after SIGKILL"] = run()
        for name in took if turn else ():  # the first of each is not counted
            found[name].append(took[name])
    assert bench.lake.verify("q20").exact
    return {name: {**medians(seconds), "all": seconds} for name, seconds in found.items()}
