"""Measures a view: exactness, agreement and convergence of its two paths, how long its changes stay readable, users' expectations."""

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
from lake.core.constants import CLASSES
from lake.core.redaction import Samples
from lake.core.results import Differences
from lake.operations.verify import Share
from lake.quality.builtin import SuiteName, suite
from lake.quality.findings import findings
from lake.quality.measurements import CHECK, PUBLISHING, Measurement, Row
from lake.quality.sources import guarded
from lake.quality.suites import ExpectationResult, validate_rows
from lake.realtime.metrics import quantile
from lake.spark.session import own_session
from lake.views.table import Publication, of_refreshes, published_and_others

_TOLD = 3
"""How many commits of somebody else a finding describes."""


@dataclass
class ViewChecks:
    """The checks of a view. `before`: its earlier results, oldest first. `measures` sets `validation`, Great Expectations' result on its
    rows as JSON, and `exact`: whether all rows were compared with the query and none differs."""

    lake: Lakehouse
    name: str
    before: Sequence[Row]
    validation: dict[str, Any] | None = None
    exact: bool = False

    def measures(self) -> list[Measurement]:
        """What each check measured, or why it could not run."""
        found: list[Measurement] = []
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

    def _exact(self) -> Iterator[Measurement]:
        share = self._part()
        found = self.lake.verify(self.name, share)
        wrong, shown = len(found), found.sampled(self.shown)
        self.exact = found.exact and share.of == 1
        yield self._writers(shown)
        compared = f"of {found.rows:,} rows compared (part {share} of the keys)" + (f"; {found.rounding}" if found.rounding.rows else "")
        cause: dict[str, Any] = {"cause": "someone else wrote to the view's table (see `writers`)"} if found.other_commits else {}
        compared += f"; {found.paired.text(found.key)}" if found.paired is not None else ""
        yield self._measure(
            "view",
            "exactness",
            float(wrong),
            rows=wrong,
            share=wrong / max(1, found.rows),
            part=str(share),
            detail=f"{found.missing:,} missing, {found.surplus:,} too many, {compared}",
            samples=_side_by_side(shown),
            snapshot=dict(found.snapshot),
            **cause,
        )

    def _writers(self, found: Differences) -> Measurement:
        """The commits of somebody else on the view's table, and the keys of rows that they changed."""
        others = found.other_commits
        newest = "; ".join(map(str, others[-_TOLD:]))
        more = f"{len(others) - _TOLD:,} earlier ones; " if len(others) > _TOLD else ""
        samples = tuple(key for commit in others[-_TOLD:] if commit.rows is not None for key in commit.rows.samples)
        return self._measure("view", "writers", float(len(others)), detail=more + newest, samples=samples, snapshot=dict(found.snapshot))

    def _part(self) -> Share:
        """The next part of the keys, or the last one again if it was not exact: only the same part shows that a difference is resolved."""
        parts = self.lake.config.limits(self.name).parts
        done = [row for row in self.before if row.check == "exactness" and row.status in ("passed", "failed")]
        if not done or not done[-1].part:
            return Share(1, parts)
        part, of = map(int, done[-1].part.split("/"))
        if done[-1].status == "failed":
            return Share(part, of)
        return Share(part % parts + 1 if of == parts else 1, parts)

    def _agreement(self) -> Iterator[Measurement]:
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
                detail=found.reason
                or f"the real-time path is at {found.eventual}, the strong path at {found.strong} ({found.position})"
                + (f"; {found.rounding}" if found.rounding.rows else ""),
                undecidable=not decided or (name == "undecidable" and rows > 0 and most is None),
                samples=tuple(s for s in samples if s["real time"] is not None),
                snapshot=dict(found.eventual),
            )

    def _convergence(self) -> Iterator[Measurement]:
        strong, eventual = (of_refreshes(lake.history(self.name)) for lake in (self.lake, self.lake.on("eventual")))
        if not strong or not eventual:
            return
        ended, ongoing = lifetimes(strong, eventual, datetime.now(UTC).timestamp())
        detail = f"{len(ended):,} differences ended, {len(ongoing):,} have not"
        for key, share in (("lifetime_median", 0.5), ("lifetime_p95", 0.95)):
            yield self._measure("realtime", key, quantile(ended, share) or 0.0, detail=detail)
        limit = {"converge_seconds": self.lake.config.limits(self.name).converge_seconds}
        yield self._measure("realtime", "oldest_difference", max(ongoing, default=0.0), limit, detail=detail)

    def _retention(self) -> Iterator[Measurement]:
        yield from self._readable(self.lake, "view", f"lakejoin rebuild {self.name}")
        eventual = self.lake.on("eventual")
        if eventual.table_log(self.name) is not None:
            yield from self._readable(eventual, "realtime", f"lakejoin realtime {self.name} --reset")

    def _readable(self, path: Lakehouse, kind: SuiteName, restart: str) -> Iterator[Measurement]:
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
    ) -> Measurement:
        """A measured value, to be judged by a built-in suite."""
        return suite(kind).measurement(key, self.name, value, {"view": self.name, **parameters}, **observed)

    def _own(self) -> Iterator[Measurement]:
        asked = expectations_of(self.lake.config, self.name)
        if not asked:
            return
        apart = Lakehouse(self.lake.config, own_session(self.lake.spark))  # Great Expectations creates a temporary view
        self.validation, found = validate_rows(self.name, apart.read(self.name), asked, self.shown, self.lake.definition_key(self.name))
        yield from (measurement_of(self.name, met) for met in found)

    def _publishing(self) -> Iterator[Measurement]:
        """Resolves findings that stopped a refresh if the view has been published since."""
        stopped = [f for f in findings(self.before).values() if f.check == PUBLISHING and f.open]
        published = max((p.committed for p in self.lake.history(self.name)), default=0.0) if stopped else 0.0
        for finding in stopped:
            if published > finding.last_seen.timestamp():
                yield resolved_measurement(self.name, PUBLISHING, finding.subject, "published since")


def _side_by_side(found: Differences) -> tuple[dict[str, Any], ...]:
    """Samples: the row of the query beside the row of the view with the same key, and in which columns they differ; of a view without a
    key one row each."""
    if found.paired is None:
        return tuple({"query" if sample.weight > 0 else "view": sample.row} for sample in found)
    pairs = ({"key": list(found.key), **pair.to_json()} for pair in found.paired.samples)
    return tuple({name: value for name, value in pair.items() if value is not None} for pair in pairs)


def expectation_text(expectation: ExpectationConfig) -> str:
    """An expectation in one line: the subject of its finding."""
    return f"{expectation.type}({', '.join(f'{name}={value!r}' for name, value in expectation.kwargs.items())})"


def resolved_measurement(scope: str, check: str, subject: str, why: str) -> Measurement:
    """A measurement that resolves the finding of a check."""
    return Measurement(scope, check, subject, None, "", detail=why, met=True, expectation="")


def measurement_of(view: str, met: ExpectationResult, where: str = "", check: str = CHECK) -> Measurement:
    """The result of a user's expectation as a measurement. `where`: which rows were checked."""
    blocks = met.expectation.on_failure == "block"
    return Measurement(
        view,
        check,
        expectation_text(met.expectation),
        float(met.rows) if met.rows is not None else met.observed,
        "rows" if met.rows is not None else "",
        severity="critical" if blocks else "warning",
        rows=met.rows,
        share=met.share / 100 if met.share is not None else None,
        detail=where,
        cause="the rows of a source are not as expected, or the query is wrong",
        command=f"lakejoin show {view}",
        broken=met.error,
        samples=met.samples,
        expectation=met.expectation.type,
        met=met.met,
    )


def lifetimes(strong: Sequence[Publication], eventual: Sequence[Publication], now: float) -> tuple[list[float], list[float]]:
    """How long (seconds) each difference between the paths lasted that one path published before the other: the ended ones, and the others.

    Publications before the oldest known one of the real-time path are left out.
    """
    ended, ongoing = list[float](), list[float]()
    for one, other in ((strong, eventual), (eventual, strong)):
        for published in one:
            if published.committed < eventual[0].committed:
                continue
            wanted = published.stamp.answers_for
            at = bisect_left(other, True, key=lambda p, wanted=wanted: reached(p.stamp.answers_for, wanted))  # type: ignore[misc]
            if at == len(other):
                ongoing.append(max(0.0, now - published.committed))
            elif other[at].committed > published.committed:
                ended.append(other[at].committed - published.committed)
    return ended, ongoing


def reached(snapshot: Mapping[str, int], wanted: Mapping[str, int]) -> bool:
    """Whether no version of a snapshot is older than that of another one."""
    return all(snapshot.get(table, -1) >= number for table, number in wanted.items())


def with_versions(measures: Sequence[Measurement], lake: Lakehouse, view: str) -> list[Measurement]:
    """The measurements of a view with the version of its table and its snapshot."""
    published, _ = published_and_others(lake.spark, lake.view_table(view))
    if published is None or published.stamp is None:
        return list(measures)
    version, snapshot = published.pinned.version.number, dict(published.stamp.answers_for)
    return [replace(m, version=version, snapshot=m.snapshot or snapshot) for m in measures]
