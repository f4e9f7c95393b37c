"""Builds the report, one HTML page that needs no network and shows the data engineer on call whether each view can be trusted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import altair as alt
import vl_convert

from lake import Lakehouse
from lake.config.models import REPORT
from lake.core.formatting import path_texts
from lake.core.pairs import differs_text
from lake.core.results import Explanation, SourceStatus
from lake.errors import LakeError
from lake.quality import plots
from lake.quality.findings import Finding
from lake.quality.health import Health, ago, health, of_scopes, scopes
from lake.quality.measurements import Row
from lake.quality.pages import render
from lake.quality.results import QualityResults
from lake.realtime.states import states
from lake.views.table import Publication, of_refreshes

_HERE = Path(__file__).parent
_COMMITS = 500
_HISTORY = 200
_HOUR = 3600.0
_SIDES = ("real time", "strong", "query", "view")
T = TypeVar("T")


@dataclass(frozen=True)
class Cell:
    text: str
    differs: bool


@dataclass(frozen=True)
class Line:
    """A sample row. `side`: which path, or view or query, it is from."""

    side: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class SampleTable:
    """Sample rows of one check."""

    title: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class ViewReport:
    """The contents of the report on a view. `wrong`: why some of it could not be read; `url`: of a page in the folder of results."""

    name: str
    status: Sequence[SourceStatus]
    published: Sequence[Publication]
    eventual: Sequence[Publication]
    commits: Mapping[str, Sequence[tuple[int, float]]]
    rows: Sequence[Row]
    health: Health
    explanation: Explanation | None
    path: Mapping[str, Any]
    hours: float
    wrong: str
    url: Callable[[str], str]

    @property
    def exact(self) -> tuple[str, str]:
        """Whether the view is exact by its last check: a state, and a sentence."""
        return self.health.state, self.health.exact

    @property
    def open(self) -> Sequence[Finding]:
        """The open findings."""
        return self.health.open

    @property
    def fresh(self) -> tuple[str, str]:
        """Whether it has read the newest version of each source."""
        if not self.published or not self.status:
            return "unknown", "unknown" if self.wrong else "not built yet"
        when = ago(datetime.fromtimestamp(self.published[-1].committed, UTC))
        unbuilt = [row.source for row in self.status if row.lag is None]
        if unbuilt:
            return "warn", f"{', '.join(unbuilt)}: versions to read not known (published {when})"
        lag = sum(row.lag or 0 for row in self.status)
        return ("good", f"up to date (published {when})") if lag == 0 else ("warn", f"{lag:,} versions to read (published {when})")

    @property
    def readable(self) -> tuple[str, str]:
        """How long its next interval stays readable."""
        if not self.status:
            return "unknown", "unknown" if self.wrong else "nothing to read"
        left = min((row.expires_in for row in self.status if row.expires_in is not None), default=None)
        if left is None:
            return "good", "no changes to read"
        if left <= 0:
            return "bad", f'changes may no longer be available: run "lakejoin rebuild {self.name}"'
        return ("warn" if left < self.hours * _HOUR else "good"), f"changes readable for {left / _HOUR:,.0f} hours"

    @property
    def worst(self) -> str:
        """How bad its findings are."""
        return "bad" if any(f.severity == "critical" for f in self.open) else "warn" if self.open else "good"

    @property
    def plots(self) -> list[plots.Plot]:
        """What changed over time."""
        drawn = [plots.versions(self.published, self.commits), plots.lag(self.published, self.commits), plots.refreshes(self.published)]
        if self.eventual:
            drawn += [plots.differences(self.rows), plots.latency(self.eventual, self.commits), plots.hit_rates(self.eventual)]
        return [*drawn, plots.checks(self.rows, self.url)]

    @property
    def realtime(self) -> str:
        """The state and latency of the real-time path; empty without one that has reported."""
        if "latency_seconds" not in self.path:
            return ""
        texts = path_texts(self.path)
        speed = f"latency p50 / p95 / p99 {texts['latency']}; cache hits {texts['hits'] or 'none asked'}"
        return f"{self.path['state']}; {self.path['batches']:,} batches; {speed}; {self.path['backlog_versions']:,} versions waiting"

    @property
    def samples(self) -> list[SampleTable]:
        """Rows that differ."""
        return tables_of(self.rows)


def collect(lake: Lakehouse, name: str, rows: Sequence[Row]) -> ViewReport:
    """The report on a view. It raises nothing: what cannot be read is named on the page, beside the rest."""
    wrong: list[str] = []

    def readable(read: Callable[[], T], nothing: T) -> T:
        try:
            return read()
        except LakeError as error:
            wrong.append(str(error))
            return nothing

    tables: list[str] = readable(lambda: list(lake.bases_below(name)), [])
    status: Sequence[SourceStatus] = readable(lambda: lake.status(name), [])
    published: Sequence[Publication] = readable(lambda: of_refreshes(lake.history(name)), [])
    eventual: Sequence[Publication] = readable(lambda: of_refreshes(lake.on("eventual").history(name)), [])
    commits: dict[str, Sequence[tuple[int, float]]] = {
        table: readable(partial(lambda t: lake.source_commits(t)[-_COMMITS:], table), []) for table in tables
    }
    explanation: Explanation | None = readable(lambda: lake.explain(name), None)
    path: Mapping[str, Any] = readable(lambda: states(lake, [name]).get(name, {}), {})
    own = of_scopes(rows, {name, *tables})
    stands, hours = health(name, of_scopes(rows, scopes(lake, name))), lake.config.limits(name).retention_hours
    said, url = " ".join(dict.fromkeys(wrong)), lake.config.page_url
    return ViewReport(name, status, published, eventual, commits, own, stands, explanation, path, hours, said, url)


def report(lake: Lakehouse, views: Sequence[str]) -> str:
    """The page, as HTML. Raises ConfigError for an unknown view."""
    for view in views:
        lake.config.view(view)
    rows = QualityResults(lake).recent(_HISTORY)
    docs = lake.config.page_url("docs/index.html") if lake.folder(f"{lake.config.quality_path}/docs").exists else ""
    return report_page([collect(lake, view, rows) for view in views], lake.config.root_path, docs)


def report_page(views: Sequence[ViewReport], root: str, docs: str) -> str:
    """The page of what was collected. `root`: where the lakehouse is; `docs`: the address of the Data Docs, empty if there are none."""
    return render(
        "report.html.j2",
        ("pages.css", "report.css"),
        (_bundle(), (_HERE / "report.js").read_text(encoding="utf-8")),
        views=views,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        root=root,
        docs=docs,
        link=plots.LINK,
    )


def store_report(lake: Lakehouse) -> str:
    """Write the report on all views to the folder of results; returns its address."""
    lake.folder(lake.config.quality_path).replace(REPORT, report(lake, list(lake.config.views)))
    return f"{lake.config.quality_path}/{REPORT}"


def tables_of(rows: Sequence[Row]) -> list[SampleTable]:
    """The rows that differ, side by side, by the last run."""
    run = next((r.run for r in reversed(rows) if r.kind == "result"), None)
    found = [r for r in rows if r.run == run and r.samples and r.status == "failed"]
    return [_sample_table(f"{r.scope}, {r.check}: {r.subject.replace('_', ' ')}", json.loads(r.samples)) for r in found]


def _sample_table(title: str, samples: Sequence[Mapping[str, Any]]) -> SampleTable:
    """Samples are rows by side (real time, strong; query, view), with the columns in which they differ, or rows alone."""
    pairs = [_sides(sample) or {"": sample} for sample in samples]
    columns = tuple(dict.fromkeys(name for pair in pairs for row in pair.values() for name in row))
    differ = [differs_text(sample.get("differs") or {}) if _sides(sample) else "" for sample in samples]
    lines = []
    for pair, text in zip(pairs, differ, strict=True):
        for side, row in pair.items():
            others = [other for name, other in pair.items() if name != side]
            differing = [any(other.get(c) != row.get(c) for other in others) for c in columns]
            texts = ["NULL" if row.get(c) is None else str(row[c]) for c in columns]
            lines.append(Line(side, (*map(Cell, texts, differing), *([Cell(text, differs=False)] if any(differ) else []))))
    return SampleTable(title, (*columns, *(["differs in"] if any(differ) else [])), tuple(lines))


def _sides(sample: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The rows of a sample by side, none where it is a row itself."""
    return {side: sample[side] for side in _SIDES if isinstance(sample.get(side), Mapping)}


def _bundle() -> str:
    """Vega, Vega-Lite and vega-embed, as one script."""
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return vl_convert.javascript_bundle(vl_version=version)  # type: ignore[call-arg]
