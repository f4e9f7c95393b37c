"""The limits that a user sets: each is reached on purpose, and what is within it passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lake.delta import sources
from lake.errors import ExpiredError
from lake.quality import check
from lake.quality.measurements import Measurement
from tests.lakes import TestLake, read_as_large

OWN = sources.is_small


@pytest.fixture
def sales(lake: TestLake) -> TestLake:
    """A view of three rows on both paths, over one table."""
    lake.table("s", "SELECT * FROM VALUES (1, 10), (2, 20), (3, 30) AS t(id, x)", key=["id"])
    lake.view("v", "SELECT id, x FROM s", realtime=True)
    lake.refresh("v")
    lake.open.on("eventual").refresh("v")
    return lake


def measured(lake: TestLake, subject: str) -> Measurement:
    """What a check of everything says of one thing."""
    (found,) = [m for m in check(lake.open, "v").measures if m.subject == subject]
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
    found = check(sales.open, "v")
    (gone,) = [m for m in found.measures if m.subject == "changes of s readable for"]
    assert (gone.status, gone.severity, gone.command) == ("failed", "critical", "lakejoin rebuild v")
    assert gone.finding in {f.id for f in found.open}


def test_the_real_time_paths_changes_are_watched_as_well(sales: TestLake) -> None:
    kept = "'delta.logRetentionDuration' = 'interval 1 second', 'delta.deletedFileRetentionDuration' = 'interval 1 second'"
    sales.sql("UPDATE {s} SET x = 11 WHERE id = 1", f"ALTER TABLE {{s}} SET TBLPROPERTIES ({kept})")
    sales.refresh("v")
    late = measured(sales, "changes of s readable by the real-time path for")
    assert (late.status, late.command) == ("failed", "lakejoin realtime v --reset")
    assert measured(sales, "changes of s readable for").status == "passed"


def test_a_table_that_nobody_writes_to_is_not_fresh(sales: TestLake) -> None:
    sales.tables["s"]["fresh_seconds"], sales._open = 0.001, None
    late = measured(sales, "age of the newest change")
    assert (late.status, late.severity) == ("failed", "warning")
    sales.tables["s"]["fresh_seconds"], sales._open = 3_600, None
    assert measured(sales, "age of the newest change").status == "passed"


def test_a_table_that_is_only_rearranged_is_not_fresher(sales: TestLake) -> None:
    sales.sql("INSERT INTO {s} VALUES (4, 40)")
    written = sales.open.source_head("s").time
    sales.sql("OPTIMIZE {s}", "ALTER TABLE {s} SET TBLPROPERTIES ('who' = 'me')")
    head = sales.open.source_head("s")
    assert head.time > written
    assert abs(sales.open.changed_last("s") - written).total_seconds() < 1


def test_a_table_without_any_change_is_as_old_as_its_oldest_commit(lake: TestLake) -> None:
    lake.spark.sql(f"CREATE TABLE delta.`{lake.path('e')}` (id INT) USING delta")
    lake.tables["e"] = {"path": "e"}
    made = lake.open.source_head("e").time
    lake.sql("ALTER TABLE {e} SET TBLPROPERTIES ('who' = 'me')")
    assert abs(lake.open.changed_last("e") - made).total_seconds() < 1


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


def test_a_change_feed_that_is_switched_off_warns_once(sales: TestLake) -> None:
    assert measured(sales, "change feed").status == "passed"
    sales.sql("ALTER TABLE {s} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')")
    off = measured(sales, "change feed")
    assert (off.status, off.severity) == ("failed", "warning")
    assert measured(sales, "change feed").status == "passed"


@pytest.mark.parametrize(
    ("folder", "texts"),
    [
        (".", ["INSERT INTO {s} VALUES (4, 40), (5, 50)"]),
        ("_change_data", ["UPDATE {s} SET x = 41 WHERE id = 3"]),
        ("_change_data", ["INSERT INTO {s} VALUES (4, 40), (5, 50)", "UPDATE {s} SET x = 41 WHERE id = 4"]),
    ],
)
def test_changes_whose_files_are_gone_before_they_were_read_are_found(
    sales: TestLake, monkeypatch: pytest.MonkeyPatch, folder: str, texts: list[str]
) -> None:
    """A vacuum with too short a retention, or somebody's hand: the check says so where a refresh would fail, and only there."""
    read_as_large(monkeypatch)  # a small table is read from its data files alone
    before = set(Path(sales.path("s"), folder).glob("*.parquet"))
    sales.sql(*texts)
    assert measured(sales, "changes that views have still to read").status == "passed"
    gone = set(Path(sales.path("s"), folder).glob("*.parquet")) - before
    for file in gone:
        file.unlink()
    found = check(sales.open, "v")
    (said,) = [m for m in found.measures if m.subject == "changes that views have still to read"]
    assert (said.severity, said.command) == ("critical", "lakejoin rebuild v")
    try:
        sales.refresh("v")
        readable = True
    except ExpiredError:
        readable = False
    assert said.status == ("passed" if readable else "failed")
    assert readable or any(file.name in said.detail for file in gone)
    assert readable == (len(texts) == 2)  # few data files are read instead of the feed


def test_a_small_table_is_read_without_change_data(sales: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "is_small", OWN)
    sales.sql("UPDATE {s} SET x = 41 WHERE id = 3")
    for file in Path(sales.path("s"), "_change_data").glob("*.parquet"):
        file.unlink()
    assert measured(sales, "changes that views have still to read").status == "passed"
    sales.refresh("v")
    sales.assert_exact("v")


def test_a_source_is_owned_by_those_whose_views_read_it(sales: TestLake) -> None:
    for name, owner in (("v", "ann"), ("w", "bob"), ("x", "ann"), ("y", None)):
        sales.view(name, sales.views["v"]["query"], owner=owner)
    sales.sql("INSERT INTO {s} VALUES (1, 10)")
    found = {f.subject: f.owner for f in check(sales.open, "v").open}
    assert found["key unique"] == "ann, bob"
