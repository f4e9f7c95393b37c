"""`lakejoin realtime` as a process that is stopped and killed, and its output."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.errors import PySparkException
from typer.testing import CliRunner

import lake.operations.refreshing as refreshing
import lake.views.registry as open_views
from lake.cli.app import app
from tests.conftest import QUICK
from tests.lakes import TestLake, multiset
from tests.realtime.test_path import HISTORY, JOIN, made


@pytest.fixture
def run(lake: TestLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command in the tests' own session, on the lake as it is when it is called."""
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: lake.spark)

    def invoke(*arguments: str) -> Any:
        (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(lake.config))
        return CliRunner().invoke(app, ["--config", str(tmp_path / "lakejoin.yml"), *arguments])

    return invoke


def test_drain_then_show_and_status(run: Any, lake: TestLake) -> None:
    made(lake)
    lake.sql("INSERT INTO {l} VALUES (6, 1, 60)")
    answer = run("realtime", "--all", "--available-now", "--json")
    assert answer.exit_code == 0
    batch, last = (json.loads(line) for line in answer.stdout.splitlines())
    assert (batch["batch"]["mode"], batch["batch"]["rows_inserted"], last["state"]) == ("incremental", 2, "stopped")
    assert len(json.loads(run("show", "v", "--consistency", "eventual", "--json").stdout)) == lake.truth("v").total()
    assert len(json.loads(run("show", "v", "--json").stdout)) == lake.truth("v").total() - 2
    assert json.loads(run("status", "--json").stdout)[0]["realtime"]["batches"] == 1
    assert "l@1, r@0" in run("status").stdout
    assert "in real time: yes" in run("explain", "v").stdout


def test_errors_say_what_is_wrong(run: Any, lake: TestLake) -> None:
    lake.table("l", "SELECT 1 AS id")
    lake.view("v", "SELECT id FROM l")
    assert "No view of the configuration" in run("realtime", "--all").stderr
    answer = run("realtime", "v", "--available-now")
    assert answer.exit_code == 2
    assert 'Run "lakejoin refresh v" first' in answer.stderr
    assert "'strong' or 'eventual'" in run("show", "v", "--consistency", "soon").stderr


def test_a_port_in_use_is_an_error(run: Any, lake: TestLake) -> None:
    made(lake)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = run("realtime", "v", "--available-now", "--metrics-port", str(port))
    assert answer.exit_code == 2
    assert f"`--metrics-port {port}` at 127.0.0.1: " in answer.stderr


def test_one_view_that_fails_stops_no_other(run: Any, lake: TestLake) -> None:
    made(lake)
    lake.view("never_built", "SELECT id FROM l", realtime=True)
    lake.sql("INSERT INTO {l} VALUES (6, 1, 60)")
    answer = run("realtime", "--all", "--available-now")
    assert answer.exit_code == 2
    assert "never_built" in answer.stderr
    assert multiset(lake.open.read("v", "eventual")) == lake.truth("v")


def test_a_batch_that_fails_is_tried_again_until_the_view_has_failed(run: Any, lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    eventual = made(lake, trigger_seconds=0, attempts=3)
    eventual.refresh("v")
    tried = []

    def broken(*_: Any, **__: Any) -> Any:
        tried.append(1)
        raise PySparkException("the storage is away")

    monkeypatch.setattr(refreshing.Refresh, "run", broken)
    answer = run("realtime", "v", "--available-now")
    assert answer.exit_code == 2
    assert "the storage is away" in answer.stderr
    assert len(tried) == 3
    monkeypatch.undo()
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: lake.spark)
    assert run("realtime", "v", "--available-now").exit_code == 0


@pytest.fixture
def started(lake: TestLake, tmp_path: Path) -> Any:
    """Start the command as a process of its own."""
    processes = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump({**lake.config, "spark": QUICK}))
        command = [sys.executable, "-m", "lake.cli", "--config", str(tmp_path / "lakejoin.yml"), "realtime", "v", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.slow
def test_killed_in_a_batch_and_started_again_it_ends_equal(lake: TestLake, started: Any) -> None:
    made(lake, JOIN, buffer_capacity=1, trigger_seconds=0).refresh("v")
    for text in (text for statements in HISTORY for text in statements):
        lake.sql(text)
    killed = started("--json")
    for _ in range(2):  # it is in the midst of a third batch then
        assert json.loads(killed.stdout.readline())["state"] == "running"
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    again = started("--available-now", "--json")
    answers = [json.loads(line) for line in again.communicate(timeout=300)[0].splitlines()]
    assert again.returncode == 0, answers
    assert answers[-1]["state"] == "stopped"
    eventual = lake.open.on("eventual")
    assert multiset(eventual.read("v")) == lake.truth("v")
    assert eventual.verify("v").exact


@pytest.mark.slow
def test_it_runs_until_a_signal_ends_it_and_serves_prometheus(lake: TestLake, started: Any) -> None:
    made(lake).refresh("v")
    lake.sql("INSERT INTO {l} VALUES (6, 1, 60)")
    process = started("--json", "--metrics-port", "0")
    assert json.loads(process.stdout.readline())["batches"] == 1
    said = next(line for line in process.stderr if line.startswith("metrics at"))
    with urllib.request.urlopen(re.search(r"http\S+", said).group()) as answer:  # type: ignore[union-attr]
        text = answer.read().decode()
    assert 'lakejoin_realtime_batches_total{view="v"} 1.0' in text
    assert 'lakejoin_realtime_cache_misses_total{source="r",view="v"} 1.0' in text
    second = started("--available-now")
    assert "already running" in second.communicate(timeout=300)[1]
    assert second.returncode == 2
    os.kill(process.pid, signal.SIGTERM)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert json.loads(out.splitlines()[-1])["state"] == "stopped"
