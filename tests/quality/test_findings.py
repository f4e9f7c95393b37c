"""Findings follow from results alone: opened, ongoing, escalated, put off, resolved."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.core.snapshots import Snapshot, Version
from lake.core.stamp import Stamp
from lake.quality.findings import events, findings
from lake.quality.measurements import Measurement, Row, row_of
from lake.quality.views import lifetimes
from lake.views.table import Publication

START = datetime(2026, 1, 1, tzinfo=UTC)


def result(hour: int, value: float | None, severity: str = "critical") -> Row:
    measure = Measurement("v", "exactness", "rows", value, "rows", most=0, severity=severity)  # type: ignore[arg-type]
    return row_of(measure, f"run{hour}", START + timedelta(hours=hour), "me")


def snooze(row: Row, hour: int, until: int) -> Row:
    return replace(row, kind="snooze", time=START + timedelta(hours=hour), until=START + timedelta(hours=until), detail="why")


def told(rows: list[Row]) -> list[str]:
    """What was told at each run."""
    found = []
    for i, row in enumerate(rows):
        if row.kind == "result":
            found.append(",".join(event for event, _ in events(findings(rows[:i]), findings(rows[: i + 1]), row.time)))
    return found


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [result(0, 0), result(1, 2), result(2, 3), result(3, 0), result(4, 0), result(5, 1)],
            ["", "opened", "", "resolved", "", "opened"],
        ),
        ([result(0, 2, "warning"), result(1, 2, "critical"), result(2, 2, "warning")], ["opened", "escalated", ""]),
        ([result(0, 2), result(1, None), result(2, 2)], ["opened", "", ""]),
        ([result(0, 2), snooze(result(0, 2), 1, 9), result(2, 3), result(3, 0)], ["opened", "", "resolved"]),
        ([result(0, 2), snooze(result(0, 2), 1, 4), result(2, 2), result(5, 2), result(6, 2)], ["opened", "", "opened", ""]),
        ([result(0, 2, "warning"), snooze(result(0, 2), 1, 9), result(2, 3, "critical")], ["opened", "escalated"]),
    ],
)
def test_who_is_to_know_is_told_once(rows: list[Row], expected: list[str]) -> None:
    assert told(rows) == expected


@settings(deadline=None)  # the first example loads modules
@given(st.lists(st.sampled_from([0.0, 1.0, None]), max_size=12))
def test_a_finding_is_opened_as_often_as_it_is_resolved_or_still_there(values: list[float | None]) -> None:
    rows = [result(i, value) for i, value in enumerate(values)]
    said = told(rows)
    still = any(f.state != "resolved" for f in findings(rows).values())
    assert said.count("opened") == said.count("resolved") + still


def published(at: float, **versions: int) -> Publication:
    snapshot = Snapshot({t: Version("id", n) for t, n in versions.items()})
    return Publication(0, at, Stamp("v", 1, "r", 0, snapshot, "incremental", {}), 0, 0)


def test_what_was_seen_longer_ago_than_results_are_read_is_neither_new_nor_awake() -> None:
    """Its first results are not read any more; later ones, and what put it off, say what they said."""
    first = result(0, 1)
    later = replace(result(9, 2), first_seen=first.time)
    assert [f.first_seen for f in findings([later]).values()] == [first.time]
    assert [f.state for f in findings([later]).values()] == ["ongoing"]
    (known,) = findings([snooze(first, 1, 99), later]).values()
    assert (known.state, known.is_snoozed(later.time), known.reason) == ("ongoing", True, "why")
    assert told([snooze(first, 1, 99), later]) == [""]


def test_a_difference_lives_until_the_other_path_has_what_made_it() -> None:
    strong = [published(0, a=0, b=0), published(100, a=2, b=1)]
    eventual = [published(0, a=0, b=0), published(10, a=1, b=0), published(20, a=1, b=1), published(130, a=3, b=1)]
    lived, living = lifetimes(strong, eventual, now=200)
    assert sorted(lived) == [30, 80, 90]
    assert living == [70]
