"""lakejoin env, and plan and status in a development environment: for people and for machines."""

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
    """Run the command with the lake's views as they are then, in the tests' own session. `edit`: the environment's query of v."""
    lake.table("a", "SELECT * FROM VALUES (1, 'x', 2), (2, NULL, 3) t(id, s, n)", ["id"])
    lake.view("v", "SELECT id, s, n FROM a")
    lake.view("w", "SELECT id FROM a")
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: lake.spark)

    def invoke(*arguments: str, edit: str | None = None) -> Any:
        dev: dict[str, Any] = {"development_of": "default", "target": {"path": "dev"}}
        dev |= {"views": {"v": {"query": edit}}} if edit is not None else {}
        (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(lake.config | {"environments": {"dev": dev}}, sort_keys=False))
        return CliRunner().invoke(app, ["--config", str(tmp_path / "lakejoin.yml"), *arguments])

    return invoke


def test_an_edit_from_the_environment_to_production(run: Any, lake: TestLake, tmp_path: Path) -> None:
    query = "SELECT id, n FROM a WHERE n > 2"
    assert run("apply").exit_code == 0
    lake.view("new", "SELECT id FROM a")  # production has not built it
    plan = run("--env", "dev", "plan", edit=query)
    assert plan.exit_code == 2
    assert "~ v: edit (rewrite): " in plan.stdout
    assert "; on a shallow clone of production's table" in plan.stdout
    assert plan.stdout.splitlines()[-3:] == [
        "  read from production: w",
        "Plan: 1 to build, 1 to edit, 1 read from production.",
        "Next: lakejoin --env dev apply",
    ]
    assert run("--env", "dev", "apply", edit=query).exit_code == 0
    status = run("--env", "dev", "status", edit=query)
    assert (status.exit_code, "read from production: w\n" in status.stdout) == (0, True)
    found = json.loads(run("--env", "dev", "status", "--json", edit=query).stdout)
    assert {row["view"]: row["view_status"]["from_production"] for row in found} == {"v": False, "w": True, "new": False}
    assert json.loads(run("--env", "dev", "show", "v", "--json", edit=query).stdout) == [{"id": 2, "n": 3}]

    refused = run("env", "promote", "dev", edit=query)
    assert refused.exit_code == 2
    assert "- v: production's lakejoin.yml defines another view (columns, query)." in refused.stderr
    assert run("env", "promote", "dev", "--dry-run", edit=query).exit_code == 2
    lake.view("v", query)
    assert run("env", "promote", "dev", "--dry-run").stdout.splitlines() == [
        "v: promote: its definition is another one",
        "new: promote: production has not built it yet",
        "This was a dry run: 2 of 2 views would be promoted.",
    ]
    promoted = run("env", "promote", "dev", "--json")
    assert promoted.exit_code == 0, promoted.stderr
    results = json.loads(promoted.stdout)["results"]
    assert [(result["view"], result["mode"], result["rows_inserted"]) for result in results] == [("v", "copy", 1), ("new", "copy", 2)]
    assert run("env", "promote", "dev").stdout.startswith("v: none: production has these rows already\n")
    assert json.loads(run("show", "v", "--json").stdout) == [{"id": 2, "n": 3}]
    assert run("plan").stdout == "Plan: 3 unchanged.\n"

    listed = json.loads(run("env", "list", "--json").stdout)
    assert [(e["name"], e["development_of"], e["target"]) for e in listed] == [
        (None, "", f"{tmp_path}/views"),
        ("dev", "default", f"{tmp_path}/dev"),
    ]
    assert "Nothing was removed. Add --yes" in run("env", "drop", "dev").stderr
    assert "would be removed" in run("env", "drop", "dev", "--dry-run").stdout
    dropped = json.loads(run("env", "drop", "dev", "--yes", "--json").stdout)
    assert [(view["view"], view["dropped"]) for view in dropped["views"]] == [("v", True), ("new", True)]
    assert run("env", "drop", "dev").stdout == "Environment dev has no tables of its own.\n"
    assert run("--env", "dev", "plan").stdout.splitlines()[-1] == "Plan: 3 read from production."
    assert "there is no environment 'def'. Did you mean 'dev'?" in run("env", "drop", "def").stderr
