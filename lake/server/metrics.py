"""What the server has done, as metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lake.server.lags import Lags
from lake.server.queue import Queue
from lake.server.request import Request

_SECONDS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200)


class ServerMetrics:
    """Counts finished requests and refreshes. `heap`: the used bytes of the driver's heap."""

    def __init__(self, heap: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self._heap = heap
        self._requests = Counter("lakejoin_requests", "Finished requests", ["verb", "exit_code"], registry=self._registry)
        self._failures = Counter("lakejoin_failures", "Requests that failed, by class of error", ["verb", "error"], registry=self._registry)
        self._seconds = Histogram(
            "lakejoin_request_seconds", "Seconds from a request's start to its end", ["verb"], buckets=_SECONDS, registry=self._registry
        )
        self._refreshes = Counter("lakejoin_refreshes", "Refreshes of views", ["view", "mode"], registry=self._registry)
        self._took = Histogram(
            "lakejoin_refresh_seconds", "Seconds of a view's refresh", ["view"], buckets=_SECONDS, registry=self._registry
        )
        self._inserted = Counter("lakejoin_rows_inserted", "Rows inserted by refreshes", ["view"], registry=self._registry)
        self._deleted = Counter("lakejoin_rows_deleted", "Rows deleted by refreshes", ["view"], registry=self._registry)

    def watch(self, queue: Queue, lags: Lags) -> None:
        """Also report what waits and runs, and how far the views are behind."""
        self._registry.register(_Now(queue, lags, self._heap))

    def count(self, request: Request) -> None:
        """Count a request that ended."""
        self._requests.labels(request.call.verb, str(request.exit_code)).inc()
        if request.error:
            self._failures.labels(request.call.verb, request.error).inc()
        if request.started is not None and request.ended is not None:
            self._seconds.labels(request.call.verb).observe(request.ended - request.started)
        for found in request.refreshes:
            view = found["view"]
            self._refreshes.labels(view, found["mode"]).inc()
            self._took.labels(view).observe(found["seconds"])
            self._inserted.labels(view).inc(found["rows_inserted"])
            self._deleted.labels(view).inc(found["rows_deleted"])

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self._registry)


class _Now(Collector):
    def __init__(self, queue: Queue, lags: Lags, heap: Callable[[], int]) -> None:
        self._queue, self._lags, self._heap = queue, lags, heap

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("lakejoin_requests_waiting", "Requests that wait", self._queue.waiting)
        yield GaugeMetricFamily("lakejoin_requests_running", "Requests that run", self._queue.running)
        yield GaugeMetricFamily("lakejoin_heap_bytes", "Used bytes of the heap of Spark's driver", self._heap() if self._queue.ready else 0)
        lag = GaugeMetricFamily("lakejoin_lag_versions", "Versions of a source that the view has not read", labels=["view", "source"])
        expires = GaugeMetricFamily(
            "lakejoin_changes_expire_seconds", "Seconds until unread changes may be unreadable", labels=["view", "source"]
        )
        for row in self._lags.last():
            if row.lag is not None:
                lag.add_metric([row.view, row.source], row.lag)
            if row.expires_in is not None:
                expires.add_metric([row.view, row.source], row.expires_in)
        yield from (lag, expires)
