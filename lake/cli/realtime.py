"""`lakejoin realtime`: runs real-time paths, prints their progress, and ends them on signals."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lake.core.formatting import path_texts
from lake.core.results import RefreshResult
from lake.lakehouse import Lakehouse
from lake.realtime.metrics import Metrics, serve
from lake.realtime.run import RealtimePath, run_all

_PRINT_EVERY = 10.0


@dataclass(frozen=True)
class Options:
    """The options of the command. `metrics_port`: None serves no metrics."""

    available_now: bool = False
    reset: bool = False
    metrics_port: int | None = None
    metrics_address: str = "127.0.0.1"
    as_json: bool = False


def run(lake: Lakehouse, view: str | None, options: Options) -> int:
    """Run the real-time path of one view, or (None) of all views with `realtime`, until they end; returns the exit code."""
    eventual, stop, printer = lake.on("eventual"), threading.Event(), _Printer(options.as_json)
    views = eventual.in_order(lake.config.in_realtime(view))
    paths = [RealtimePath(eventual, name, stop, options.available_now, printer.batch) for name in views]
    if options.metrics_port is not None:
        port = serve([path.metrics for path in paths], options.metrics_address, options.metrics_port)
        print(f"metrics at http://{options.metrics_address}:{port}/metrics", file=sys.stderr, flush=True)
    with _ended_by_signals(stop):
        code = run_all(paths, options.reset)
    for path in paths:
        printer.end(path.metrics)
    return code


@dataclass
class _Printer:
    """Prints a line for each batch as JSON; for a person one every few seconds, and errors."""

    as_json: bool
    printed: dict[str, float] = field(default_factory=dict)

    def batch(self, metrics: Metrics, result: RefreshResult) -> None:
        if self.as_json:
            print(json.dumps({**metrics.to_json(), "batch": result.to_json()}, default=str), flush=True)
        elif time.monotonic() - self.printed.get(metrics.view, -_PRINT_EVERY) >= _PRINT_EVERY:
            self.printed[metrics.view] = time.monotonic()
            print(_line(metrics), flush=True)

    def end(self, metrics: Metrics) -> None:
        if metrics.error:
            print(f"lakejoin: {metrics.error}", file=sys.stderr, flush=True)
        if self.as_json:
            print(json.dumps(metrics.to_json(), default=str), flush=True)
        else:
            print(f"{_line(metrics)}; {metrics.state}", flush=True)


def _line(metrics: Metrics) -> str:
    texts = path_texts(metrics.to_json())
    parts = [
        f"{metrics.view}: at {texts['at'] or 'no snapshot yet'}",
        f"{metrics.batches:,} batches, {metrics.rows_in:,} rows in, {metrics.rows_out:,} out",
        f"latency p50 / p95 / p99 {texts['latency']}" if metrics.latencies else "",
        f"cache hits {texts['hits']}" if texts["hits"] else "",
        f"{metrics.backlog_versions:,} versions waiting" if metrics.backlog_versions else "",
    ]
    return "; ".join(part for part in parts if part)


@contextmanager
def _ended_by_signals(stop: threading.Event) -> Iterator[None]:
    """Within it, SIGTERM and SIGINT set the event instead of ending the process."""
    numbers = (signal.SIGTERM, signal.SIGINT) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
