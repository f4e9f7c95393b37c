"""Stops a refresh before its commit if the rows to be published do not meet an expectation with `on_failure: block`."""

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
from lake.quality.decisions import record_decision
from lake.quality.findings import Event, Finding, events_as_json
from lake.quality.measurements import PUBLISHING, Measurement, finding_id, row_of
from lake.quality.notices import store_and_report
from lake.quality.results import QualityResults
from lake.quality.suites import of_rows, validate_rows
from lake.quality.views import expectation_text, measurement_of
from lake.refresh.compute import Candidate


@contextmanager
def _persisted(rows: DataFrame) -> Iterator[DataFrame]:
    """The rows, persisted lazily: computed once for all expectations, and not at all if there are none."""
    try:
        yield rows.persist()
    finally:
        rows.unpersist()


class Blocking:
    """Checks the blocking expectations of a view: row-level expectations on the changed rows, and all others on all rows.

    `accept`: findings that do not stop this refresh; each acceptance is stored.
    """

    def __init__(self, lake: Lakehouse, view: str, accept: Collection[str]) -> None:
        self._lake, self._view, self._accept = lake, view, set(accept)

    def __call__(self, candidate: Candidate) -> None:
        """Raise BlockedError with each expectation that is not met, the number of rows that do not meet it, and samples of them."""
        asked = [e for e in expectations_of(self._lake.config, self._view) if e.on_failure == "block"]
        found = self._validated("among the rows that change", candidate.changed, [e for e in asked if of_rows(e)])
        failed = {m.finding: m for m in found if m.status in ("failed", "broken")}
        left = [e for e in asked if finding_id(self._view, PUBLISHING, expectation_text(e)) not in failed]
        with _persisted(candidate.whole) as all_rows:
            found += self._validated("in the view as it would be", all_rows, left)
        failed = {m.finding: m for m in found if m.status in ("failed", "broken")}
        accepted = [name for name in failed if name in self._accept]
        blocking = [measure for name, measure in failed.items() if name not in self._accept]
        reported = self._stored([*failed.values()], candidate)
        for name in accepted:
            record_decision(self._lake, "accept", name, f"may be published at {candidate.stamp.snapshot}")
        if blocking:
            raise BlockedError(self._text(blocking, candidate), events_as_json(reported))

    def _validated(self, where: str, rows: DataFrame, asked: list[ExpectationConfig]) -> list[Measurement]:
        if not asked:
            return []
        _, found = validate_rows(self._view, rows, asked, self._lake.shown(self._view), self._lake.definition_key(self._view))
        return [measurement_of(self._view, met, where, PUBLISHING) for met in found]

    def _stored(self, failed: list[Measurement], candidate: Candidate) -> list[tuple[Event, Finding]]:
        """Store the expectations that are not met, and report their findings; returns what was reported."""
        if not failed:
            return []
        now, run = datetime.now(UTC), uuid.uuid4().hex[:12]
        owner, snapshot = self._lake.config.view(self._view).owner or "", dict(candidate.stamp.snapshot)
        rows = [row_of(replace(m, snapshot=snapshot), run, now, owner) for m in failed]
        return store_and_report(self._lake, QualityResults(self._lake).recent(), rows, now)[1]

    def _text(self, blocking: list[Measurement], candidate: Candidate) -> str:
        texts = []
        for measure in blocking:
            observed = "the observed value may not be shown" if measure.value is None else f"observed {measure.value}"
            many = f"{measure.rows:,} rows do not meet it" if measure.rows is not None else observed
            some = f", such as {', '.join(str(dict(s)) for s in measure.samples)}" if measure.samples else ""
            texts.append(f"{measure.finding}: {measure.subject} {measure.detail}: {measure.broken or many + some}")
        accept = " ".join(f"--accept {m.finding}" for m in blocking)
        return (
            f"View {self._view!r} was not published at {candidate.stamp.snapshot}: {'; '.join(texts)}. The published view has not changed. "
            f'Correct the sources, or publish in spite of this: "lakejoin refresh {self._view} {accept}" (rebuild has the same option).'
        )
