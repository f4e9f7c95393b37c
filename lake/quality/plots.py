"""Builds the plots of the report as Vega-Lite specifications: one view over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Literal

import altair as alt

from lake.quality.measurements import Row, page_of
from lake.views.table import Publication

Values = list[dict[str, Any]]
LINK = "Data Docs"
"""The name of values that are addresses of pages."""
_MOST = 2_000
_COLOURS = {"passed": "#2da44e", "failed": "#cf222e", "broken": "#bf8700", "undecidable": "#8250df"}


@dataclass(frozen=True)
class Plot:
    """Specifications, one below the other, with a text and a table of their numbers for readers who cannot see them."""

    title: str
    says: str
    values: Values
    specs: tuple[dict[str, Any], ...]


def versions(published: Sequence[Publication], commits: Mapping[str, Sequence[tuple[int, float]]]) -> Plot:
    """The versions of each source, as committed and as published by the view. `commits`: (version, seconds since 1970)."""
    made = [_point(at, f"{table}, committed", number) for table, found in commits.items() for number, at in found]
    read = [
        _point(p.committed, f"{table}, published", n) for p in published for table, n in p.stamp.answers_for.items() if table in commits
    ]
    values = _newest(made + read)
    chart = _chart(values).mark_line(interpolate="step-after", point=True).encode(**_over_time("version", "versions"))
    return _plot("Versions of sources, committed and published", _last_values(values, "version"), values, chart)


def lag(published: Sequence[Publication], commits: Mapping[str, Sequence[tuple[int, float]]]) -> Plot:
    """The number of versions of each source that the view has not read, at each commit of either."""
    values: Values = []
    for table, found in commits.items():
        events = sorted([(at, "c", n) for n, at in found] + [(p.committed, "p", p.stamp.answers_for.get(table, 0)) for p in published])
        newest = read = None
        for at, kind, number in events:
            newest, read = (number, read) if kind == "c" else (newest, number)
            if newest is not None and read is not None:
                values.append(_point(at, table, max(0, newest - read)))
    values = _newest(values)
    chart = _chart(values).mark_line(interpolate="step-after", point=True).encode(**_over_time("versions to read", "source"))
    return _plot("Lag behind the sources", _last_values(values, "lag"), values, chart)


def refreshes(published: Sequence[Publication]) -> Plot:
    """Seconds and changed rows of each refresh, by its mode."""
    values = _newest(
        {
            "time": _iso(p.committed),
            "seconds": None if p.seconds is None else round(p.seconds, 2),
            "rows changed": p.rows_inserted + p.rows_deleted,
            "mode": p.stamp.mode,
        }
        for p in published
    )
    base = _chart(values).mark_point(filled=True, size=60)
    shared: dict[str, Any] = {
        "x": alt.X("time:T", title=None),
        "color": alt.Color("mode:N", legend=alt.Legend(orient="top", title=None)),
        "shape": alt.Shape("mode:N", legend=alt.Legend(orient="top", title=None)),
        "tooltip": ["time:T", "mode:N", "seconds:Q", "rows changed:Q"],
    }
    above = base.encode(y=alt.Y("seconds:Q", title="seconds"), **shared).properties(width="container", height=120)
    scale = alt.Scale(type="symlog")
    below = base.encode(y=alt.Y("rows changed:Q", title="rows", scale=scale), **shared).properties(width="container", height=120)
    timed = any(v["seconds"] is not None for v in values)  # without one, Vega draws an axis of infinite length
    specs = (above.to_dict(), below.to_dict()) if timed else (below.to_dict(),)
    last = values[-1] if values else {}
    took = f"took {last['seconds']:,} seconds and " if last.get("seconds") is not None else ""
    says = f"{len(values)} refreshes; the last {took}changed {last.get('rows changed', 0):,} rows"
    return Plot("Refreshes: seconds, and rows changed", says, values, specs)


def differences(rows: Iterable[Row]) -> Plot:
    """Rows in which the paths differ, by class, at each check."""
    found = [r for r in rows if r.check == "agreement" and r.rows is not None]
    values = _newest({"time": r.time.isoformat(), "class": r.subject.replace("_", " "), "rows": r.rows} for r in found)
    chart = _chart(values).mark_line(point=True).encode(**_over_time("rows", "class", scale="symlog", value="rows", colour="class"))
    return _plot("Differences between the paths, by class", _last_values(values, "rows", "class", "rows"), values, chart)


def latency(eventual: Sequence[Publication], commits: Mapping[str, Sequence[tuple[int, float]]]) -> Plot:
    """Seconds from a commit of a source to the real-time commit that processed it."""
    at = {table: dict(found) for table, found in commits.items()}
    values: Values = []
    for before, after in pairwise(eventual):
        for table, number in after.stamp.answers_for.items():
            if number > before.stamp.answers_for.get(table, number) and number in at.get(table, {}):
                values.append(_point(after.committed, table, round(max(0.0, after.committed - at[table][number]), 2)))
    values = _newest(values)
    chart = _chart(values).mark_point(filled=True).encode(**_over_time("seconds", "source"))
    return _plot("Real-time latency, from source commit to view commit", _last_values(values, "latency"), values, chart)


def hit_rates(eventual: Sequence[Publication]) -> Plot:
    """The share of keys that each batch found in the cache, by source."""
    values = _newest(
        _point(p.committed, table, round(hits / (hits + misses), 3))
        for p in eventual
        for table, (hits, misses) in (p.stamp.lookups or {}).items()
    )
    chart = _chart(values).mark_point(filled=True).encode(**_over_time("share of keys", "source"))
    return _plot("Real-time path: share of keys found in the cache", _last_values(values, "share"), values, chart)


def checks(rows: Iterable[Row], url: Callable[[str], str]) -> Plot:
    """The status of each check in each run, with a link to the page of the run. `url`: of a page in the folder of results."""
    values = _newest(
        {"time": r.time.isoformat(), "check": f"{r.check}: {r.subject}", "state": r.status, LINK: url(page) if (page := page_of(r)) else ""}
        for r in rows
        if r.kind == "result"
    )
    colours = alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values()))
    chart = (
        _chart(values)
        .mark_point(filled=True, size=90)
        .encode(
            x=alt.X("time:T", title=None),
            y=alt.Y("check:N", title=None, axis=alt.Axis(labelLimit=260)),
            color=alt.Color("state:N", scale=colours, legend=alt.Legend(orient="top", title=None)),
            shape=alt.Shape("state:N", scale=alt.Scale(domain=list(_COLOURS)), legend=alt.Legend(orient="top", title=None)),
            tooltip=["time:T", "check:N", "state:N"],
            href=alt.Href(f"{LINK}:N"),
        )
    )
    bad = sum(v["state"] == "failed" for v in values)
    spec = chart.properties(width="container", height=alt.Step(18)).to_dict()
    return Plot("History of checks", f"{len(values)} results, {bad} of them failures", values, (spec,))


def _point(at: float, series: str, value: float) -> dict[str, Any]:
    return {"time": _iso(at), "series": series, "value": value}


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _newest(values: Iterable[dict[str, Any]]) -> Values:
    return sorted(values, key=lambda v: v["time"])[-_MOST:]


def _over_time(
    title: str, series: str, scale: Literal["linear", "symlog"] = "linear", value: str = "value", colour: str = "series"
) -> dict[str, Any]:
    return {
        "x": alt.X("time:T", title=None),
        "y": alt.Y(f"{value}:Q", title=title, scale=alt.Scale(type=scale, zero=False)),
        "color": alt.Color(f"{colour}:N", legend=alt.Legend(orient="top", title=None, columns=2), title=series),
        "tooltip": ["time:T", f"{colour}:N", f"{value}:Q"],
    }


def _plot(title: str, says: str, values: Values, chart: Any) -> Plot:
    return Plot(title, says, values, (chart.properties(width="container", height=160).to_dict(),))


def _chart(values: Values) -> Any:
    return alt.Chart({"values": values})


def _last_values(values: Values, what: str, colour: str = "series", value: str = "value") -> str:
    last = {v[colour]: v[value] for v in values}
    return f"The last {what}: " + ", ".join(f"{name} {number:,}" for name, number in last.items()) if last else "No values yet."
