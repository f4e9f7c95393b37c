"""A unit and a manifest that are read again by those who would run them."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from lake.cli.app import app

CONFIG = {"root": "/lake", "tables": {"a": {"path": "${PLACE}/a"}}, "views": {"v": {"query": "SELECT 1 FROM a", "realtime": True}}}


@pytest.fixture
def rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PLACE", "/secret")

    def invoke(kind: str, *options: str, **changes: Any) -> Any:
        (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump({**CONFIG, **changes}))
        return CliRunner().invoke(app, ["--config", str(tmp_path / "lakejoin.yml"), "realtime", *options, "--render", kind])

    return invoke


def test_the_unit_runs_the_command_and_starts_it_again(rendered: Any, tmp_path: Path) -> None:
    text = rendered("systemd", "--all", "--metrics-port", "9090").stdout
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    service = unit["Service"]
    assert shlex.split(service["ExecStart"])[1:] == [
        *("-m", "lake.cli", "--config", str(tmp_path / "lakejoin.yml"), "realtime", "--all", "--metrics-port", "9090")
    ]
    assert (service["Restart"], service["KillSignal"]) == ("always", "SIGTERM")
    assert "# PLACE, a line each" in text
    assert "/secret" not in text
    if shutil.which("systemd-analyze"):
        file = tmp_path / "lakejoin.service"
        file.write_text(text.replace("EnvironmentFile=/etc", "EnvironmentFile=-/etc"))
        found = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True)
        assert "Unknown" not in found.stderr


def test_the_manifest_runs_one_at_a_time_and_names_what_it_needs(rendered: Any) -> None:
    text = rendered("kubernetes", "v", "--metrics-port", "9090").stdout
    manifest = yaml.safe_load(text)
    assert (manifest["kind"], manifest["spec"]["replicas"], manifest["spec"]["strategy"]) == ("Deployment", 1, {"type": "Recreate"})
    assert manifest["spec"]["selector"]["matchLabels"] == manifest["spec"]["template"]["metadata"]["labels"]
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    options = ["realtime", "v", "--metrics-port", "9090", "--metrics-address", "0.0.0.0"]
    assert container["command"] == ["lakejoin", "--config", "/etc/lakejoin/lakejoin.yml", *options]
    assert container["envFrom"] == [{"secretRef": {"name": "lakejoin"}}]
    assert "--from-literal=PLACE=..." in text
    assert "/secret" not in text


def test_there_must_be_something_to_run(rendered: Any) -> None:
    found = rendered("systemd", "--all", views={"v": {"query": "SELECT 1 FROM a"}})
    assert (found.exit_code, "No view of the configuration" in found.stderr) == (2, True)
    assert "There is no view 'w'" in rendered("kubernetes", "w").stderr
