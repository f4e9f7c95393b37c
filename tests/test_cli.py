"""The lakejoin command: exit codes, --json, messages for a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import lake.lakehouse as lakehouse
from lake.cli import app
from tests.lakes import TestLake


@pytest.fixture
def run(lake: TestLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command on a small lake, in the tests' own session."""
    lake.table("a", "SELECT * FROM VALUES (1, 'x'), (2, 'secret-y') t(id, s)")
    lake.view("v", "SELECT id, s FROM a")
    (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(lake.config))
    monkeypatch.setattr(lakehouse, "make_session", lambda settings: lake.spark)

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


def test_verify_of_a_wrong_view_exits_with_1_and_shows_no_rows_unless_asked(
    run: Any, lake: TestLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The differing rows are counted, and shown only where `samples: rows` says so."""
    run("refresh", "v")
    import lake.lakehouse as lakehouse

    original = lakehouse.verify.from_scratch
    wrong = lambda *a: original(*a).where("id <> 2")  # noqa: E731  the truth, falsified
    monkeypatch.setattr(lakehouse.verify, "from_scratch", wrong)
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
