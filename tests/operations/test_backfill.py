"""A backfill makes a view's history again: each step is the query's answer at its snapshot, whatever stopped it before."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import DataFrame

from lake.core.results import BackfillResult, BackfillStep
from lake.errors import ConfigError, ExpiredError, SourceError, TargetError
from lake.operations import backfill
from tests.conftest import QUICK
from tests.lakes import TestLake, multiset

JOIN = "SELECT l.id, l.k, r.y FROM l LEFT JOIN r ON l.k = r.k"
HISTORY = (
    "INSERT INTO {l} VALUES (4, 1), (5, 9)",
    "UPDATE {r} SET y = y + 1 WHERE k = 1",
    "UPDATE {l} SET k = 2 WHERE id = 4",
    "INSERT INTO {r} VALUES (9, 90), (9, 90)",
)
END = {"l": 2, "r": 2}


@pytest.fixture
def past(lake: TestLake) -> TestLake:
    """Two tables with two commits each after their first, and a view at the newest."""
    lake.table("l", "SELECT * FROM VALUES (1, 1), (2, 1), (3, NULL) t(id, k)")
    lake.table("r", "SELECT * FROM VALUES (1, 10), (2, 20), (NULL, 30) t(k, y)")
    for text in HISTORY:
        lake.sql(text)
    lake.view("v", JOIN)
    lake.refresh("v")
    return lake


def truth(lake: TestLake, at: dict[str, int], query: str = JOIN) -> Counter[Any]:
    """The query by plain Spark over the tables as they were."""
    frames: dict[str, DataFrame] = {t: lake.spark.read.format("delta").option("versionAsOf", n).load(lake.path(t)) for t, n in at.items()}
    return multiset(lake.spark.sql(query.replace(" l ", " {l} l ").replace(" r ", " {r} r "), **frames))


def modes(found: BackfillResult) -> list[str]:
    return [step.result.mode for step in found.steps if step.result]


def assert_steps(lake: TestLake, found: BackfillResult, steps: int) -> None:
    """Every step is there and is what the query gave then."""
    assert len(found.steps) == steps
    assert all(step.done for step in found.steps)
    for step in found.steps:
        assert multiset(lake.open.read("v", at=dict(step.until))) == truth(lake, dict(step.until))


def test_each_step_is_what_the_query_gave_at_its_snapshot(past: TestLake) -> None:
    before = list(past.open.history("v"))
    told: list[BackfillStep] = []
    found = past.open.backfill("v", since={"l": 0, "r": 0}, on_step=told.append)
    assert [dict(step.until) for step in found.steps] == [{"l": 0, "r": 0}, {"l": 1, "r": 0}, {"l": 1, "r": 1}, {"l": 2, "r": 1}, END]
    assert [step.result.mode for step in found.steps if step.result] == ["build", *["incremental"] * 4]
    assert tuple(told) == found.steps
    assert_steps(past, found, 5)
    assert list(past.open.history("v")) == before
    past.assert_exact("v")


def test_steps_are_so_many_commits_or_so_long_a_time(past: TestLake) -> None:
    for step, steps in ((3, 3), (100, 2), (timedelta(days=1), 2), (timedelta(microseconds=1), 5)):
        found = past.open.backfill("v", since={"l": 0, "r": 0}, step=step, dry_run=True)
        assert (len(found.steps), found.steps[-1].until) == (steps, END)
        assert sum(s.commits for s in found.steps) == 4


def test_run_again_it_makes_nothing_again(past: TestLake) -> None:
    past.open.backfill("v", since={"l": 0, "r": 0}, until={"l": 1, "r": 1})
    planned = past.open.backfill("v", since={"l": 0, "r": 0}, dry_run=True)
    assert [step.done for step in planned.steps] == [True] * 3 + [False] * 2
    found = past.open.backfill("v", since={"l": 0, "r": 0})
    assert [step.result is not None for step in found.steps] == [False] * 3 + [True] * 2
    assert_steps(past, found, 5)
    assert not any(step.result for step in past.open.backfill("v", since={"l": 0, "r": 0}).steps)


def test_one_that_was_stopped_anywhere_goes_on(past: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    class StoppedError(Exception):
        pass

    for stop in range(2):
        made = []

        def stopping(step: BackfillStep, made: list[BackfillStep] = made, stop: int = stop) -> None:
            made.append(step)
            if len([s for s in made if s.result]) > stop:
                raise StoppedError

        with pytest.raises(StoppedError):
            past.open.backfill("v", since={"l": 0, "r": 0}, on_step=stopping)
    assert_steps(past, past.open.backfill("v", since={"l": 0, "r": 0}), 5)


def test_another_range_and_another_definition_are_made_too(past: TestLake) -> None:
    past.open.backfill("v", since={"l": 2, "r": 1})
    assert_steps(past, past.open.backfill("v", since={"l": 0, "r": 0}, until={"l": 1, "r": 1}), 3)
    past.view("v", JOIN.replace("LEFT ", ""), on_definition_change="rebuild")
    past.refresh("v")
    with pytest.raises(TargetError, match="never published at l@0"):  # but by the other definition
        past.open.read("v", at={"l": 0})
    assert not any(step.done for step in past.open.backfill("v", since={"l": 0, "r": 0}, dry_run=True).steps)
    found = past.open.backfill("v", since={"l": 0, "r": 0}, step=3)
    for step in found.steps:
        assert multiset(past.open.read("v", at=dict(step.until))) == truth(past, dict(step.until), JOIN.replace("LEFT ", ""))


def test_restart_makes_all_of_it_again(past: TestLake) -> None:
    past.open.backfill("v", since={"l": 0, "r": 0}, step=3)
    past.sql(f"DELETE FROM delta.`{past.path('views')}/v__replay`")
    with pytest.raises(TargetError, match=r"written by someone else.*backfill v"):
        past.open.backfill("v", since={"l": 0, "r": 0}, step=2)
    found = past.open.backfill("v", since={"l": 0, "r": 0}, step=3, restart=True)
    assert all(step.result for step in found.steps)
    assert_steps(past, found, 3)


def test_its_end_can_be_published_and_nothing_moves_back(past: TestLake) -> None:
    found = past.open.backfill("v", since={"l": 0, "r": 0}, step=3, publish=True)
    assert found.published is not None
    assert (found.published.mode, found.published.rows_inserted) == ("none", 0)
    past.sql(f"DELETE FROM {past.of_view('v')} WHERE id = 2")  # not ours: the published rows are wrong now
    with pytest.raises(TargetError, match="written by someone else"):
        past.refresh("v")
    past.open.rebuild("v")
    with pytest.raises(SourceError, match="never moves back"):
        past.open.backfill("v", since={"l": 0, "r": 0}, until={"l": 1, "r": 1}, publish=True)
    past.sql("INSERT INTO {l} VALUES (6, 2)")
    found = past.open.backfill("v", since={"l": 0, "r": 0}, step=3, publish=True)
    assert found.published is not None
    assert (found.published.mode, found.published.rows_inserted, found.published.rows_deleted) == ("copy", 1, 0)
    past.assert_exact("v")
    assert past.refresh("v").mode == "none"


def test_a_view_on_a_view_is_made_with_it(past: TestLake) -> None:
    past.view("w", "SELECT v.k, count(*) AS n, max(l.id) AS m FROM v JOIN l ON v.id = l.id GROUP BY v.k")
    past.refresh("w")
    found = past.open.backfill("w", since={"l": 0, "r": 0}, step=2)
    query = f"SELECT v.k, count(*) AS n, max(l.id) AS m FROM ({JOIN}) v JOIN l  ON v.id = l.id GROUP BY v.k"
    for step in found.steps:
        rows = multiset(past.open.read("w", at=dict(step.until)))
        frames = {t: past.spark.read.format("delta").option("versionAsOf", n).load(past.path(t)) for t, n in dict(step.until).items()}
        own = query.replace("FROM l ", "FROM {l} l ").replace("JOIN r ", "JOIN {r} r ").replace("JOIN l  ", "JOIN {l} l ")
        assert rows == multiset(past.spark.sql(own, **frames))


def test_a_time_is_as_good_as_versions(past: TestLake) -> None:
    head = past.open.source_head("r")
    assert past.open.backfill("v", since=datetime.now(UTC), dry_run=True).steps[0].until == END
    first = past.open.backfill("v", since={"r": 1}, dry_run=True).steps[0]
    assert dict(first.until) == {"l": 1, "r": 1}
    assert past.open.backfill("v", since=head.time.isoformat(), dry_run=True).steps[0].until == END


def test_the_history_of_the_view_itself_can_be_read_too(past: TestLake) -> None:
    past.sql("UPDATE {l} SET k = 1 WHERE id = 2")
    old = {f for f in Path(past.path("views"), "v").rglob("*") if f.suffix in (".parquet", ".bin")}
    past.refresh("v")
    assert multiset(past.open.read("v", at={"l": 2})) == truth(past, END)
    assert multiset(past.open.read("v", at={"l": 3})) == truth(past, {"l": 3, "r": 2})
    with pytest.raises(TargetError, match=r"never published at l@1.*Nearest: l@2, r@2.*lakejoin backfill v --since l=1"):
        past.open.read("v", at={"l": 1})
    with pytest.raises(ConfigError, match="is not built from 'nope'"):
        past.open.read("v", at={"nope": 2})
    for file in old:
        file.unlink(missing_ok=True)
    with pytest.raises(TargetError, match=r"was vacuumed since it was published at l@2.*lakejoin backfill v --since l=2 --until l=2"):
        past.open.read("v", at={"l": 2})
    past.open.backfill("v", since=END, until=END)
    assert multiset(past.open.read("v", at={"l": 2})) == truth(past, END)


def test_what_can_not_be_is_said(past: TestLake) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"since": {"l": 2}, "until": {"l": 1, "r": 2}}, "goes backwards: l from version 2 to 1"),
        ({"since": {"l": 0}, "step": 0}, "`step` is a number of commits"),
        ({"since": {"nope": 0}}, "'nope'"),
        ({"since": "yesterday"}, "a time such as"),
    ]
    for asked, said in wrong:
        with pytest.raises(ConfigError, match=said):
            past.open.backfill("v", **asked)


def test_versions_that_are_gone_are_named_before_anything_is_made(past: TestLake) -> None:
    Path(past.path("l"), "_delta_log", f"{1:020}.json").unlink()
    past.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    with pytest.raises((ExpiredError, SourceError), match="l"):
        past.open.backfill("v", since={"l": 0, "r": 0})
    assert not Path(past.path("views"), "v__replay").exists()


def test_files_that_are_gone_are_named_before_anything_is_made(lake: TestLake) -> None:
    lake.table("l", "SELECT id, id % 3 AS k FROM range(100)", delta__enableDeletionVectors="true")
    lake.table("r", "SELECT * FROM VALUES (1, 10), (2, 20) t(k, y)")
    lake.view("v", JOIN)
    lake.sql("DELETE FROM {l} WHERE id = 1")
    (vector,) = Path(lake.path("l")).glob("deletion_vector_*.bin")
    lake.sql("DELETE FROM {l} WHERE id = 2", "INSERT INTO {l} VALUES (100, 2)")
    vector.unlink()
    gone = r"l \(.*version {} can no longer be read: 1 of its files no longer exist, for example {} .*Nothing was written"
    for dry_run in (True, False):
        with pytest.raises(ExpiredError, match=gone.format(1, vector.name)):
            lake.open.backfill("v", since={"l": 0, "r": 0}, dry_run=dry_run)
    assert not Path(lake.path("views"), "v__replay").exists()
    assert_steps(lake, lake.open.backfill("v", since={"l": 0, "r": 0}, step=2), 3)  # which does not stop at version 1
    data, *_ = sorted(Path(f).name for f in lake.spark.read.format("delta").option("versionAsOf", 0).load(lake.path("l")).inputFiles())
    Path(lake.path("l"), data).unlink()
    with pytest.raises(ExpiredError, match=gone.format(0, data)):
        lake.open.backfill("v", since={"l": 0, "r": 0}, restart=True)


def test_an_optimized_table_can_be_backfilled_across_it(past: TestLake) -> None:
    past.sql("OPTIMIZE {l}", "DELETE FROM {l} WHERE id = 2", "INSERT INTO {l} VALUES (8, 2)", "OPTIMIZE {l}")
    found = past.open.backfill("v", since={"l": 0, "r": 0}, step=3)
    assert_steps(past, found, len(found.steps))


def test_a_query_that_changes_with_its_tables_is_made_as_it_was_then(past: TestLake) -> None:
    past.view("s", "SELECT * FROM l")
    past.sql("ALTER TABLE {l} ADD COLUMN extra int", "INSERT INTO {l} VALUES (6, 1, 60)")
    found = past.open.backfill("s", since={"l": 1})
    assert [step.result.mode for step in found.steps if step.result] == ["build", "incremental", "recompute", "incremental"]
    assert all(step.done for step in past.open.backfill("s", since={"l": 1}, dry_run=True).steps)
    assert past.open.read("s", at={"l": 2}).columns == ["id", "k"]
    for number in (1, 2, 3, 4):
        rows = past.spark.read.format("delta").option("versionAsOf", number).load(past.path("l"))
        assert multiset(past.open.read("s", at={"l": number})) == multiset(rows)


@pytest.mark.slow
def test_a_backfill_over_sixteen_versions_is_killed_half_way_and_resumed(past: TestLake) -> None:
    for number in range(11):
        past.sql(f"INSERT INTO {{l}} VALUES ({100 + number}, {number % 3})")
    (past.folder / "lakejoin.yml").write_text(yaml.safe_dump({**past.config, "spark": QUICK}))
    command = [
        sys.executable,
        "-m",
        "lake.cli",
        "--config",
        str(past.folder / "lakejoin.yml"),
        "backfill",
        "v",
        "--since",
        "l=0",
        "--since",
        "r=0",
    ]
    killed = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert killed.stderr is not None
    next(line for line in killed.stderr if line.startswith("step 7"))
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    there = sum(step.done for step in past.open.backfill("v", since={"l": 0, "r": 0}, dry_run=True).steps)
    assert there in (8, 9)  # the one that was under way may have been committed
    again = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert sum(step["result"] is not None for step in json.loads(again.stdout)["steps"]) == 16 - there
    steps = past.open.backfill("v", since={"l": 0, "r": 0}, dry_run=True).steps
    assert (len(steps), all(step.done for step in steps)) == (16, True)
    for step in (steps[1], steps[7], steps[8], steps[15]):
        assert multiset(past.open.read("v", at=dict(step.until))) == truth(past, dict(step.until))


def test_a_view_that_is_far_behind_catches_up_in_steps(past: TestLake) -> None:
    for number in range(10, 15):
        past.sql(f"INSERT INTO {{l}} VALUES ({number}, 2)" if number % 2 else f"UPDATE {{r}} SET y = {number} WHERE k = 2")
    planned = past.open.catch_up("v", 2, dry_run=True).steps
    told: list[BackfillStep] = []
    steps = past.open.catch_up("v", 2, on_step=told.append).steps
    assert tuple(told) == steps
    assert [step.until for step in planned] == [step.until for step in steps]
    assert not any(step.done for step in planned)
    found = [step.result for step in steps if step.result]
    assert [sum(r.until.values()) - sum(r.since.values()) for r in found if r.since] == [2, 2, 1]
    assert all(r.mode == "incremental" for r in found)
    past.assert_exact("v")
    assert modes(past.open.catch_up("v", 2)) == ["none"]


def test_catching_up_goes_no_further_than_it_is_told(past: TestLake) -> None:
    past.sql("INSERT INTO {l} VALUES (10, 2)", "INSERT INTO {l} VALUES (11, 2)", "UPDATE {r} SET y = 7 WHERE k = 2")
    found = past.open.catch_up("v", timedelta(days=1), until={"l": 3})
    assert [dict(step.until) for step in found.steps] == [{"l": 3, "r": 3}]
    assert multiset(past.open.read("v")) == truth(past, {"l": 3, "r": 3})
    with pytest.raises(ConfigError, match="`step` is a number of commits"):
        past.open.catch_up("v", 0)


def test_catching_up_builds_a_view_that_is_not_there(past: TestLake) -> None:
    past.view("u", JOIN.replace("LEFT ", ""))
    assert modes(past.open.catch_up("u", 2)) == ["build"]
    past.assert_exact("u")


def test_a_view_that_reads_a_view_catches_up_with_what_is_published(past: TestLake) -> None:
    past.view("top", "SELECT v.id, v.y, l.k FROM v JOIN l ON v.id = l.id")
    past.refresh("top")
    past.sql("INSERT INTO {l} VALUES (20, 2)", "UPDATE {r} SET y = 7 WHERE k = 2")
    assert modes(past.open.catch_up("top", 1)) == ["none"]
    past.refresh("v")
    assert modes(past.open.catch_up("top", 1)) == ["incremental"]
    assert past.open.verify("top").exact


def test_a_rebuild_can_be_asked_for_as_a_step(past: TestLake) -> None:
    assert [dict(s.until) for s in past.open.rebuild_at("v", dry_run=True).steps] == [END]
    assert modes(past.open.rebuild_at("v")) == ["recompute"]
    past.assert_exact("v")


def test_parts_of_commits_are_of_so_many_or_of_so_long_a_time() -> None:
    from lake.delta.commit_order import SourceCommit

    commits = [SourceCommit("t", n, at, 1, 1) for n, at in enumerate([0.0, 1.0, 5.0, 5.5, 30.0])]
    parts = [[c.version for c in part] for part in backfill._parts(iter(commits), timedelta(seconds=5))]
    assert parts == [[0, 1], [2, 3], [4]]
    assert [len(part) for part in backfill._parts(iter(commits), 2)] == [2, 2, 1]
