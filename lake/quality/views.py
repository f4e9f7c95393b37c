"""Checks of a view: exact, its two paths agreeing, how long they differ, how long its changes stay readable, what its rows have to meet."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Any

from lake import Lakehouse
from lake.config.models import ExpectationConfig
from lake.config.view_sources import expectations_of
from lake.core.kinds import CLASSES
from lake.core.redaction import Samples
from lake.core.results import Differences
from lake.operations.verify import Share
from lake.quality.builtin import SuiteName, suite
from lake.quality.findings import findings
from lake.quality.results import CHECK, PUBLISHING, Measure, Row
from lake.quality.sources import guarded
from lake.quality.suites import Met, meets
from lake.realtime.metrics import quantile
from lake.spark.session import own_session
from lake.views.table import Publication, of_refreshes


@dataclass
class View:
    """A view to be checked. `before`: the results of its checks until now. Afterwards `told` is Great Expectations' result on its rows, and
    `exact` says whether they were its query's answer, all of them."""

    lake: Lakehouse
    name: str
    before: Sequence[Row]
    told: dict[str, Any] | None = None
    exact: bool = False

    def measures(self) -> list[Measure]:
        """What each check measured, or why it could not."""
        found: list[Measure] = []
        for subject, check in (
            ("exactness", self._exact),
            ("agreement", self._agreement),
            ("convergence", self._convergence),
            ("retention", self._retention),
            ("expectations", self._own),
            (PUBLISHING, self._publishing),
        ):
            found += guarded(lambda check=check: list(check()), self.name, subject, subject, self.shown)  # type: ignore[misc]
        return found

    @property
    def shown(self) -> Samples:
        """How much of its rows may be shown."""
        return self.lake.shown(self.name)

    def _exact(self) -> Iterator[Measure]:
        share = self._part()
        found = self.lake.verify(self.name, share)
        wrong, shown = len(found), found.sampled(self.shown)
        self.exact = found.exact and share.of == 1
        yield self._measure(
            "view",
            "exactness",
            float(wrong),
            rows=wrong,
            share=wrong / max(1, found.rows),
            part=str(share),
            detail=f"{found.missing:,} missing, {found.surplus:,} too many, of {found.rows:,} rows compared (part {share} of the keys)",
            samples=_side_by_side(shown),
            snapshot=dict(found.snapshot),
        )

    def _part(self) -> Share:
        """The part of the keys after the one that was compared last, or that one again where it was not exact: only it can tell what is
        mended."""
        parts = self.lake.config.limits(self.name).parts
        done = [row for row in self.before if row.check == "exactness" and row.status in ("passed", "failed")]
        if not done or not done[-1].part:
            return Share(1, parts)
        part, of = map(int, done[-1].part.split("/"))
        if done[-1].status == "failed":
            return Share(part, of)
        return Share(part % parts + 1 if of == parts else 1, parts)

    def _agreement(self) -> Iterator[Measure]:
        if self.lake.on("eventual").table_log(self.name) is None:
            return
        found, limits = self.lake.agreement(self.name, self.exact), self.lake.config.limits(self.name)
        by_name = {c.name: c for c in found.classes}
        for name in CLASSES:
            decided, rows = name == "undecidable" or not found.reason, found.count(name)
            most = limits.thresholds.get(name, suite("realtime").defaults[name])
            pairs = by_name[name].samples if name in by_name else ()
            shown = partial(self.shown, key=found.key)
            samples = ({"real time": shown(row), "strong": other and shown(other)} for row, other in pairs)
            yield self._measure(
                "realtime",
                name,
                float(rows) if decided else None,
                {name: most * found.rows if most is not None and 0 < most < 1 else most},
                rows=rows if decided else None,
                share=rows / max(1, found.rows) if decided else None,
                detail=found.reason or f"the real-time path is {found.position}: {found.eventual}, the strong one at {found.strong}",
                undecidable=not decided or (name == "undecidable" and rows > 0 and most is None),
                samples=tuple(s for s in samples if s["real time"] is not None),
                snapshot=dict(found.eventual),
            )

    def _convergence(self) -> Iterator[Measure]:
        strong, eventual = (of_refreshes(lake.history(self.name)) for lake in (self.lake, self.lake.on("eventual")))
        if not strong or not eventual:
            return
        lived, living = lifetimes(strong, eventual, datetime.now(UTC).timestamp())
        detail = f"{len(lived):,} differences ended, {len(living):,} have not"
        for key, share in (("lifetime_median", 0.5), ("lifetime_p95", 0.95)):
            yield self._measure("realtime", key, quantile(lived, share) or 0.0, detail=detail)
        limit = {"converge_seconds": self.lake.config.limits(self.name).converge_seconds}
        yield self._measure("realtime", "oldest_difference", max(living, default=0.0), limit, detail=detail)

    def _retention(self) -> Iterator[Measure]:
        yield from self._readable(self.lake, "view", f"lakejoin rebuild {self.name}")
        eventual = self.lake.on("eventual")
        if eventual.table_log(self.name) is not None:
            yield from self._readable(eventual, "realtime", f"lakejoin realtime {self.name} --reset")

    def _readable(self, path: Lakehouse, kind: SuiteName, restart: str) -> Iterator[Measure]:
        """How long the next interval of a path can be read. `restart`: the command for a path whose changes are no longer available."""
        limit = self.lake.config.limits(self.name).retention_hours
        for row in path.status(self.name):
            kept = (row.kept or 0.0) / 3600
            left = min(kept, row.expires_in / 3600) if row.expires_in is not None else kept
            expired: dict[str, Any] = {"severity": "critical", "command": restart} if left <= 0 else {}
            yield self._measure(
                kind,
                "retention",
                left if row.published is not None else None,
                {"source": row.source, "retention_hours": min(limit, kept / 4)},
                detail=f"at version {row.published}, the newest is {row.newest}",
                broken="" if row.published is not None else "the view has not been built yet",
                **expired,
            )

    def _measure(
        self, kind: SuiteName, key: str, value: float | None, parameters: Mapping[str, Any] = MappingProxyType({}), **observed: Any
    ) -> Measure:
        """A measured value, to be judged by a built-in suite."""
        return suite(kind).measure(key, self.name, value, {"view": self.name, **parameters}, **observed)

    def _own(self) -> Iterator[Measure]:
        asked = expectations_of(self.lake.config, self.name)
        if not asked:
            return
        apart = Lakehouse(self.lake.config, own_session(self.lake.spark))  # Great Expectations makes a temporary view
        self.told, found = meets(self.name, apart.read(self.name), asked, self.shown, self.lake.definition_key(self.name))
        yield from (measure_of(self.name, met) for met in found)

    def _publishing(self) -> Iterator[Measure]:
        """What stopped a refresh, where the view has been published since."""
        stopped = [f for f in findings(self.before).values() if f.check == PUBLISHING and f.open]
        published = max((p.committed for p in self.lake.history(self.name)), default=0.0) if stopped else 0.0
        for finding in stopped:
            if published > finding.last_seen.timestamp():
                yield over(self.name, PUBLISHING, finding.subject, "published since")


def _side_by_side(found: Differences) -> tuple[dict[str, Any], ...]:
    """Samples by their keys: the row that is missing beside the one that stands in its place."""
    pairs: dict[str, dict[str, Any]] = {}
    for number, sample in enumerate(found):
        key = str([sample.row[name] for name in found.key]) if found.key else str(number)
        pairs.setdefault(key, {})["query" if sample.weight > 0 else "view"] = sample.row
    return tuple(pairs.values())


def named(expectation: ExpectationConfig) -> str:
    """An expectation in a line: its finding's subject."""
    return f"{expectation.type}({', '.join(f'{name}={value!r}' for name, value in expectation.kwargs.items())})"


def over(scope: str, check: str, subject: str, why: str) -> Measure:
    """Says of what a check found that it is over."""
    return Measure(scope, check, subject, None, "", detail=why, met=True, expectation="")


def measure_of(view: str, met: Met, where: str = "", check: str = CHECK) -> Measure:
    """What came of an expectation of a user's. `where`: among which rows."""
    blocks = met.expectation.on_failure == "block"
    return Measure(
        view,
        check,
        named(met.expectation),
        float(met.rows) if met.rows is not None else met.observed,
        "rows" if met.rows is not None else "",
        severity="critical" if blocks else "warning",
        rows=met.rows,
        share=met.share / 100 if met.share is not None else None,
        detail=where,
        cause="a source's rows are not as expected, or the query is wrong",
        command=f"lakejoin show {view}",
        broken=met.error,
        samples=met.samples,
        expectation=met.expectation.type,
        met=met.met,
    )


def lifetimes(strong: Sequence[Publication], eventual: Sequence[Publication], now: float) -> tuple[list[float], list[float]]:
    """How long (seconds) the paths differed by what one had published and the other not yet: of what has ended, and of what has not.

    Looked at are the publications since the first of the real-time path that is still known.
    """
    lived, living = list[float](), list[float]()
    for one, other in ((strong, eventual), (eventual, strong)):
        for published in one:
            if published.committed < eventual[0].committed:
                continue
            wanted = published.stamp.answers_for
            at = bisect_left(other, True, key=lambda p, wanted=wanted: reached(p.stamp.answers_for, wanted))  # type: ignore[misc]
            if at == len(other):
                living.append(max(0.0, now - published.committed))
            elif other[at].committed > published.committed:
                lived.append(other[at].committed - published.committed)
    return lived, living


def reached(snapshot: Mapping[str, int], wanted: Mapping[str, int]) -> bool:
    """Whether a snapshot has all that another one has."""
    return all(snapshot.get(table, -1) >= number for table, number in wanted.items())


def with_versions(measures: Sequence[Measure], lake: Lakehouse, view: str) -> list[Measure]:
    """The measures of a view with the versions of its table and of its sources."""
    published = lake.published_version(view)
    if published is None:
        return list(measures)
    version, snapshot = published
    return [replace(m, version=version, snapshot=m.snapshot or snapshot) for m in measures]
