"""Draw the plots of docs/ from benchmarks/results/: `python -m benchmarks.plots realtime`, `refresh`,
`readme`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import altair as alt

from benchmarks.measure import RESULTS

IMAGES = Path(__file__).parent.parent / "docs" / "images"
_WIDTH, _HEIGHT = 360, 180
_COLORS = {
    "refresh, in one place": "#72b7b2",
    "refresh, spread": "#54a24b",
    "refresh, catching up": "#e45756",
    "recompute": "#f58518",
    "MERGE by hand": "#4c78a8",
    "stream-stream join": "#eeca3b",
}


def _lines(values: list[dict[str, Any]], x: str, y: str, series: str, title: str) -> alt.Chart:
    data = alt.Data(values=[v for v in values if v["y"] is not None])
    axes = {"x": alt.X("x:Q", title=x), "y": alt.Y("y:Q", title=y, scale=alt.Scale(zero=True))}
    color = alt.Color("series:N", title=series, legend=alt.Legend(orient="bottom"))
    return alt.Chart(data, title=title, width=_WIDTH, height=_HEIGHT).mark_line().encode(**axes, color=color)


def _points(x: list[float], y: list[Any], series: str) -> list[dict[str, Any]]:
    return [{"x": a, "y": b, "series": series} for a, b in zip(x, y, strict=True)]


def latency(found: Mapping[str, Any]) -> alt.Chart:
    """Latency of commits over time, p50 and p95 of each ten seconds."""
    at = [point[0] for point in found["series"]]
    values = [v for i, name in ((1, "p50"), (2, "p95")) for v in _points(at, [point[i] for point in found["series"]], name)]
    return _lines(values, "seconds since the stream began", "seconds", "latency", f"Latency at {found['rate']:,} events a second")


def memory(results: Mapping[str, Any]) -> alt.Chart:
    """Memory over time: the real-time path's and the stream-stream join's processes."""
    values = [
        v
        for name in ("steady", "stream-stream join")
        if name in results
        for v in _points([at for at, _ in results[name]["memory"]], [m / 1e9 for _, m in results[name]["memory"]], name)
    ]
    return _lines(values, "seconds since the stream began", "GB, JVM and Python", "", "Memory of the process")


def files(found: Mapping[str, Any]) -> alt.Chart:
    """Files of the real-time table over some simulated days."""
    counts = found["counts"]
    at = [count["batch"] * found["days"] * 24 / found["batches"] for count in counts]
    names = {"log_files": "log", "data_files": "data", "live_files": "data in use"}
    values = [v for key, name in names.items() for v in _points(at, [count[key] for count in counts], name)]
    return _lines(values, "simulated hours", "files", "files", "Files of the real-time table")


def rates(results: Mapping[str, Any]) -> alt.Chart:
    """Latency by rate."""
    found = sorted((r["rate"], r["latency"]) for name, r in results.items() if name == "steady" or name.endswith("a second"))
    values = [v for share in ("p50", "p95") for v in _points([r for r, _ in found], [latencies[share] for _, latencies in found], share)]
    return _lines(values, "events a second", "seconds", "latency", "Latency by rate").mark_line(point=True)


def costs(view: str, bids: int, cases: list[dict[str, Any]]) -> alt.Chart:
    """CPU seconds by how many bids changed, both on a logarithmic scale: a refresh's, and what a user would do instead."""
    values = []
    for case in cases:
        rows = case["number"] if case["number"] >= 1 else case["number"] * bids
        for name in ("refresh", "recompute", "MERGE by hand", "stream-stream join"):
            if rows and name in case:
                series = f"{name}, {case['kind']}" if name == "refresh" else name
                values.append({"x": rows, "y": case[name]["cpu"], "series": series})
    axes = {name: getattr(alt, name.upper())(f"{name}:Q", scale=alt.Scale(type="log")) for name in ("x", "y")}
    axes = {"x": axes["x"].axis(format="~s").title("bids changed"), "y": axes["y"].aggregate("median").title("CPU seconds")}
    own = {name: color for name, color in _COLORS.items() if name in {value["series"] for value in values}}
    scale = alt.Scale(domain=list(own), range=list(own.values()))
    color = alt.Color("series:N", title=None, scale=scale, legend=alt.Legend(orient="bottom", columns=2, labelLimit=250))
    chart = alt.Chart(alt.Data(values=values), title=f"{view}, {bids:,} bids", width=_WIDTH, height=_HEIGHT)
    return chart.mark_line(point=True).encode(**axes, color=color)


def of_realtime(found: Mapping[str, Any]) -> list[alt.Chart]:
    """The charts of realtime.json."""
    results = found["results"]
    drawn = [latency(results["steady"]), memory(results)]
    drawn += [rates(results)] if any(name.endswith("a second") for name in results) else []
    return drawn + ([files(results["day"])] if "day" in results else [])


def of_refresh(found: Mapping[str, Any]) -> list[alt.Chart]:
    """The charts of refresh.json: one a view and size with changes of several sizes."""
    return [
        costs(view, size["bids"], own["cases"])
        for size in found["sizes"].values()
        for view, own in size["views"].items()
        if sum(case["number"] > 0 for case in own["cases"]) > 1
    ]


def of_readme(found: Mapping[str, Any]) -> list[alt.Chart]:
    """One chart of refresh.json for the README: q20 over the most bids."""
    size = max((size for size in found["sizes"].values() if "q20" in size["views"]), key=lambda size: int(size["bids"]))
    cases = [case for case in size["views"]["q20"]["cases"] if case["kind"] != "catching up"]
    return [costs("q20", size["bids"], cases).properties(width=2 * _WIDTH, height=_HEIGHT + 60)]


_OF = {"realtime": of_realtime, "refresh": of_refresh, "readme": of_readme}
_RESULTS = {"readme": "refresh"}


def main(arguments: list[str] | None = None) -> int:
    """Write docs/images/NAME.svg."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=list(_OF))
    parser.add_argument("--results", type=Path, help="instead of benchmarks/results/NAME.json")
    parser.add_argument("--out", type=Path, help="instead of docs/images/NAME.svg")
    options = parser.parse_args(arguments)
    results = options.results or RESULTS / f"{_RESULTS.get(options.name, options.name)}.json"
    out = options.out or IMAGES / f"{options.name}.svg"
    out.parent.mkdir(exist_ok=True)
    charts = alt.concat(*_OF[options.name](json.loads(results.read_text())), columns=2, background="white")
    charts.resolve_scale(color="independent").save(str(out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
