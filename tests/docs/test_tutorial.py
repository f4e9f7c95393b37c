"""The tutorial, run as it is written: files are saved, commands are run in their order, and the shown output is compared."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import lake.views.registry as registry
from lake.cli.app import app

PAGE = Path(__file__).parent.parent.parent / "docs" / "tutorial" / "first-view.md"
FENCE = re.compile(r'^```(?P<language>bash|text|python|yaml)(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^```$', re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_tutorial(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "make_session", lambda settings, **_: spark)
    output, ran = "", 0
    for block in FENCE.finditer(PAGE.read_text()):
        language, title, body = block["language"], block["title"], block["body"]
        if language == "bash":
            output = "".join(_run(line, capfd) for line in body.splitlines())
            ran += len(body.splitlines())
        elif language == "text":
            _assert_shown(body, output)
        elif title.startswith("add to "):
            file = Path(title.removeprefix("add to "))
            file.write_text(file.read_text() + body)
        else:
            Path(title).write_text(body)
    assert ran == 13


def _run(line: str, capfd: pytest.CaptureFixture[str]) -> str:
    command, *arguments = line.split()
    if command == "python":
        capfd.readouterr()
        runpy.run_path(arguments[0])
        return capfd.readouterr().out
    assert command == "lakejoin", line
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, (line, found.output)
    return found.output


def _assert_shown(lines: str, output: str) -> None:
    """Each line is in the output, whatever the strokes of its table; what follows a line (seconds) is not shown."""
    there = [" ".join(re.sub("[│┃]", "|", line).split()) for line in output.splitlines()]
    for line in lines.splitlines():
        wanted = " ".join(re.sub("[│┃]", "|", line).split())
        assert any(found.startswith(wanted) for found in there), (wanted, output)
