"""Collects what the report tells of a view: its state and what to do, its refreshes, its query, and what it reads and is read by."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import Any, TypeVar

from lake import Lakehouse
from lake.config.models import Config, ViewConfig
from lake.config.reads import reads
from lake.config.view_sources import query_text
from lake.core.formatting import counted, path_texts, size_text
from lake.core.pairs import differs_text
from lake.core.results import Explanation, SourceStatus
from lake.delta.pinned import Pinned
from lake.errors import LakeError
from lake.quality import plots
from lake.quality.findings import Finding
from lake.quality.health import Health, HealthState, ago, health, of_scopes, scopes
from lake.quality.measurements import Row
from lake.quality.view_status import ViewStatus, view_statuses
from lake.realtime.states import states
from lake.spark.failures import reported
from lake.views.table import Publication, of_refreshes

_COMMITS = 500
_REFRESHES = 10
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
class About:
    """What a view is: its query or its function, what it reads, which views read it, and how large its table is."""

    config: ViewConfig
    query: str
    reads: Sequence[str]
    read_by: Sequence[str]
    size: str


@dataclass(frozen=True)
class ViewReport:
    """The contents of the report on a view. `sources`: a row for each source; `path`: the newest lease of its real-time path; `hours`: the
    retention limit; `wrong`: why some of it could not be read."""

    name: str
    status: ViewStatus
    about: About
    sources: Sequence[SourceStatus]
    published: Sequence[Publication]
    eventual: Sequence[Publication]
    commits: Mapping[str, Sequence[tuple[int, float]]]
    rows: Sequence[Row]
    health: Health
    explanation: Explanation | None
    path: Mapping[str, Any]
    hours: float
    wrong: str

    @property
    def level(self) -> HealthState:
        """How bad the view's state is: nothing is good that was not found exact, has an open finding, or could not be read."""
        if self.status.needs_somebody:
            return "bad"
        known = self.wrong or self.open or self.health.state == "bad" or self.status.state != "up to date"
        return "warn" if known else "good"

    @property
    def problem(self) -> str:
        """What is wrong with it, and what could not be read."""
        return self.wrong if self.status.problem in self.wrong else " ".join(filter(None, (self.status.problem, self.wrong)))

    @property
    def exact(self) -> tuple[HealthState, str]:
        """Whether the view is exact by its last check: a state, and a sentence."""
        return self.health.state, self.health.exact

    @property
    def open(self) -> Sequence[Finding]:
        """The open findings."""
        return self.health.open

    @property
    def findings(self) -> str:
        """How many findings are open, and how many of them are snoozed; empty without any."""
        snoozed = sum(finding.is_snoozed(datetime.now(UTC)) for finding in self.open)
        told = [counted(len(self.open) - snoozed, "open finding")] if len(self.open) > snoozed else []
        return ", ".join([*told, *([f"{snoozed} snoozed"] if snoozed else [])])

    @property
    def refreshes(self) -> Sequence[Publication]:
        """Its last refreshes, the newest first."""
        return self.published[: -_REFRESHES - 1 : -1]

    @property
    def fresh(self) -> tuple[HealthState, str]:
        """Whether it has read the newest version of each source."""
        if not self.published or not self.sources:
            return "unknown", "unknown" if self.wrong else "not built yet"
        when = ago(datetime.fromtimestamp(self.published[-1].committed, UTC))
        unbuilt = [row.source for row in self.sources if row.lag is None]
        if unbuilt:
            return "warn", f"{', '.join(unbuilt)}: versions to read not known (published {when})"
        lag = sum(row.lag or 0 for row in self.sources)
        if lag == 0:
            return "good", f"up to date (published {when})"
        since = self.status.behind
        changes = "" if since is None else f", the oldest change {ago(datetime.now(UTC) - timedelta(seconds=since))}"
        return "warn", f"{counted(lag, 'version')} to read{changes} (published {when})"

    @property
    def readable(self) -> tuple[HealthState, str]:
        """How long its next interval stays readable."""
        if not self.sources:
            return "unknown", "unknown" if self.wrong else "nothing to read"
        left = min((row.expires_in for row in self.sources if row.expires_in is not None), default=None)
        if left is None:
            return ("unknown", "unknown") if any(row.lag is None for row in self.sources) else ("good", "no changes to read")
        if left <= 0:
            return "bad", f'changes may no longer be available: run "lakejoin rebuild {self.name}"'
        return ("warn" if left < self.hours * _HOUR else "good"), f"changes readable for {left / _HOUR:,.0f} hours"

    @property
    def facts(self) -> Mapping[str, tuple[HealthState, str]]:
        """What is known of its rows, by a heading."""
        return {"exact?": self.exact, "fresh?": self.fresh, "time to expiry": self.readable}

    @cached_property
    def plots(self) -> list[plots.Plot]:
        """What changed over time; without those that have no values."""
        drawn = [plots.versions(self.published, self.commits), plots.lag(self.published, self.commits), plots.refreshes(self.published)]
        if self.eventual:
            drawn += [plots.differences(self.rows), plots.latency(self.eventual, self.commits), plots.hit_rates(self.eventual)]
        return [plot for plot in [*drawn, plots.checks(self.rows)] if plot.values]

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


class Collecting:
    """Reports on views, with what several of them share read once. It raises nothing: what can't be read is named beside the rest."""

    def __init__(self, lake: Lakehouse, views: Sequence[str], rows: Sequence[Row]) -> None:
        """`rows`: the newest results of checks, oldest first."""
        self._lake, self._rows = lake, rows
        self._commits: dict[str, Sequence[tuple[int, float]]] = {}
        self._reads = {view: _named_by(view, lake.config) for view in lake.config.views}
        self._health = {view: health(view, of_scopes(rows, scopes(lake, view))) for view in views}
        self._sources = lake.status(list(views))
        self._wrong: dict[str, list[str]] = {view: [] for view in views}
        none: dict[str, dict[str, Any]] = {}
        self._paths = {view: self._read(view, partial(states, lake, [view]), none).get(view, {}) for view in views}

    def _read(self, view: str, read: Callable[[], T], nothing: T) -> T:
        """What is read of a view; `nothing` where that fails, which its report says."""
        try:
            with reported(f"Reading view {view!r}", lambda: self._lake.shown_of(view)):
                return read()
        except LakeError as error:
            self._wrong[view].append(str(error))
            return nothing

    def views(self) -> list[ViewReport]:
        """The reports, those that need somebody first, those without a problem last."""
        found = [self._view(status) for status in view_statuses(self._lake, self._sources, self._paths, self._health)]
        return sorted(found, key=lambda view: ("bad", "warn", "good").index(view.level))

    def _view(self, status: ViewStatus) -> ViewReport:
        lake, name = self._lake, status.view
        read, wrong = partial(self._read, name), self._wrong[name]
        sources = [row for row in self._sources if row.view == name]
        wrong += [row.advice for row in sources if row.way == "not known"]
        tables: list[str] = read(lambda: list(lake.bases_below(name)), [])
        about = read(lambda: self._about(name), About(lake.config.view(name), "", (), (), ""))
        published: Sequence[Publication] = read(lambda: of_refreshes(lake.history(name)), [])
        eventual: Sequence[Publication] = read(lambda: of_refreshes(lake.on("eventual").history(name)), [])
        commits: dict[str, Sequence[tuple[int, float]]] = {t: read(partial(self._commits_of, t), []) for t in tables}
        explanation: Explanation | None = read(lambda: lake.explain(name), None)
        return ViewReport(
            name,
            status,
            about,
            [row for row in sources if row.way != "not known"],
            published,
            eventual,
            commits,
            of_scopes(self._rows, {name, *tables}),
            self._health[name],
            explanation,
            self._paths[name],
            lake.config.limits(name).retention_hours,
            " ".join(dict.fromkeys(wrong)),
        )

    def _commits_of(self, table: str) -> Sequence[tuple[int, float]]:
        if table not in self._commits:
            self._commits[table] = self._lake.source_commits(table)[-_COMMITS:]
        return self._commits[table]

    def _about(self, name: str) -> About:
        config = self._lake.config.view(name)
        text = f"-- {config.function}" if config.function is not None else query_text(config, self._lake.config).strip()
        log = self._lake.table_log(name)
        size = _size(log.head()) if log is not None else ""
        return About(config, text, self._reads[name], [view for view, names in self._reads.items() if name in names], size)


def _size(head: Pinned) -> str:
    size = size_text(head.bytes)
    return size if head.count is None else f"{counted(head.count, 'row')}, {size}"


def _named_by(view: str, config: Config) -> Sequence[str]:
    """The tables and views that a view names."""
    try:
        return reads(view, config).names
    except LakeError:  # its report says why
        return ()


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
