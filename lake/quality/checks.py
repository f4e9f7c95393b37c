"""Runs all checks of some views and of their source tables: measures, judges, stores, renders and reports.

sources, views → measurements → Great Expectations → quality_results → findings → log and webhook
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from lake import Lakehouse
from lake.errors import LakeError
from lake.quality import data_docs, suites
from lake.quality.findings import Event, Finding, events_as_json, findings
from lake.quality.health import dependents
from lake.quality.measurements import MEASURED, OWN, PUBLISHING, Measurement, Row, row_of
from lake.quality.notices import store_and_report
from lake.quality.results import QualityResults
from lake.quality.sources import SourceChecks, guarded
from lake.quality.views import ViewChecks, resolved_measurement, with_versions


@dataclass(frozen=True)
class Checked:
    """The result of a run of checks. `measures`: what each check measured; `open`: the findings that are not resolved; `reported`: those
    that this run opened, escalated or resolved; `pages`: the address of the Data Docs."""

    run: str
    time: datetime
    measures: tuple[Measurement, ...]
    open: tuple[Finding, ...]
    reported: tuple[tuple[Event, Finding], ...]
    pages: str

    @property
    def exit_code(self) -> int:
        """1 if a critical finding is open and not snoozed; otherwise 3 if a check could not run; otherwise 0."""
        if any(f.severity == "critical" and not f.is_snoozed(self.time) for f in self.open):
            return 1
        return 3 if any(m.status == "broken" for m in self.measures) else 0

    @property
    def events(self) -> list[dict[str, Any]]:
        """The reported findings as JSON, each with its event."""
        return events_as_json(self.reported)

    def to_json(self) -> dict[str, Any]:
        checks = [{**_fields(m), "status": m.status, "finding": m.finding if m.status == "failed" else None} for m in self.measures]
        found = [f.to_json() for f in self.open]
        return {
            "run": self.run,
            "time": self.time,
            "exit_code": self.exit_code,
            "checks": checks,
            "findings": found,
            "events": self.events,
            "docs": self.pages,
        }


class Checks:
    """The checks of a lakehouse, for one run."""

    def __init__(self, lake: Lakehouse) -> None:
        self._lake = lake

    def run(self, views: Sequence[str]) -> Checked:
        """Check the views, and each of their source tables once. Raises ConfigError for an unknown view."""
        run, now = uuid.uuid4().hex[:12], datetime.now(UTC)
        order = self._lake.in_order(views)
        tables = list(dict.fromkeys(t for view in order for t in self._bases(view)))
        before = QualityResults(self._lake).recent()
        by_scope = defaultdict[str, list[Row]](list)
        for row in before:
            if row.kind == "result":
                by_scope[row.scope].append(row)
        found: list[Measurement] = []
        validations: dict[str, dict[str, Any]] = {}
        for table in tables:
            source = SourceChecks(self._lake, table, by_scope[table], self._read(table))
            found += guarded(source.measures, table, "source", "table", source.shown)
        for name in order:
            view = ViewChecks(self._lake, name, by_scope[name])
            measured = view.measures()
            found += guarded(lambda m=measured, v=name: with_versions(m, self._lake, v), name, "view", "table", view.shown)  # type: ignore[misc]
            if view.validation:
                validations[f"{name}{OWN}"] = view.validation
        found += _no_longer_checked(findings(before).values(), found)
        for scope in [*tables, *order]:
            judged = [m for m in found if m.scope == scope and m.expectation == MEASURED and m.met is None]
            if judged:
                validations[scope] = suites.validate_measurements(scope, judged)
        rows = [row_of(m, run, now, self._owner(m.scope)) for m in found]
        return self._stored(run, now, before, rows, found, validations)

    def _stored(
        self,
        run: str,
        now: datetime,
        before: Sequence[Row],
        rows: Sequence[Row],
        found: Sequence[Measurement],
        validations: Mapping[str, Mapping[str, Any]],
    ) -> Checked:
        now_found, changed = store_and_report(self._lake, before, rows, now, self.dependents)
        place = data_docs.write(self._lake, run, validations)
        checked = {m.scope for m in found}
        unresolved = tuple(f for f in now_found.values() if f.open and f.scope in checked)
        return Checked(run, now, tuple(found), unresolved, tuple(changed), place)

    @cached_property
    def dependents(self) -> dict[str, tuple[str, ...]]:
        """By table or view, the views that read it, directly or not."""
        return dependents(self._lake)

    def _bases(self, view: str) -> Sequence[str]:
        try:
            return self._lake.bases_below(view)
        except LakeError:
            return ()

    @cached_property
    def _snapshots(self) -> dict[str, Mapping[str, int]]:
        """The snapshot of base tables that each view was built from; empty for a view that is not built or that another writer changed."""
        found = dict[str, Mapping[str, int]]()
        for view in self._lake.config.views:
            with suppress(LakeError):
                published = self._lake.published_version(view)
                found[view] = published[1] if published is not None else {}
        return found

    def _read(self, table: str) -> dict[str, int]:
        """Up to which version each view has read a table."""
        return {view: answers[table] for view, answers in self._snapshots.items() if table in answers}

    def _owner(self, scope: str) -> str:
        """A view's owner; a table's are those of the views that read it."""
        views = self._lake.config.views
        named = [scope] if scope in views else self.dependents.get(scope, ())
        return ", ".join(dict.fromkeys(owner for view in named if (owner := views[view].owner)))


def _fields(measure: Measurement) -> dict[str, Any]:
    return {name: value for name, value in asdict(measure).items() if name != "description"}


def _no_longer_checked(known: Iterable[Finding], found: Sequence[Measurement]) -> list[Measurement]:
    """Resolves findings of checks that no longer exist: of an edited expectation, of a key that is no longer declared. (The findings of a
    view or table are left as they are while one of its checks cannot run.)"""
    made = {m.finding for m in found}
    complete = {m.scope for m in found} - {m.scope for m in found if m.status == "broken"}
    left = [f for f in known if f.open and f.scope in complete and f.id not in made and f.check != PUBLISHING]
    return [resolved_measurement(f.scope, f.check, f.subject, "not checked any more") for f in left]
