"""lakejoin plan and apply: exit codes, what is printed for people, for machines and for a pull request, and plans that are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import lake.views.registry as open_views
from lake.cli.app import app
from tests.lakes import TestLake


@pytest.fixture
def run(lake: TestLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command with the lake's views as they are then, in the tests' own session."""
    lake.table("a", "SELECT * FROM VALUES (1, 'x', 2), (2, 'y', 3) t(id, s, n)", ["id"])
    lake.view("v", "SELECT id, s, n FROM a")
    lake.view("w", "SELECT id, n FROM v")
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: lake.spark)

    def invoke(*arguments: str) -> Any:
        (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(lake.config))
        return CliRunner().invoke(app, ["--config", str(tmp_path / "lakejoin.yml"), *arguments])

    return invoke


def test_a_change_from_plan_to_apply(run: Any, lake: TestLake, tmp_path: Path) -> None:
    new = run("plan")
    assert new.exit_code == 2
    assert new.stdout.splitlines()[-2:] == ["Plan: 2 to build.", "Next: lakejoin apply"]
    assert "+ v: build: the view has not been built yet" in new.stdout
    assert "views that read it: w" in new.stdout
    applied = run("apply", "--json")
    assert [(result["view"], result["mode"]) for result in json.loads(applied.stdout)] == [("v", "build"), ("w", "build")]
    nothing = run("plan")
    assert (nothing.exit_code, nothing.stdout) == (0, "Plan: 2 unchanged.\n")
    assert run("apply").stdout == "Nothing to do: what is published is what lakejoin.yml says.\n"

    lake.view("v", "SELECT id, n FROM a")
    kept = str(tmp_path / "plan.json")
    edited = run("plan", "--out", kept)
    assert edited.exit_code == 2
    for part in ("~ v: edit (metadata): columns dropped: s", "columns: -s", "-SELECT id, s, n FROM a", "+SELECT id, n FROM a"):
        assert part in edited.stdout
    assert "Plan: 1 to edit, 1 unchanged." in edited.stdout
    assert json.loads(run("plan", "--json").stdout)["views"][0]["how"] == "metadata"
    comment = run("plan", "--markdown").stdout
    assert "| `v` | edit (metadata) | columns dropped: s. No data file is written | no row is read or written |" in comment
    assert "```diff\n--- v (published)" in comment

    lake.view("v", "SELECT id, n, n + 1 AS m FROM a")
    other = run("apply", "--plan", kept)
    assert other.exit_code == 2
    assert "The plan is out of date: v or what was published changed since it was made. Nothing was written." in other.stderr
    lake.view("v", "SELECT id, n FROM a")
    assert run("apply", "--plan", kept).stdout.startswith("v: metadata, 0 rows inserted, 0 deleted")
    del lake.views["w"]
    gone = run("plan")
    assert gone.exit_code == 0
    assert "- w: removed: it is not in the configuration" in gone.stdout


def test_a_view_that_would_break_is_refused_in_the_plan_and_what_is_given_wrongly_is_named(
    run: Any, lake: TestLake, tmp_path: Path
) -> None:
    run("apply")
    lake.view("v", "SELECT id, s FROM a")
    refused = run("plan")
    assert refused.exit_code == 1
    assert "x w: refused: " in refused.stdout
    assert "Next:" not in refused.stdout
    (tmp_path / "no.json").write_text("{}")
    assert "no.json can't be read: it is no plan of lakejoin plan --json" in run("apply", "--plan", str(tmp_path / "no.json")).stderr
    assert "give --markdown or --json" in run("plan", "--markdown", "--json").stderr
    assert run("apply", "x").exit_code == 2
