"""Maintenance makes tables small, and takes nothing that a view has still to read."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import lake.views.registry as open_views
from lake.cli.app import app
from lake.errors import ExpiredError, QueryError
from lake.spark.session import vacuuming
from tests.lakes import TestLake

AT_ONCE = {"delta__deletedFileRetentionDuration": "interval 0 hours"}


@pytest.fixture
def lake_of_two(lake: TestLake) -> TestLake:
    """A source whose old files may go at once, one that nobody may touch, and a view that is up to date."""
    for name in ("a", "b"):
        lake.table(name, "SELECT id, id % 3 AS k FROM range(10)", **AT_ONCE)
    lake.tables["a"]["maintain"] = True
    lake.view("v", "SELECT a.id, b.k FROM a JOIN b ON a.id = b.id")
    lake.refresh("v")
    lake.sql(
        "DELETE FROM {a} WHERE id = 1", "INSERT INTO {a} VALUES (11, 1)", "DELETE FROM {a} WHERE id = 2", "DELETE FROM {b} WHERE id = 3"
    )
    lake.refresh("v")
    return lake


def data_files(lake: TestLake, name: str) -> set[str]:
    return {f.name for f in Path(lake.path(name)).rglob("*") if f.suffix in (".parquet", ".bin") and "_delta_log" not in f.parts}


def test_a_table_is_compacted_and_what_nobody_reads_any_more_is_removed(lake_of_two: TestLake, capfd: pytest.CaptureFixture[str]) -> None:
    lake, other = lake_of_two, data_files(lake_of_two, "b")
    planned = lake.open.maintain(dry_run=True)
    before = data_files(lake, "a")
    found = lake.open.maintain()
    tables = {t.table: t for t in found.tables}
    assert set(tables) == {"a", "v"}
    assert (tables["a"].files_before > 1, tables["a"].files_after, tables["a"].kept) == (True, 1, "")
    left = data_files(lake, "a")
    assert len(left) < len(before)
    assert 0 < {t.table: t for t in planned.tables}["a"].removed <= tables["a"].removed
    assert data_files(lake, "b") == other
    assert "Deleted" not in capfd.readouterr().out  # which is the answer's
    lake.sql("UPDATE {a} SET id = 3 WHERE id = 4", "INSERT INTO {b} VALUES (3, 7)")
    assert lake.refresh("v").mode == "incremental"
    lake.assert_exact("v")


def test_what_a_view_has_still_to_read_stays(lake_of_two: TestLake) -> None:
    lake = lake_of_two
    lake.view("behind", "SELECT k, count(*) AS n FROM a GROUP BY k")
    lake.refresh("behind")
    lake.sql("DELETE FROM {a} WHERE id = 5", "UPDATE {a} SET k = 9 WHERE id = 7")
    lake.refresh("v")
    before = data_files(lake, "a")
    found = {t.table: t for t in lake.open.maintain("v").tables}["a"]
    assert found.removed == 0
    assert 'view behind has still to read the changes since version 3: run "lakejoin refresh behind" first' in found.kept
    assert before <= data_files(lake, "a")
    assert lake.refresh("behind").mode == "incremental"
    lake.assert_exact("behind")
    lake.refresh("v")
    assert {t.table: t for t in lake.open.maintain("v").tables}["a"].removed > 0


def test_without_it_the_view_could_not_go_on(lake_of_two: TestLake) -> None:
    """That is: the files that were kept are needed."""
    lake = lake_of_two
    lake.sql("DELETE FROM {a} WHERE id = 5", "OPTIMIZE {a}")
    with vacuuming(lake.spark):
        lake.sql("VACUUM {a}")
    with pytest.raises(
        ExpiredError, match=r'\.parquet of a version 4 \(VACUUM probably removed it.*Nothing was written. Run "lakejoin rebuild v"'
    ):
        lake.refresh("v")
    lake.open.rebuild("v")
    lake.assert_exact("v")


def test_where_it_is_not_known_what_a_view_has_read_nothing_goes(lake_of_two: TestLake) -> None:
    lake = lake_of_two
    lake.sql("DELETE FROM {v} WHERE id = 5")
    assert 'not known what view v has read: run "lakejoin rebuild v" first' in {t.table: t for t in lake.open.maintain().tables}["a"].kept


def test_what_stopped_a_rebuild_is_said_even_where_somebody_else_wrote_the_view(lake: TestLake) -> None:
    lake.table("a", "SELECT id, 1 AS n FROM range(3)")
    lake.view("v", "SELECT id, 1 DIV n AS one FROM a")
    lake.refresh("v")
    lake.sql("DELETE FROM {v} WHERE id = 1", "UPDATE {a} SET n = 0 WHERE id = 2")
    with pytest.raises(QueryError, match="DIVIDE_BY_ZERO"):
        lake.open.rebuild("v")


def test_what_runs_of_long_ago_have_kept_goes_and_a_view_that_cannot_be_read_stops_nothing(lake_of_two: TestLake) -> None:
    lake_of_two.view("lost", query_file="nowhere.sql")
    runs = Path(lake_of_two.open.config.runs_path)
    runs.mkdir(parents=True)
    for name, days in (("old.json", 31), ("old.pin.json", 40), ("new.json", 29)):
        (runs / name).write_text("{}")
        os.utime(runs / name, (time.time() - days * 86_400,) * 2)
    lake_of_two.open.maintain(dry_run=True)
    assert len(list(runs.iterdir())) == 3
    lake_of_two.open.maintain()
    assert [file.name for file in runs.iterdir()] == ["new.json"]


def test_the_command_warns_of_what_will_be_gone_soon(lake_of_two: TestLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_of_two
    lake.sql("INSERT INTO {b} VALUES (1, 1)")
    (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(lake.config))
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: lake.spark)

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["--config", str(tmp_path / "lakejoin.yml"), "maintain", *arguments])

    assert run().exit_code == 2
    found = run("--all", "--dry-run")
    assert found.exit_code == 0
    assert "b: the changes since version 1 may no longer be readable, and view v has still to read them" in found.stderr
    answer = json.loads(run("v", "--dry-run", "--json").stdout)
    assert [t["table"] for t in answer["tables"]] == ["v", "a"]
    assert len(answer["warnings"]) == 1


def test_a_table_under_two_names_is_one_table(lake: TestLake) -> None:
    lake.table("a", "SELECT id, id % 3 AS k FROM range(10)", **AT_ONCE)
    lake.tables["a"]["maintain"] = True
    lake.tables["b"] = {"path": "a"}
    lake.view("v", "SELECT id, k FROM b")
    lake.view("w", "SELECT k, count(*) AS n FROM a GROUP BY k")
    lake.open.refresh_all()
    lake.sql("DELETE FROM {a} WHERE id = 5", "UPDATE {a} SET k = 9 WHERE id = 7")
    lake.refresh("w")
    kept = {t.table: t for t in lake.open.maintain().tables}["a"].kept
    assert 'run "lakejoin refresh v" first' in kept
    assert lake.refresh("v").mode == "incremental"
    assert lake.open.verify("v").exact


def test_one_table_that_is_missing_keeps_no_other_from_it(lake_of_two: TestLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_of_two
    lake.table("gone", "SELECT 1 AS id")
    lake.tables["gone"]["maintain"] = True
    lake.view("of_gone", "SELECT id FROM gone")
    lake.refresh("of_gone")
    lake.view("edited", "SELECT id FROM b")
    lake.refresh("edited")
    lake.view("edited", "SELECT id FROM a")  # and b is needed by one view only
    shutil.rmtree(lake.path("gone"))
    lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: lake.spark)
    (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(lake.config))
    answer = CliRunner().invoke(app, ["--config", str(tmp_path / "lakejoin.yml"), "maintain", "--all", "--json"])
    said = json.loads(answer.stdout)
    assert answer.exit_code == 2
    assert {t["table"] for t in said["tables"]} == {"v", "of_gone", "edited", "a"}
    assert "is not a Delta table" in said["failed"]["gone"]


def test_a_table_that_is_declared_no_more(lake_of_two: TestLake) -> None:
    lake = lake_of_two
    lake.view("v", "SELECT id FROM a")  # edited, and not yet built anew
    del lake.tables["b"]
    lake._open = None
    assert {t.table for t in lake.open.maintain(dry_run=True).tables} == {"a", "v"}
