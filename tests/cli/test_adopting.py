"""lakejoin adopt: what is asked and printed for people and for machines, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import lake.cli.adopting as adopting
import lake.views.registry as open_views
from lake.cli.app import app
from tests.lakes import TestLake


@pytest.fixture
def run(lake: TestLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command in the tests' own session, over a table, a view, and a table that a job made of it."""
    lake.table("a", "SELECT * FROM VALUES (1, 2), (2, 3), (2, 3) t(id, n)")
    lake.view("v", "SELECT id, n FROM a")
    lake.spark.sql(f"CREATE TABLE delta.`{lake.path('jobs/v')}` USING delta AS SELECT * FROM delta.`{lake.path('a')}`")
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: lake.spark)

    def invoke(*arguments: str, answer: str | None = None) -> Any:
        (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(lake.config))
        return CliRunner().invoke(app, ["--config", str(tmp_path / "lakejoin.yml"), "adopt", *arguments], input=answer)

    return invoke


def test_rows_that_are_written_once_more_are_asked_for(run: Any, lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT n, sum(id) AS ids FROM a GROUP BY n"
    lake.view("v", query)
    rows = query.replace(" a ", f" delta.`{lake.path('a')}` ")
    lake.spark.sql(f"CREATE OR REPLACE TABLE delta.`{lake.path('jobs/v')}` USING delta AS {rows}")
    monkeypatch.setattr(adopting, "has_terminal", lambda: True)
    asked = run("v", "--table", "jobs/v", "--verify-first", answer="n\n")
    assert asked.exit_code == 1
    assert "all its rows are written once more, as they are, in new files: refreshes need hidden columns" in asked.stderr
    monkeypatch.setattr(adopting, "has_terminal", lambda: False)
    done = run("v", "--table", "jobs/v", "--verify-first", "--yes")
    assert done.exit_code == 0, done.stderr
    assert "v: adopted, 2 rows written once more, now at a@0" in done.stdout


def test_a_table_is_compared_and_adopted_after_a_question(run: Any, lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = run("v", "--table", "jobs/v", "--at", "a=0")
    assert nobody.exit_code == 2
    assert "There is no terminal in which to ask" in nobody.stderr
    assert "--at is TABLE=VERSION or one time, not 'b'" in run("v", "--at", "a=0,b", "--dry-run").stderr
    dry = run("v", "--table", "jobs/v", "--verify-first", "--dry-run", "--json")
    found = json.loads(dry.stdout)
    assert (dry.exit_code, found["state"], found["snapshot"], found["moves"]) == (0, "equal", {"a": 0}, True)
    assert found["tried"] == [{"snapshot": {"a": 0}, "fits": True, "found": "3 rows are equal"}]
    assert "trying snapshot 1 of at most 20: a@0" in dry.stderr
    lake.sql("INSERT INTO {a} VALUES (3, 4)")
    differs = run("v", "--table", "jobs/v", "--at", "a=1", "--yes", "--json")
    assert (differs.exit_code, json.loads(differs.stdout)["apart"]["missing"]) == (1, 1)
    assert "it lacks 1 rows of the query, and 0 of its 3 rows are not among the query's" in differs.stderr
    monkeypatch.setattr(adopting, "has_terminal", lambda: True)
    asked = run("v", "--table", "jobs/v", "--at", "a=1", "--repair", answer="n\n")
    assert asked.exit_code == 1
    assert asked.stdout.endswith("Nothing was written.\n")
    assert "1 rows are inserted and 0 deleted, so that it has the rows of the query" in asked.stderr
    assert "Make it the table of view v?" in asked.stderr
    assert not Path(lake.path("views/v")).exists()
    done = run("v", "--table", "jobs/v", "--at", "a=1", "--repair", answer="y\n")
    assert done.exit_code == 0
    assert "v: adopted, +1 -0 rows, now at a@1" in done.stdout
    assert lake.refresh("v").mode == "none"
    again = run("v", "--yes", "--at", "a=1")
    assert again.exit_code == 2
    assert "View 'v' is built already, at a@1" in again.stderr
