"""What stops a refresh before its commit: expectations of a view with `on_failure: block`, held against the rows about to be published."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from lake import Lakehouse
from lake.config.models import ExpectationConfig
from lake.config.view_sources import expectations_of
from lake.errors import BlockedError
from lake.quality.decisions import decided
from lake.quality.findings import Event, Finding, told_as_json
from lake.quality.notices import kept
from lake.quality.results import PUBLISHING, Measure, QualityResults, finding_id, row_of
from lake.quality.suites import meets, of_rows
from lake.quality.views import measure_of, named
from lake.refresh.run import Candidate


@contextmanager
def _kept_in_memory(rows: DataFrame) -> Iterator[DataFrame]:
    """The rows, computed once however many expectations are held against them; not at all where none is."""
    try:
        yield rows.persist()
    finally:
        rows.unpersist()


class Blocking:
    """Refuses what does not meet the view's blocking expectations: the rows that change, where each row meets one by itself, and all rows.

    `accept`: findings that are not to stop it this once; that is kept, too.
    """

    def __init__(self, lake: Lakehouse, view: str, accept: Collection[str]) -> None:
        self._lake, self._view, self._accept = lake, view, set(accept)

    def __call__(self, candidate: Candidate) -> None:
        """Raise BlockedError naming what is not met, by how many rows, and some of them."""
        asked = [e for e in expectations_of(self._lake.config, self._view) if e.on_failure == "block"]
        found = self._held("among the rows that change", candidate.changed, [e for e in asked if of_rows(e)])
        failed = {m.finding: m for m in found if m.status in ("failed", "broken")}
        left = [e for e in asked if finding_id(self._view, PUBLISHING, named(e)) not in failed]
        with _kept_in_memory(candidate.whole) as whole:
            found += self._held("in the view as it would be", whole, left)
        failed = {m.finding: m for m in found if m.status in ("failed", "broken")}
        accepted = [name for name in failed if name in self._accept]
        blocking = [measure for name, measure in failed.items() if name not in self._accept]
        told = self._kept([*failed.values()], candidate)
        for name in accepted:
            decided(self._lake, "accept", name, f"may be published at {candidate.stamp.snapshot}")
        if blocking:
            raise BlockedError(self._text(blocking, candidate), told_as_json(told))

    def _held(self, where: str, rows: DataFrame, asked: list[ExpectationConfig]) -> list[Measure]:
        if not asked:
            return []
        _, found = meets(self._view, rows, asked, self._lake.shown(self._view), self._lake.definition_key(self._view))
        return [measure_of(self._view, met, where, PUBLISHING) for met in found]

    def _kept(self, failed: list[Measure], candidate: Candidate) -> list[tuple[Event, Finding]]:
        """Keep what is not met, and tell of it; returns what was told."""
        if not failed:
            return []
        now, run = datetime.now(UTC), uuid.uuid4().hex[:12]
        owner, snapshot = self._lake.config.view(self._view).owner or "", dict(candidate.stamp.snapshot)
        rows = [row_of(replace(m, snapshot=snapshot), run, now, owner) for m in failed]
        return kept(self._lake, QualityResults(self._lake).recent(), rows, now)[1]

    def _text(self, blocking: list[Measure], candidate: Candidate) -> str:
        said = []
        for measure in blocking:
            observed = "what was observed is kept back" if measure.value is None else f"observed {measure.value}"
            many = f"{measure.rows:,} rows do not meet it" if measure.rows is not None else observed
            some = f", such as {', '.join(str(dict(s)) for s in measure.samples)}" if measure.samples else ""
            said.append(f"{measure.finding}: {measure.subject} {measure.detail}: {measure.broken or many + some}")
        accept = " ".join(f"--accept {m.finding}" for m in blocking)
        return (
            f"View {self._view!r} was not published at {candidate.stamp.snapshot}: {'; '.join(said)}. The published view is as it was. "
            f'Mend the sources, or publish it all the same: "lakejoin refresh {self._view} {accept}" (rebuild takes it, too).'
        )
