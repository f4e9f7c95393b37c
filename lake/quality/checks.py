"""All checks of some views and of what they read: measured, judged by Great Expectations, kept, shown on pages, and told where they matter.

sources, views → measures → Great Expectations → quality_results → findings → who is to know
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
from lake.quality.findings import Event, Finding, findings, told_as_json
from lake.quality.notices import kept
from lake.quality.results import MEASURED, OWN, PUBLISHING, Measure, QualityResults, Row, row_of
from lake.quality.sources import Source, guarded
from lake.quality.standing import scopes
from lake.quality.views import View, over, with_versions


@dataclass(frozen=True)
class Checked:
    """What came of a run of checks. `open`: what is wrong now, `told`: what has changed in that; `pages`: where the Data Docs are."""

    run: str
    time: datetime
    measures: tuple[Measure, ...]
    open: tuple[Finding, ...]
    told: tuple[tuple[Event, Finding], ...]
    pages: str

    @property
    def exit_code(self) -> int:
        """1 where something is wrong that is critical and that nobody has put off; else 3 where a check could not run."""
        if any(f.severity == "critical" and not f.asleep(self.time) for f in self.open):
            return 1
        return 3 if any(m.status == "broken" for m in self.measures) else 0

    @property
    def events(self) -> list[dict[str, Any]]:
        """What was told, for machines."""
        return told_as_json(self.told)

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
        """Check the views, and once each of their source tables. Raises ConfigError for a view that there is not."""
        run, now = uuid.uuid4().hex[:12], datetime.now(UTC)
        order = self._lake.in_order(views)
        tables = list(dict.fromkeys(t for view in order for t in self._bases(view)))
        before = QualityResults(self._lake).recent()
        by_scope = defaultdict[str, list[Row]](list)
        for row in before:
            if row.kind == "result":
                by_scope[row.scope].append(row)
        found: list[Measure] = []
        told: dict[str, dict[str, Any]] = {}
        for table in tables:
            source = Source(self._lake, table, by_scope[table], self._read(table))
            found += guarded(source.measures, table, "source", "table", source.shown)
        for name in order:
            view = View(self._lake, name, by_scope[name])
            measured = view.measures()
            found += guarded(lambda m=measured, v=name: with_versions(m, self._lake, v), name, "view", "table", view.shown)  # type: ignore[misc]
            if view.told:
                told[f"{name}{OWN}"] = view.told
        found += _given_up(findings(before).values(), found)
        for scope in [*tables, *order]:
            judged = [m for m in found if m.scope == scope and m.expectation == MEASURED and m.met is None]
            if judged:
                told[scope] = suites.measured(scope, judged)
        rows = [row_of(m, run, now, self._owner(m.scope)) for m in found]
        return self._kept(run, now, before, rows, found, told)

    def _kept(
        self,
        run: str,
        now: datetime,
        before: Sequence[Row],
        rows: Sequence[Row],
        found: Sequence[Measure],
        told: Mapping[str, Mapping[str, Any]],
    ) -> Checked:
        now_found, changed = kept(self._lake, before, rows, now, self.dependents)
        place = data_docs.write(self._lake, run, told)
        checked = {m.scope for m in found}
        still = tuple(f for f in now_found.values() if f.open and f.scope in checked)
        return Checked(run, now, tuple(found), still, tuple(changed), place)

    @cached_property
    def dependents(self) -> dict[str, tuple[str, ...]]:
        """By table or view, the views that read it, directly or not."""
        found: dict[str, list[str]] = {}
        for view in self._lake.config.views:
            for below in scopes(self._lake, view) - {view}:
                found.setdefault(below, []).append(view)
        return {name: tuple(views) for name, views in found.items()}

    def _bases(self, view: str) -> Sequence[str]:
        try:
            return self._lake.bases_below(view)
        except LakeError:
            return ()

    @cached_property
    def _answers(self) -> dict[str, Mapping[str, int]]:
        """The base tables' versions that each view answers for; of none that is not built, or that somebody else wrote."""
        found = dict[str, Mapping[str, int]]()
        for view in self._lake.config.views:
            with suppress(LakeError):
                published = self._lake.published_version(view)
                found[view] = published[1] if published is not None else {}
        return found

    def _read(self, table: str) -> dict[str, int]:
        """Up to which version each view has read a table."""
        return {view: answers[table] for view, answers in self._answers.items() if table in answers}

    def _owner(self, scope: str) -> str:
        """A view's owner; a table's are those of the views that read it."""
        views = self._lake.config.views
        named = [scope] if scope in views else self.dependents.get(scope, ())
        return ", ".join(dict.fromkeys(owner for view in named if (owner := views[view].owner)))


def _fields(measure: Measure) -> dict[str, Any]:
    return {name: value for name, value in asdict(measure).items() if name != "description"}


def _given_up(known: Iterable[Finding], found: Sequence[Measure]) -> list[Measure]:
    """Ends what was found by checks that are not made any more: of an expectation that was edited, a key that is not declared now. (Where
    some check of a view or table could not run, that is left for later.)"""
    made = {m.finding for m in found}
    whole = {m.scope for m in found} - {m.scope for m in found if m.status == "broken"}
    left = [f for f in known if f.open and f.scope in whole and f.id not in made and f.check != PUBLISHING]
    return [over(f.scope, f.check, f.subject, "not checked any more") for f in left]
