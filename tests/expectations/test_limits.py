"""The limits that a user sets: each is reached on purpose, and what is within it passes."""

from __future__ import annotations

import pytest

from expectations.results import Measure
from tests.lakes import TestLake


@pytest.fixture
def sales(lake: TestLake) -> TestLake:
    """A view of three rows on both paths, over one table."""
    lake.table("s", "SELECT * FROM VALUES (1, 10), (2, 20), (3, 30) AS t(id, x)", key=["id"])
    lake.view("v", "SELECT id, x FROM s", realtime=True)
    lake.refresh("v")
    lake.open.on("eventual").refresh("v")
    return lake


def measured(lake: TestLake, subject: str) -> Measure:
    """What a check of everything says of one thing."""
    (found,) = [m for m in lake.open.check("v").measures if m.subject == subject]
    return found


def limited(lake: TestLake, **quality: object) -> None:
    """Other limits of the view's."""
    lake.view("v", lake.views["v"]["query"], realtime=True, quality=quality)


@pytest.mark.parametrize(
    ("text", "missing", "surplus"),
    [
        ("DELETE FROM {v} WHERE id = 1", 1, 0),
        ("INSERT INTO {v} VALUES (1, 10)", 0, 1),
        ("UPDATE {v} SET x = 11 WHERE id = 1", 1, 1),
        ("INSERT INTO {v} VALUES (9, 90)", 0, 1),
        ("UPDATE {v} SET x = NULL WHERE id < 3", 2, 2),
    ],
)
def test_whatever_the_strong_view_has_wrong_is_counted(sales: TestLake, text: str, missing: int, surplus: int) -> None:
    """Removed, doubled, altered, left over."""
    with sales.as_if_published("v"):
        sales.sql(text)
    found = measured(sales, "rows that differ from the query")
    assert (found.status, found.rows) == ("failed", missing + surplus)
    assert f"{missing} missing, {surplus} too many" in found.detail


def test_a_class_of_differences_fails_over_its_threshold(sales: TestLake) -> None:
    with sales.as_if_published("v", "eventual"):
        sales.spark.sql(f"UPDATE delta.`{sales.path('views')}/v__realtime` SET x = 11 WHERE id = 1")
    states = {}
    for threshold in (0, 0.3, 0.4, 1, None):
        limited(sales, thresholds={"wrong_value": threshold})
        states[threshold] = measured(sales, "wrong_value").status
    assert states == {0: "failed", 0.3: "failed", 0.4: "passed", 1: "passed", None: "passed"}


def test_a_difference_must_not_live_for_long(sales: TestLake) -> None:
    sales.sql("UPDATE {s} SET x = 11 WHERE id = 1")
    sales.refresh("v")
    assert measured(sales, "oldest difference").status == "passed"
    limited(sales, converge_seconds=0.001)
    assert measured(sales, "oldest difference").status == "failed"
    sales.open.on("eventual").refresh("v")
    assert measured(sales, "oldest difference").status == "passed"


def test_changes_that_can_be_gone_fail_before_they_are_asked_for(sales: TestLake) -> None:
    assert measured(sales, "changes of s readable for").status == "passed"
    kept = "'delta.logRetentionDuration' = 'interval 1 second', 'delta.deletedFileRetentionDuration' = 'interval 1 second'"
    sales.sql(f"ALTER TABLE {{s}} SET TBLPROPERTIES ({kept})", "UPDATE {s} SET x = 11 WHERE id = 1")
    found = sales.open.check("v")
    (gone,) = [m for m in found.measures if m.subject == "changes of s readable for"]
    assert (gone.status, gone.severity, gone.command) == ("failed", "critical", "lakejoin rebuild v")
    assert gone.finding in {f.id for f in found.open}


def test_a_table_that_nobody_writes_to_is_not_fresh(sales: TestLake) -> None:
    sales.tables["s"]["fresh_seconds"], sales._open = 0.001, None
    late = measured(sales, "age of the newest commit")
    assert (late.status, late.severity) == ("failed", "warning")
    sales.tables["s"]["fresh_seconds"], sales._open = 3_600, None
    assert measured(sales, "age of the newest commit").status == "passed"


def test_a_load_that_came_twice_and_columns_that_changed_are_seen(sales: TestLake) -> None:
    assert [measured(sales, "rows").status for _ in range(3)] == ["passed"] * 3
    sales.sql("INSERT INTO {s} SELECT id + 10, x FROM {s}", "INSERT INTO {s} SELECT id + 20, x FROM {s} WHERE id < 10")
    twice = measured(sales, "rows")
    assert (twice.status, twice.severity, twice.value) == ("failed", "warning", 9)
    sales.sql("ALTER TABLE {s} ADD COLUMN y INT")
    changed = measured(sales, "columns")
    assert (changed.status, changed.value) == ("failed", 1)
    assert "y int" in changed.cause
    assert measured(sales, "columns").status == "passed"


def test_a_change_feed_with_a_gap_warns(sales: TestLake) -> None:
    assert measured(sales, "change feed").status == "passed"
    off, on = (f"ALTER TABLE {{s}} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = '{how}')" for how in ("false", "true"))
    sales.sql(off, "UPDATE {s} SET x = 11 WHERE id = 1", on)
    gap = measured(sales, "change feed")
    assert (gap.status, gap.severity) == ("failed", "warning")
    sales.refresh("v")
    sales.assert_exact("v")
    assert measured(sales, "change feed").status == "passed"
