"""Builds the plots of the report as Vega-Lite specifications without their data, which the page puts in: one view over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Literal

import altair as alt

from lake.core.formatting import counted
from lake.quality.measurements import Row, page_of
from lake.views.table import Publication

Values = list[dict[str, Any]]
LINK = "Data Docs"
"""The name of values that are names of pages in the folder of results."""
SOURCE = "source"
"""The name of values that are tables; the page gives a table the same colour in all plots."""
_DATA = "values"
_MOST = 500
_COLOURS = {"passed": "#2da44e", "failed": "#cf222e", "broken": "#bf8700", "undecidable": "#8250df"}
# the time above the date, in the reader's time zone
_TIME_AXIS = alt.Axis(labelExpr="[timeFormat(datum.value, '%H:%M'), timeFormat(datum.value, '%d %b %Y')]")

_DASH = alt.StrokeDash("what:N", legend=alt.Legend(orient="top", title=None, symbolType="stroke", symbolFillColor="#8a8a8a"))
_AT = alt.Tooltip("time:T", format="%d %b %Y %H:%M:%S")


@dataclass(frozen=True)
class Plot:
    """Specifications, one below the other, of one list of values, with a text for readers who cannot see them."""

    title: str
    says: str
    values: Values
    specs: tuple[dict[str, Any], ...]

    @property
    def kind(self) -> str:
        """What plots of the same specifications have in common."""
        return f"{self.title} ({len(self.specs)})"

    def said(self, most: int) -> str:
        """What it shows, in words."""
        return self.says if len(self.values) <= most else f"{self.says} (shown: the last {most:,} of {len(self.values):,} values)"

    def columns(self, most: int) -> dict[str, list[Any]]:
        """The newest values by column: each name stands once."""
        shown = self.values[-most:]
        return {name: [value[name] for value in shown] for name in shown[0]} if shown else {}


def versions(published: Sequence[Publication], commits: Mapping[str, Sequence[tuple[int, float]]]) -> Plot:
    """The versions of each source, as committed and as published by the view. `commits`: (version, seconds since 1970)."""
    made = [_point(at, table, number) | {"what": "committed"} for table, found in commits.items() for number, at in found]
    read = [
        _point(p.committed, table, n) | {"what": "published"}
        for p in published
        for table, n in p.stamp.answers_for.items()
        if table in commits
    ]
    values = _newest(made + read)
    last = {f"{v[SOURCE]} {v['what']}": v["value"] for v in values}
    return Plot("Versions of sources, committed and published", _said(last, "version"), values, (_lines("version", dashed=True),))


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
    return Plot("Lag behind the sources", _last_values(values, "lag"), values, (_lines("versions to read"),))


def refreshes(published: Sequence[Publication]) -> Plot:
    """Seconds and changed rows of each refresh, by its mode."""
    values = _newest(
        {
            "time": _milliseconds(p.committed),
            "seconds": None if p.seconds is None else round(p.seconds, 2),
            "rows changed": p.rows_inserted + p.rows_deleted,
            "mode": p.stamp.mode,
        }
        for p in published
    )
    seconds, changed = _refreshes()
    timed = any(v["seconds"] is not None for v in values)  # without one, Vega draws an axis of infinite length
    last = values[-1] if values else {}
    took = f"took {last['seconds']:,} seconds and " if last.get("seconds") is not None else ""
    says = f"{counted(len(values), 'refresh', 'refreshes')}; the last {took}changed {counted(last.get('rows changed', 0), 'row')}"
    return Plot("Refreshes: seconds, and rows changed", says, values, (seconds, changed) if timed else (changed,))


@cache
def _refreshes() -> tuple[dict[str, Any], dict[str, Any]]:
    base = _chart().mark_point(filled=True, size=60)
    shared: dict[str, Any] = {
        "x": _time(),
        "color": _by("mode"),
        "shape": _by("mode", alt.Shape),
        "tooltip": [_AT, "mode:N", "seconds:Q", "rows changed:Q"],
    }
    above = base.encode(y=alt.Y("seconds:Q", title="seconds"), **shared).properties(width="container", height=120)
    scale = alt.Scale(type="symlog")
    below = base.encode(y=alt.Y("rows changed:Q", title="rows", scale=scale), **shared).properties(width="container", height=120)
    return above.to_dict(), below.to_dict()


def differences(rows: Iterable[Row]) -> Plot:
    """Rows in which the paths differ, by class, at each check."""
    found = [r for r in rows if r.check == "agreement" and r.rows is not None]
    values = _newest({"time": _milliseconds(r.time.timestamp()), "class": r.subject.replace("_", " "), "rows": r.rows} for r in found)
    return Plot("Differences between the paths, by class", _last_values(values, "rows", "class", "rows"), values, (_differences(),))


@cache
def _differences() -> dict[str, Any]:
    return _spec(_chart().mark_line(point=True).encode(**_over_time("rows", scale="symlog", value="rows", colour="class")))


def latency(eventual: Sequence[Publication], commits: Mapping[str, Sequence[tuple[int, float]]]) -> Plot:
    """Seconds from a commit of a source to the real-time commit that processed it."""
    at = {table: dict(found) for table, found in commits.items()}
    values: Values = []
    for before, after in pairwise(eventual):
        for table, number in after.stamp.answers_for.items():
            if number > before.stamp.answers_for.get(table, number) and number in at.get(table, {}):
                values.append(_point(after.committed, table, round(max(0.0, after.committed - at[table][number]), 2)))
    values = _newest(values)
    return Plot("Real-time latency, from source commit to view commit", _last_values(values, "latency"), values, (_points("seconds"),))


def hit_rates(eventual: Sequence[Publication]) -> Plot:
    """The share of keys that each batch found in the cache, by source."""
    values = _newest(
        _point(p.committed, table, round(hits / (hits + misses), 3))
        for p in eventual
        for table, (hits, misses) in (p.stamp.lookups or {}).items()
    )
    return Plot("Real-time path: share of keys found in the cache", _last_values(values, "share"), values, (_points("share of keys"),))


def checks(rows: Iterable[Row]) -> Plot:
    """The status of each check in each run, with the name of the page of the run."""
    values = _newest(
        {
            "time": _milliseconds(r.time.timestamp()),
            "check": f"{r.check}: {r.subject}",
            "state": r.status,
            LINK: page_of(r) or "",
        }
        for r in rows
        if r.kind == "result"
    )
    bad = sum(v["state"] == "failed" for v in values)
    says = f"{counted(len(values), 'result')}, {bad} of them failures"
    return Plot("History of checks", says, values, (_checks(),))


@cache
def _checks() -> dict[str, Any]:
    colours = alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values()))
    chart = (
        _chart()
        .mark_point(filled=True, size=90)
        .encode(
            x=_time(),
            y=alt.Y("check:N", title=None, axis=alt.Axis(labelLimit=260)),
            color=alt.Color("state:N", scale=colours, legend=alt.Legend(orient="top", title=None)),
            shape=alt.Shape("state:N", scale=alt.Scale(domain=list(_COLOURS)), legend=alt.Legend(orient="top", title=None)),
            tooltip=[_AT, "check:N", "state:N"],
            href=alt.Href(f"{LINK}:N"),
        )
    )
    found: dict[str, Any] = chart.properties(width="container", height=alt.Step(18)).to_dict()
    return found


def _point(at: float, source: str, value: float) -> dict[str, Any]:
    return {"time": _milliseconds(at), SOURCE: source, "value": value}


def _milliseconds(at: float) -> int:
    """A time in seconds since 1970, as browsers count it."""
    return round(at * 1000)


def _newest(values: Iterable[dict[str, Any]]) -> Values:
    return sorted(values, key=lambda v: v["time"])[-_MOST:]


def _time() -> Any:
    return alt.X("time:T", title=None, axis=_TIME_AXIS)


def _by(name: str, channel: Any = alt.Color) -> Any:
    return channel(f"{name}:N", legend=alt.Legend(orient="top", title=None, columns=3))


def _over_time(title: str, scale: Literal["linear", "symlog"] = "linear", value: str = "value", colour: str = SOURCE) -> dict[str, Any]:
    return {
        "x": _time(),
        "y": alt.Y(f"{value}:Q", title=title, scale=alt.Scale(type=scale, zero=False)),
        "color": _by(colour),
        "tooltip": [_AT, f"{colour}:N", f"{value}:Q"],
    }


@cache
def _lines(title: str, dashed: bool = False) -> dict[str, Any]:
    more = {"strokeDash": _DASH} if dashed else {}
    return _spec(_chart().mark_line(interpolate="step-after", point=True).encode(**_over_time(title), **more))


@cache
def _points(title: str) -> dict[str, Any]:
    return _spec(_chart().mark_point(filled=True).encode(**_over_time(title)))


def _spec(chart: Any) -> dict[str, Any]:
    found: dict[str, Any] = chart.properties(width="container", height=160).to_dict()
    return found


def _chart() -> Any:
    return alt.Chart(alt.NamedData(_DATA))


def _last_values(values: Values, what: str, colour: str = SOURCE, value: str = "value") -> str:
    return _said({v[colour]: v[value] for v in values}, what)


def _said(last: Mapping[str, Any], what: str) -> str:
    return f"The last {what}: " + ", ".join(f"{name} {number:,}" for name, number in last.items()) if last else "No values yet."
