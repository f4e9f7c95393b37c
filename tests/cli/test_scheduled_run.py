"""A run goes to one snapshot, decided once: whatever is tried again, whichever view fails, whoever was there before."""

from __future__ import annotations

import json
import os
import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.errors import PySparkException
from typer.testing import CliRunner

import lake.operations.verify as verification
import lake.views.registry as open_views
from lake import Lakehouse
from lake.cli.app import app
from lake.cli.scheduled_run import GroupRefresh, Run
from lake.core.results import RunResult, ViewOutcome
from lake.delta.log import Log
from lake.delta.sidecar import Folder
from lake.errors import ConcurrencyError, ConfigError, SourceError
from lake.quality.after_refresh import check_after_refresh
from tests.lakes import TestLake, multiset


@pytest.fixture
def group(lake: TestLake) -> TestLake:
    """Two tables, a view on each, a view on both, and a view on that one."""
    lake.table("a", "SELECT * FROM VALUES (1, 10), (2, 20), (2, 20), (NULL, 30) t(id, n)")
    lake.table("b", "SELECT * FROM VALUES (1, 'x'), (2, 'y') t(id, s)")
    lake.view("av", "SELECT id, 100 / n AS part FROM a")
    lake.view("bv", "SELECT id, s FROM b")
    lake.view("both", "SELECT a.id, a.n, b.s FROM a LEFT JOIN b ON a.id = b.id")
    lake.view("top", "SELECT s, count(*) AS rows FROM both GROUP BY s")
    return lake


def refreshed(lake: TestLake, name: str | None, *views: str, until: Any = None, check: bool = False) -> RunResult:
    told: list[ViewOutcome] = []
    checker = check_after_refresh if check else None
    found = GroupRefresh(lake.open, views, until, checker, told.append).run(Run(lake.open, name) if name else None)
    assert {outcome.view: outcome for outcome in told} == by_view(found)
    assert len(told) == len(found.outcomes)
    return found


def by_view(found: RunResult) -> dict[str, ViewOutcome]:
    return {outcome.view: outcome for outcome in found.outcomes}


def mode(outcome: ViewOutcome) -> str:
    assert outcome.result is not None
    return outcome.result.mode


def answer(lake: TestLake, name: str) -> Any:
    """What a scheduler reads, without Spark."""
    return json.loads((lake.folder / "views" / "_lakejoin" / "runs" / f"{name}.json").read_text())["answer"]


def test_views_are_refreshed_after_those_that_they_read_and_to_one_snapshot(group: TestLake) -> None:
    found = refreshed(group, "first", "top", "both", "av")
    assert [outcome.view for outcome in found.outcomes] == ["both", "top", "av"]
    assert all((outcome.since, outcome.until.get("a")) == ({}, 0) for outcome in found.outcomes)
    assert answer(group, "first") == json.loads(json.dumps(found.to_json()))
    assert found.exit_code == 0


def test_results_are_stored_in_the_order_of_the_views_whichever_ends_first(group: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    refresh, later, stored = Lakehouse.refresh, threading.Event(), list[list[str]]()

    def held(lake: Lakehouse, view: str, *arguments: Any, **options: Any) -> Any:
        assert view != "av" or later.wait(60)
        return refresh(lake, view, *arguments, **options)

    def store(run: Run, result: Any) -> None:
        stored.append([*result["views"]])
        if len(stored) == 3:
            later.set()

    monkeypatch.setattr(Lakehouse, "refresh", held)
    monkeypatch.setattr(Run, "store", store)
    found = GroupRefresh(group.open, ["av", "top", "both", "bv"], None, None, lambda _: None, parallel=2).run(Run(group.open, "r"))
    assert stored == [["both"], ["both", "top"], ["both", "top", "bv"], ["av", "both", "top", "bv"]]
    assert [(outcome.view, outcome.state) for outcome in found.outcomes] == [(view, "done") for view in stored[-1]]


@pytest.mark.slow
def test_checks_of_views_that_are_refreshed_beside_each_other_take_turns(group: TestLake) -> None:
    """They read and store the results of the same tables: side by side each would report the finding that the others report."""
    group.tables["a"]["fresh_seconds"] = 1e-6  # its newest rows are older
    views = [f"v{n}" for n in range(4)]
    for view in views:
        group.view(view, f"SELECT n, '{view}' AS of_view FROM a")
    now, lock = list[str](), threading.Lock()

    def alone(lake: Lakehouse, view: str) -> tuple[Any, ...]:
        assert lock.acquire(blocking=False), f"{view} is checked beside {now[-1]}"
        try:
            now.append(view)
            return check_after_refresh(lake, view)
        finally:
            lock.release()

    found = GroupRefresh(group.open, views, None, alone, lambda _: None, parallel=4).run()
    assert [outcome.error for outcome in found.outcomes] == [""] * 4
    assert sorted(now) == views
    said = [(event["event"], event["scope"]) for outcome in found.outcomes for event in outcome.events if event["scope"] == "a"]
    assert said == [("opened", "a")]


def test_a_later_try_goes_to_the_snapshot_of_the_first(group: TestLake) -> None:
    refreshed(group, "before", "both")
    group.sql("INSERT INTO {a} VALUES (3, 5)")
    run = Run(group.open, "scheduled__2026-01-01T00:00:00+00:00")
    run.pinned(lambda: {"until": {"a": 1, "b": 0}, "before": {"both": {"a": 0, "b": 0}}})  # and then the first try was killed
    group.sql("INSERT INTO {a} VALUES (4, 5)", "DELETE FROM {b} WHERE id = 1")
    for expected in ("incremental", "none"):
        outcome = by_view(refreshed(group, "scheduled__2026-01-01T00:00:00+00:00", "both"))["both"]
        assert mode(outcome) == expected
        assert (outcome.since, outcome.until) == ({"a": 0, "b": 0}, {"a": 1, "b": 0})
        assert outcome.moved  # the second try still tells what the run published
    assert dict(group.open.stamp("both").snapshot) == {"a": 1, "b": 0}  # type: ignore[union-attr]
    assert by_view(refreshed(group, "next", "both"))["both"].until == {"a": 2, "b": 1}
    group.assert_exact("both")


def test_a_part_of_a_run_has_its_snapshot_and_a_result_of_its_own(group: TestLake) -> None:
    whole = refreshed(group, "night", "both", "top")
    group.sql("INSERT INTO {a} VALUES (4, 5)")
    part = refreshed(group, "night::both", "both")
    assert part.pinned == whole.pinned == {"a": 0, "b": 0}
    assert by_view(part)["both"].until == {"a": 0, "b": 0}
    assert (answer(group, "night")["views"].keys(), answer(group, "night@both")["views"].keys()) == ({"both", "top"}, {"both"})
    # a part chooses for itself only: the views of its run have other tables
    assert refreshed(group, "day::bv", "bv").pinned == {"b": 0}
    assert refreshed(group, "day", "both").pinned == {"a": 1, "b": 0}


@pytest.mark.parametrize("text", ["", '{"until": {"a"'])
def test_a_pin_that_was_half_written_is_written_again(group: TestLake, text: str) -> None:
    file = Path(group.open.config.runs_path, "killed.pin.json")
    file.parent.mkdir(parents=True)
    file.write_text(text)
    (file.parent / ".killed.pin.json.crc").write_bytes(b"crc\0\0\0\x02\0\0\0\0\0")  # and so was its checksum
    with pytest.raises(ConcurrencyError, match=r"killed.pin.json is incomplete.*Retry"):  # its writer may still live
        refreshed(group, "killed", "bv")
    assert file.read_text() == text
    os.utime(file, (file.stat().st_mtime - 120,) * 2)
    assert by_view(refreshed(group, "killed", "bv"))["bv"].until == {"b": 0}
    assert json.loads(file.read_text())["until"] == {"b": 0}


def test_a_pin_that_cannot_be_read_is_an_error_and_stays(group: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read error is not absence: another attempt may have refreshed views to the snapshot in the file."""
    run = Run(group.open, "first")
    run.pinned(lambda: {"until": {"a": 0, "b": 0}, "before": {}})
    file = Path(group.open.config.runs_path, "first.pin.json")
    whole = file.read_text()
    file.write_text('{"until": {"a": 0, "b": 0}, "before": {}}x')  # damaged, not half-written; its checksum does not match either
    os.utime(file, (0, 1_000_000_000))
    with pytest.raises(SourceError, match=r"first.pin.json.*can't be read .*Retry; or delete the file"):
        refreshed(group, "first", "bv")
    file.write_text(whole)
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "read", lambda *_: (_ for _ in ()).throw(PySparkException("connection reset")))
        with pytest.raises(SourceError, match=r"connection reset.*Retry"):
            run.pinned(lambda: pytest.fail("chosen again"))
    assert run.pinned(lambda: pytest.fail("chosen again"))["until"] == {"a": 0, "b": 0}


def test_an_interval_older_than_what_is_published_changes_nothing_and_says_so(group: TestLake) -> None:
    group.sql("INSERT INTO {a} VALUES (3, 5)", "INSERT INTO {b} VALUES (3, 'z')")
    refreshed(group, None, "both")
    outcome = by_view(refreshed(group, "old", "both", until={"a": 0, "b": 0}))["both"]
    assert outcome.result is not None
    assert (outcome.state, outcome.result.mode) == ("done", "none")
    assert outcome.result.reason == "the view is already at a newer snapshot of a, b"
    assert outcome.since == outcome.until == {"a": 1, "b": 1}
    assert not outcome.moved
    first = Run(group.open, "first")  # of another run, long ago, that is cleared now
    first.pinned(lambda: {"until": {"a": 0, "b": 0}, "before": {"both": {}}})
    assert not by_view(refreshed(group, "first", "both"))["both"].moved


def test_ten_missed_intervals_are_caught_up_one_by_one_and_each_ends_where_it_would_have(group: TestLake) -> None:
    began = datetime(2026, 5, 1, tzinfo=UTC)
    for hour in range(1, 11):
        if hour != 4:  # an hour in which nothing was committed
            group.sql(f"INSERT INTO {{a}} VALUES ({hour}, {hour})" if hour % 3 else f"UPDATE {{b}} SET s = 'h{hour}' WHERE id = 2")
    log = {table: sorted(Path(group.path(table), "_delta_log").glob("*.json")) for table in ("a", "b")}
    hours = {"a": [0, 1, 2, 5, 7, 8, 10], "b": [0, 3, 6, 9]}
    for table, files in log.items():
        assert len(files) == len(hours[table])
        for file, hour in zip(files, hours[table], strict=True):
            at = (began + timedelta(hours=hour, minutes=-30)).timestamp()
            os.utime(file, (at, at))
    group.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    seen = []
    for hour in range(11):
        outcome = by_view(refreshed(group, f"scheduled-{hour}", "both", until=began + timedelta(hours=hour)))["both"]
        assert outcome.until == {table: sum(h <= hour for h in found) - 1 for table, found in hours.items()}
        assert hour not in (3, 7, 10) or group.open.verify("both").exact
        seen.append(mode(outcome))
    assert (seen[0], seen[4], seen.count("incremental")) == ("build", "none", 9)
    again = by_view(refreshed(group, "scheduled-3", "both", until=began + timedelta(hours=3)))["both"]
    assert (mode(again), again.moved) == ("none", False)


def test_no_table_of_a_view_moves_back_while_another_moves_on(group: TestLake) -> None:
    group.sql("INSERT INTO {a} VALUES (3, 5)")
    refreshed(group, None, "both")
    group.sql("INSERT INTO {b} VALUES (3, 'z')")
    outcome = by_view(refreshed(group, "mixed", "both", until={"a": 0, "b": 1}))["both"]
    assert outcome.until == {"a": 1, "b": 1}
    group.assert_exact("both")


def test_one_views_failure_stops_those_that_read_it_and_no_others(group: TestLake) -> None:
    group.view("on_av", "SELECT part FROM av")
    refreshed(group, None, "av", "on_av", "bv")
    group.sql("INSERT INTO {a} VALUES (5, 0)", "INSERT INTO {b} VALUES (5, 'v')")
    found = refreshed(group, "failing", "on_av", "bv", "av")
    outcomes = by_view(found)
    assert [(outcomes[v].state, outcomes[v].exit_code) for v in ("av", "on_av", "bv")] == [("failed", 2), ("skipped", 1), ("done", 0)]
    assert "DIVIDE_BY_ZERO" in outcomes["av"].error
    assert "it reads view 'av', which failed" in outcomes["on_av"].error
    assert outcomes["av"].since == outcomes["av"].until == {"a": 0}
    assert answer(group, "failing")["views"]["on_av"]["state"] == "skipped"
    assert found.exit_code == 2
    group.sql("DELETE FROM {a} WHERE n = 0")
    assert refreshed(group, "mended", "on_av", "bv", "av").exit_code == 0


def test_a_table_that_is_missing_stops_only_the_views_on_it(group: TestLake) -> None:
    shutil.rmtree(group.path("b"))
    outcomes = by_view(refreshed(group, "missing", "av", "bv", "both"))
    assert [outcomes[view].state for view in ("av", "bv", "both")] == ["done", "failed", "failed"]
    assert "b" in outcomes["bv"].error
    with pytest.raises(ConfigError, match="`until` names 'c'"):
        refreshed(group, None, "av", until={"c": 1})


def test_a_view_beside_a_view_that_it_reads_follows_that_one(group: TestLake) -> None:
    group.view("diamond", "SELECT t.rows, a.id FROM top t JOIN a ON t.rows = a.id")
    refreshed(group, None, "both", "top", "diamond")
    group.sql("INSERT INTO {a} VALUES (2, 7)")
    outcome = by_view(refreshed(group, "alone", "diamond"))["diamond"]
    assert (outcome.state, outcome.until) == ("done", {"a": 0, "b": 0})
    assert by_view(refreshed(group, "together", "both", "top", "diamond"))["diamond"].until == {"a": 1, "b": 0}
    assert group.open.verify("diamond").exact


def test_what_may_pass_is_told_apart_from_what_has_to_be_mended(group: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: Any, **__: Any) -> Any:
        raise ConcurrencyError("others were first")

    monkeypatch.setattr(group.open, "refresh", lost)
    assert by_view(refreshed(group, "raced", "bv"))["bv"].again
    monkeypatch.setattr(group.open, "refresh", lambda *_, **__: 1 / 0)
    outcome = by_view(refreshed(group, "odd", "bv"))["bv"]
    assert outcome.error.startswith("Refreshing view 'bv' failed unexpectedly (ZeroDivisionError: division by zero).")
    assert (outcome.exit_code, outcome.again) == (1, True)
    monkeypatch.undo()
    group.view("bv", "SELECT id, upper(s) AS s FROM b")
    refreshed(group, None, "bv")
    group.view("bv", "SELECT id, lower(s) AS s FROM b")
    assert not by_view(refreshed(group, "changed", "bv"))["bv"].again


def test_a_view_that_is_not_exact_fails_the_run_that_checks(group: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refreshed(group, "fine", "bv", check=True).exit_code == 0
    monkeypatch.setattr(verification, "from_scratch", lambda spark, *_: spark.sql("SELECT 1 AS id, 'x' AS s"))
    found = by_view(refreshed(group, "wrong", "bv", check=True))["bv"]
    assert (found.state, found.exit_code, found.again) == ("failed", 1, False)
    assert "exactness: rows that differ from the query, 1 rows" in found.error
    assert [(event["event"], event["check"]) for event in found.events] == [("opened", "exactness")]
    kept = answer(group, "wrong")["views"]["bv"]["events"]
    assert [event["id"] for event in kept] == [event["id"] for event in found.events]


def test_the_command_keeps_its_answer_and_its_error_under_the_runs_name(
    group: TestLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(group.config))
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: group.spark)

    def run(name: str, *arguments: str) -> Any:
        return CliRunner().invoke(app, ["--config", str(tmp_path / "lakejoin.yml"), "--run", name, *arguments])

    refused = run("r0", "refresh", "bv", "both", "--parallel", "2", "--profile")
    assert (refused.exit_code, "--parallel works without --profile and --step" in refused.stderr) == (2, True)
    assert run("r1", "refresh", "bv", "both", "--parallel", "2").exit_code == 0
    assert answer(group, "r1")["views"]["both"]["until"] == {"a": 0, "b": 0}
    assert run("r2", "backfill", "both", "--since", "a=0", "--dry-run").exit_code == 0
    assert [step["until"] for step in answer(group, "r2")["steps"]] == [{"a": 0, "b": 0}]
    failed = run("r3", "backfill", "both", "--since", "a=7")
    assert (failed.exit_code, answer(group, "r3")["again"]) == (2, False)
    assert answer(group, "r3")["error"] in failed.stderr.replace("\n", " ")
    assert run("r4", "maintain", "--all").exit_code == 0
    assert {table["table"] for table in answer(group, "r4")["tables"]} == {"bv", "both"}
    unbuilt = run("r5", "verify", "--all")
    assert unbuilt.exit_code == 2
    assert "both: exact" in unbuilt.stdout
    assert "av: can't be verified: View 'av' has not been built yet" in unbuilt.stderr
    assert len(answer(group, "r5")) == 4
    assert run("r6", "status").exit_code == 0
    group.views["odd"] = {"query": "SELECT 1 FROM a", "shedule": "@daily"}
    (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(group.config))
    assert run("r9", "refresh", "bv").exit_code == 0  # a view that is not valid keeps no other from its run
    assert "`views.odd.shedule` is not known" in run("r10", "maintain", "--all").stderr  # but what it has still to read is not known
    del group.views["odd"]
    (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(group.config))
    assert run("r7", "backfill", "both", "--mode", "catch-up", "--since", "a=0").exit_code == 2
    assert run("r8", "backfill", "both", "--mode", "rebuild").exit_code == 0
    assert multiset(group.open.read("both")) == group.truth("both")


def test_a_version_that_cannot_be_had_fails_the_views_that_read_it(group: TestLake) -> None:
    """They stay where they are, at every try; they do not go to the newest."""
    group.open.refresh_all()
    group.sql("INSERT INTO {a} VALUES (3, 30)", "INSERT INTO {b} VALUES (3, 'z')")
    for _ in range(2):
        found = by_view(refreshed(group, "r", "av", "bv", until={"a": 99}))
        assert (found["av"].state, found["av"].moved, found["bv"].state) == ("failed", False, "done")
        assert "a has no version 99: its newest is 1" in str(found["av"].error)
        assert group.open.published_version("av") == (1, {"a": 0})


def test_a_build_as_of_a_time_before_its_tables_fails(group: TestLake) -> None:
    found = by_view(refreshed(group, "r", "av", "bv", until="2001-01-01T00:00:00"))
    assert [(outcome.state, "as of 2001" in str(outcome.error)) for outcome in found.values()] == [("failed", True)] * 2
    assert group.open.published_version("av") is None


def test_an_interval_long_gone_changes_nothing_of_a_view_that_is_newer(group: TestLake) -> None:
    group.sql("INSERT INTO {a} VALUES (3, 30)")
    group.refresh("av")
    group.refresh("bv")
    for until in ("2001-01-01T00:00:00", {"a": 0}):
        log = Path(group.path("a"), "_delta_log")
        Log(group.spark, group.path("a")).java.checkpoint()
        for file in [*log.glob(f"{0:020}.*"), *log.glob(f".{0:020}.*")]:
            file.unlink()
        group.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        found = by_view(refreshed(group, None, "av", "bv", until=until))
        assert (found["av"].state, mode(found["av"])) == ("done", "none")
        assert group.open.published_version("av") == (1, {"a": 1})
