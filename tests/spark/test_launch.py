"""Starting Spark: a Java that can't be used is refused before it starts, and Java's start-up warning is not shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lake.spark.jars as jars
from lake.cli.app import app
from lake.errors import ConfigError
from lake.spark import launch, preflight

CONFIG = "tables: {a: {path: a}}\nviews: {v: {query: SELECT 1 AS x FROM a}}\n"


def java_of(folder: Path, text: str) -> Path:
    """A JAVA_HOME whose Java prints this text as its version."""
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    java.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ("refresh", "v"),
        ("rebuild", "v"),
        ("show", "v"),
        ("explain", "v"),
        ("verify", "v"),
        ("check", "v"),
        ("backfill", "v", "--since", "a=0"),
        ("maintain", "v"),
        ("realtime", "v"),
    ],
    ids=lambda words: words[0],
)
def test_every_command_that_starts_spark_says_what_java_it_needs(tmp_path: Path, command: tuple[str, ...]) -> None:
    """In a process of its own, since this one may have a session already."""
    (tmp_path / "lakejoin.yml").write_text(CONFIG)
    environment = {**os.environ, "JAVA_HOME": str(tmp_path / "nowhere"), "PYTHONPATH": str(Path(__file__).parents[2])}
    asked = [sys.executable, "-m", "lake.cli.app", *command]
    ended = subprocess.run(asked, cwd=tmp_path, env=environment, capture_output=True, text=True)
    problem = f"JAVA_HOME ({tmp_path}/nowhere) has no bin/java that runs"
    assert ended.returncode == 2, ended.stderr
    assert problem in ended.stderr
    assert "Java 17 or newer is needed" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_a_java_that_is_too_old_is_named_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_of(tmp_path / "old", 'java version "1.8.0_392"')))
    with pytest.raises(ConfigError, match=r"Java 17 .*JAVA_HOME \(.*old\) has Java 8: set JAVA_HOME to a newer one"):
        launch.refuse_unusable_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"there is none on the path: install one"):
        launch.refuse_unusable_java()


def test_the_version_is_read_without_starting_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = java_of(tmp_path / "new", "starting it would say nothing")
    (home / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.2"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert preflight.java_version() == 21


def test_the_command_and_setup_say_so_before_anything_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("LAKEJOIN_JARS", str(tmp_path / "jars"))
    with pytest.raises(ConfigError, match=r"JAVA_HOME"):
        jars.resolve(tmp_path / "jars")
    ended = CliRunner().invoke(app, ["setup"])
    assert (ended.exit_code, "Traceback" in ended.stderr, (tmp_path / "jars").exists()) == (2, False, False)


def test_the_warning_of_java_is_left_out_and_other_lines_stay(capfd: pytest.CaptureFixture[str]) -> None:
    read_end, write_end = os.pipe()
    lines = launch._Lines(read_end)
    os.write(write_end, b"WARNING: Using incubator modules: jdk.incubator.vector\nWARNING: disk is full\n")
    os.close(write_end)
    assert lines.said() == ["WARNING: disk is full"]
    assert capfd.readouterr().err == "WARNING: disk is full\n"


def test_what_java_says_as_it_ends_is_in_the_error() -> None:
    said = launch._ended(["Invalid maximum heap size: -Xmx4 gigs", "Error: Could not create the Java Virtual Machine."])
    assert "Java ended while Spark started: Invalid maximum heap size: -Xmx4 gigs. Correct the settings under `spark:`" in said


@pytest.mark.slow
def test_a_session_starts_without_a_word() -> None:
    script = "from lake.spark.session import make_session; make_session({'spark.master': 'local[1]'}).range(1).count()"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
