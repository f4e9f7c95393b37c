"""Metrics of the real-time path of a view: as JSON, for Prometheus, and for `lakejoin status`."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lake.core.results import RefreshResult
from lake.errors import ConfigError
from lake.realtime.batch import Batch
from lake.relations.lookup_cache import LookupCache

_WINDOW = 1_000
_COUNTERS = {
    "batches": "Batches committed",
    "rows_in": "Changed rows of sources that were read",
    "rows_out": "Rows of the view inserted and deleted",
    "failures": "Batches that failed",
}
_GAUGES = {
    "in_flight_rows": "Changed rows of sources in the current batch, estimated",
    "blocked_rows": "Changed rows of the first commit that waits for a later batch, estimated",
    "backlog_versions": "Versions of sources that wait for a later batch",
    "batch_seconds": "Duration of the last batch in seconds",
    "cached_keys": "Keys whose rows are cached",
}
_SHARES = (0.5, 0.95, 0.99)


@dataclass
class Metrics:
    """Metrics of one view since its path started. A latency is the time in seconds from the commit of a source to that of the view."""

    view: str
    state: str = "running"
    error: str = ""
    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    failures: int = 0
    in_flight_rows: int = 0
    blocked_rows: int = 0
    backlog_versions: int = 0
    batch_seconds: float = 0.0
    cached_keys: int = 0
    lookups: dict[str, tuple[int, int]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=_WINDOW))

    def begin(self, batch: Batch) -> None:
        """Record that a batch has chosen its versions."""
        self.in_flight_rows, self.blocked_rows = sum(commit.rows for commit in batch.commits), batch.blocked
        self.backlog_versions = batch.waiting

    def end(self, batch: Batch, result: RefreshResult, cache: LookupCache | None) -> None:
        """Record that a batch was committed, or had nothing to do."""
        self.begin(batch)
        self.in_flight_rows = 0
        self.versions = dict(result.until)
        if result.mode == "none":
            return
        self.batches += 1
        self.rows_in += result.changes_read if result.changes_read is not None else sum(commit.rows for commit in batch.commits)
        self.rows_out += result.rows_inserted + result.rows_deleted
        self.batch_seconds = result.seconds
        now = time.time()
        self.latencies.extend(now - commit.committed for commit in batch.commits)
        if cache is not None:
            self.cached_keys = len(cache)
            self.lookups = cache.lookups

    def latency(self, share: float) -> float | None:
        """The latency that this share of the commits does not exceed; None before the first commit."""
        return quantile(self.latencies, share)

    @property
    def hit_rates(self) -> dict[str, float]:
        """By source, the share of looked-up keys that were found in the cache."""
        return {source: hits / (hits + misses) for source, (hits, misses) in self.lookups.items() if hits + misses}

    def to_json(self) -> dict[str, Any]:
        numbers = {name: getattr(self, name) for name in ("view", "state", *_COUNTERS, *_GAUGES)}
        lookups = {source: {"keys": hits + misses, "hits": hits} for source, (hits, misses) in self.lookups.items()}
        rates = {"hit_rates": self.hit_rates, "lookups": lookups, "latency_seconds": quantiles(self.latencies), "versions": self.versions}
        return {**numbers, **rates, **({"error": self.error} if self.error else {})}


def quantile(values: Iterable[float], share: float) -> float | None:
    """The value that this share of the values does not exceed; None if there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def quantiles(values: Collection[float]) -> dict[str, float | None]:
    """p50, p95 and p99."""
    return {f"p{share * 100:.0f}": quantile(values, share) for share in _SHARES}


class Exported(Collector):
    """The metrics of all views, as Prometheus scrapes them."""

    def __init__(self, metrics: Sequence[Metrics]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        for name, text in _COUNTERS.items():
            yield _family(CounterMetricFamily(f"lakejoin_realtime_{name}", text, labels=["view"]), self._of(name))
        for name, text in _GAUGES.items():
            yield _family(GaugeMetricFamily(f"lakejoin_realtime_{name}", text, labels=["view"]), self._of(name))
        failed = (([m.view], float(m.state == "failed")) for m in self._metrics)
        yield _family(GaugeMetricFamily("lakejoin_realtime_failed", "Whether the view has failed", labels=["view"]), failed)
        latency = GaugeMetricFamily(
            "lakejoin_realtime_latency_seconds", "Time from the commit of a source to that of the view", labels=["view", "quantile"]
        )
        found = (([m.view, str(s)], value) for m in self._metrics for s in _SHARES if (value := m.latency(s)) is not None)
        yield _family(latency, found)
        for i, (name, text) in enumerate((("hits", "Keys found in the cache"), ("misses", "Keys looked up in the table"))):
            family = CounterMetricFamily(f"lakejoin_realtime_cache_{name}", text, labels=["view", "source"])
            yield _family(family, (([m.view, s], float(counts[i])) for m in self._metrics for s, counts in m.lookups.items()))

    def _of(self, name: str) -> Iterator[tuple[list[str], float]]:
        return (([m.view], float(getattr(m, name))) for m in self._metrics)


def _family(family: Any, values: Iterable[tuple[list[str], float]]) -> Metric:
    for labels, value in values:
        family.add_metric(labels, value)
    metric: Metric = family
    return metric


def serve(metrics: Sequence[Metrics], address: str, port: int) -> int:
    """Serve metrics for Prometheus at http://address:port/metrics until the process ends; returns the port (0: a free one).

    Raises ConfigError if the server can't listen there.
    """
    registry = CollectorRegistry()
    registry.register(Exported(metrics))
    try:
        server, _ = start_http_server(port, address, registry)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"`--metrics-port {port}` at {address}: {error}. Nothing was started. Choose another port, or 0 for a free one."
        ) from error
    return int(server.server_port)
