"""The lakejoin command: exit codes, --json, messages for a person."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import lake.views.registry as open_views
from lake.cli.app import app
from lake.config.loader import load
from tests.lakes import TestLake


@pytest.fixture
def run(lake: TestLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command on a small lake, in the tests' own session."""
    lake.table("a", "SELECT * FROM VALUES (1, 'x'), (2, 'secret-y') t(id, s)")
    lake.view("v", "SELECT id, s FROM a")
    (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(lake.config))
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: lake.spark)

    def invoke(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["--config", str(tmp_path / "lakejoin.yml"), *arguments])

    return invoke


def test_refresh_show_verify_status_explain(run: Any, lake: TestLake) -> None:
    assert run("show", "v").exit_code == 2
    built = run("refresh", "v", "--json")
    assert built.exit_code == 0
    assert json.loads(built.stdout)[0]["mode"] == "build"
    lake.sql("DELETE FROM {a} WHERE id = 1")
    assert "incremental, +0 -1 rows" in run("refresh", "--all").stdout
    assert json.loads(run("show", "v", "--json").stdout) == [{"id": 2, "s": "secret-y"}]
    assert "secret-y" in run("show", "v").stdout
    assert run("verify", "v").exit_code == 0
    assert json.loads(run("status", "--json").stdout)[0]["lag"] == 0
    assert "Source a (id, s)" in run("explain", "v").stdout
    assert run("explain", "v", "--why-not").stdout == "v: incremental, nothing has to be changed\n"


def test_check_names_what_is_wrong_and_snooze_puts_it_off(run: Any, lake: TestLake) -> None:
    run("refresh", "v")
    with lake.as_if_published("v"):
        lake.sql("DELETE FROM {v} WHERE id = 1")
    found = run("check", "v", "--json")
    said = json.loads(found.stdout)
    assert (found.exit_code, said["exit_code"]) == (1, 1)
    (finding,) = said["findings"]
    assert (finding["check"], finding["rows"], [event["event"] for event in said["events"]]) == ("exactness", 1, ["opened"])
    past = run("snooze", finding["id"], "--until", "2020-01-01", "--reason", "late")
    assert (past.exit_code, "a time in the future" in past.stderr) == (2, True)
    put_off = run("snooze", finding["id"], "--until", "2999-01-01", "--reason", "being mended", "--json")
    assert json.loads(put_off.stdout)["until"] == "2999-01-01T00:00:00+00:00"
    again = run("check", "--all")
    assert again.exit_code == 0
    assert "snoozed until 2999-01-01" in again.stdout
    assert re.search(r"^0 critical, 0 warnings, 1 snoozed, \d+ passed; Data Docs: /\S+$", again.stdout.splitlines()[-1])
    assert ("exactness: " in again.stdout, "retention: " in again.stdout) == (True, False)  # only what failed has a row
    with_all = run("check", "v", "--verbose", "--report").stdout
    assert re.search(r"^0 critical.*; report: file:/\S+report.html$", with_all.splitlines()[-1])
    assert "passed" in next(line for line in with_all.splitlines() if "retention: " in line)
    assert "being mended" in json.loads(run("status", "--json").stdout)[0]["checks"]["findings"][0]["reason"]
    assert run("check").exit_code == 2


def test_verify_of_a_wrong_view_exits_with_1_and_shows_no_rows_unless_asked(
    run: Any, lake: TestLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The differing rows are counted, and shown only where `samples: rows` says so."""
    run("refresh", "v")
    import lake.operations.verify as verification

    original = verification.from_scratch
    wrong = lambda *a: original(*a).where("id <> 2")  # noqa: E731  the truth, falsified
    monkeypatch.setattr(verification, "from_scratch", wrong)
    answer = run("verify", "v")
    assert answer.exit_code == 1
    assert "0 rows missing, 1 too many" in answer.stdout
    assert "secret-y" not in answer.stdout
    assert "secret-y" not in run("verify", "v", "--json").stdout


def test_wrong_requests_exit_with_2_and_say_what_there_is(run: Any) -> None:
    answer = run("refresh", "w")
    assert answer.exit_code == 2
    assert "There is no view 'w'" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert run("refresh").exit_code == 2
    assert run("refresh", "v", "--until", "a=x").exit_code == 2
    assert run("refresh", "v", "--check", "--accept", "F1").exit_code == 2
    assert run("--run", "r", "refresh", "v", "--accept", "F1").exit_code == 2


def test_backfill_shows_its_steps_and_show_reads_them(run: Any, lake: TestLake) -> None:
    lake.sql("INSERT INTO {a} VALUES (3, 'z')", "DELETE FROM {a} WHERE id = 1", "INSERT INTO {a} VALUES (4, 'w')")
    assert run("refresh", "v", "--step", "2", "--json").exit_code == 0
    planned = run("backfill", "v", "--since", "a=0", "--step", "2", "--dry-run")
    assert planned.exit_code == 0
    assert planned.stdout.count("to do") == 3
    made = run("backfill", "v", "--since", "a=0", "--step", "2", "--json")
    assert [step["until"] for step in json.loads(made.stdout)["steps"]] == [{"a": 0}, {"a": 2}, {"a": 3}]
    assert "step 1: v at a@2: incremental" in made.stderr
    again = run("backfill", "v", "--since", "a=0", "--step", "2", "--publish")
    assert again.stdout.count("exists") == 3
    assert "the stored rows are the same" in again.stdout
    shown = run("show", "v", "--at", "a=2", "--json")
    assert [row["id"] for row in json.loads(shown.stdout)] == [2, 3]
    assert run("show", "v", "--at", "a=1").exit_code == 2
    assert "lakejoin backfill v --since a=1" in run("show", "v", "--at", "a=1").stderr
    assert run("backfill", "v", "--since", "a=0", "--step", "2x").exit_code == 2


def test_refresh_in_steps_says_where_it_is(run: Any, lake: TestLake) -> None:
    run("refresh", "v")
    lake.sql("INSERT INTO {a} VALUES (3, 'z')", "DELETE FROM {a} WHERE id = 1", "INSERT INTO {a} VALUES (4, 'w')")
    found = run("refresh", "--all", "--step", "2")
    assert found.exit_code == 0
    assert [line.split(" (")[0] for line in found.stdout.splitlines()] == [
        "v: incremental, +1 -1 rows, now at a@2",
        "v: incremental, +1 -0 rows, now at a@3",
    ]
    assert "v at a@2: incremental" in found.stderr


def test_init_writes_a_configuration_that_loads(run: Any, lake: TestLake, tmp_path: Path) -> None:
    target = tmp_path / "new.yml"
    answer = CliRunner().invoke(app, ["--config", str(target), "init", str(tmp_path)])
    assert answer.exit_code == 0
    assert yaml.safe_load(target.read_text())["tables"] == {"a": {"path": "a"}}
    assert CliRunner().invoke(app, ["--config", str(target), "init", str(tmp_path)]).exit_code == 2


def test_doctor_says_what_is_wrong_and_what_to_do(run: Any, lake: TestLake) -> None:
    assert run("doctor").exit_code == 0
    import shutil

    shutil.rmtree(lake.path("a"))
    lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    answer = run("doctor")
    assert answer.exit_code == 1
    assert "WRONG table a" in answer.stdout


def test_status_says_what_it_can_of_each_view(run: Any, lake: TestLake, tmp_path: Path) -> None:
    lake.view("w", "SELECT s FROM a")
    lake.view("lost", query_file="nowhere.sql")
    (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(lake.config))
    for view in ("v", "w"):
        run("refresh", view)
    lake.sql("DELETE FROM {v} WHERE id = 1")
    answer = run("status", "--json")
    said = {row["view"]: row for row in json.loads(answer.stdout)}
    assert (answer.exit_code, said["w"]["lag"]) == (1, 0)
    assert {view: row["view_status"]["state"] for view, row in said.items()} == {"v": "failed", "w": "up to date", "lost": "failed"}
    assert (said["v"]["lag"], "written by someone else" in said["v"]["advice"]) == (None, True)
    assert "nowhere.sql" in said["lost"]["advice"]
    shown = run("status").stdout
    assert "nowhere.sql" in shown
    assert "2 of 3 views need you: 2 failed, 1 up to date." in shown
    assert run("status", "v").exit_code == 2


def test_a_source_that_was_made_again_is_not_what_the_view_was_made_of(run: Any, lake: TestLake) -> None:
    lake.sql("INSERT INTO {a} VALUES (3, 'z')")
    run("refresh", "v")
    shutil.rmtree(lake.path("a"))
    lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    lake.spark.sql("SELECT 7 AS id, 'other' AS s").write.format("delta").save(lake.path("a"))
    lake.sql("INSERT INTO {a} VALUES (8, 'other')")
    answer = run("verify", "v")
    assert (answer.exit_code, "a (" in answer.stderr, "was replaced" in answer.stderr) == (2, True, True)
    (row,) = json.loads(run("status", "v", "--json").stdout)
    assert (row["lag"], row["way"], "was replaced" in row["advice"]) == (None, "another table", True)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT id, s, 1 AS one FROM a", "The definition of view 'v' is not the one"),
        ("SELECT id, s FROM a WHERE id = 1", "The definition of view 'v' is not the one"),
        ("SELECT id, nope FROM a", "`nope` cannot be resolved"),
        ("SELEC id FROM a", "Syntax error"),
        ("SELECT id, s FROM missing", "missing"),
    ],
)
def test_verify_of_an_edited_query(run: Any, lake: TestLake, tmp_path: Path, query: str, said: str) -> None:
    run("refresh", "v")
    lake.view("v", query)
    (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(lake.config))
    answer = run("verify", "v")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert said in answer.stderr


def test_show_of_values_that_json_or_this_machines_clock_has_otherwise(
    run: Any, lake: TestLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.table(
        "b",
        """SELECT TIMESTAMP'2024-01-01 12:00:00' AS t,
                  array(struct(TIMESTAMP'2024-07-01 12:00:00' AS u, TIMESTAMP_NTZ'2024-07-01 12:00:00' AS n)) AS a,
                  double('NaN') AS d, -double('Infinity') AS i,
                  map(DATE'2024-01-01', 1BD, DATE'2025-01-01', NULL) AS m, map(struct(1 AS x), 2) AS k""",
    )
    lake.view("w", "SELECT * FROM b")
    (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(lake.config))
    run("refresh", "w")
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        (row,) = json.loads(run("show", "w", "--json").stdout, parse_constant=pytest.fail)
    finally:
        monkeypatch.undo()
        time.tzset()
    noon = "2024-07-01 12:00:00"
    assert (row["t"], row["a"]) == ("2024-01-01 12:00:00", [{"u": noon, "n": noon}])
    assert (row["d"], row["i"]) == ("NaN", "-Infinity")
    assert (row["m"], row["k"]) == ({"2024-01-01": "1", "2025-01-01": None}, {"{'x': 1}": 2})


def test_show_no_rows_and_less(run: Any) -> None:
    run("refresh", "v")
    assert json.loads(run("show", "v", "--limit", "0", "--json").stdout) == []
    assert run("show", "v", "--limit", "-1").exit_code == 2


@pytest.mark.parametrize("name", ["2024", "x, y", "null", "a: b", "2024-01-01", "on", "v__realtime", "ä's"])
def test_init_quotes_what_yaml_has_otherwise(spark: SparkSession, tmp_path: Path, name: str) -> None:
    spark.sql("SELECT 1 AS id").write.format("delta").save(str(tmp_path / "lake" / name))
    config = tmp_path / "not" / "there" / "lakejoin.yml"
    assert CliRunner().invoke(app, ["--config", str(config), "init", str(tmp_path / "lake")]).exit_code == 0
    loaded = load(config)
    (table,) = loaded.tables.values()
    assert Path(loaded.source_path(str(table.path))) == tmp_path / "lake" / name


def test_init_of_a_lake_with_views_and_of_a_folder_that_is_a_table(run: Any, lake: TestLake, tmp_path: Path) -> None:
    run("refresh", "v")
    new = tmp_path / "new.yml"
    CliRunner().invoke(app, ["--config", str(new), "init", str(tmp_path)])
    assert list(load(new).tables) == ["a"]
    CliRunner().invoke(app, ["--config", str(new), "init", lake.path("a"), "--force"])
    assert load(new).view_path("v") == f"{tmp_path}/views/v"  # not within the table, whose VACUUM would remove it
    assert list(load(new).tables) == ["a"]


def test_a_run_that_is_asked_for_wrong_leaves_a_line_for_its_scheduler(run: Any) -> None:
    answer = run("--run", "r1", "backfill", "v", "--mode", "replay", "--step", "1")
    assert (answer.exit_code, "lakejoin: --mode replay needs --since" in answer.stderr) == (2, True)


def test_doctor_sees_a_key_of_no_column(run: Any, lake: TestLake, tmp_path: Path) -> None:
    lake.tables["a"]["primary_key"] = ["nope"]
    (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(lake.config))
    answer = run("doctor")
    assert answer.exit_code == 1
    assert "has no column 'nope'. It has: id, s" in answer.stdout
