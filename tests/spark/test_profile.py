"""A profile says where a refresh's time went: its numbers are held against Spark's own count of the jobs, and against the clock."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import lake.views.registry as open_views
from lake.cli.app import app
from lake.core.phases import Phases, phase
from lake.core.results import RefreshResult
from lake.spark.jvm.gateway import jvm_of
from lake.spark.profile import stage_of
from tests.lakes import TestLake


def test_a_phase_within_another_is_taken_out_of_it() -> None:
    moments = iter([0.0, 0.01, 0.03, 0.08, 0.09, 0.1])
    phases = Phases(lambda: next(moments))
    with phases.recorded(), phase("compute"), phase("read changes"):
        pass
    with phase("publish"):
        pass  # nobody notes it any more
    seconds = {name: sum(until - since for n, since, until in phases.spans if n == name) for name, *_ in phases.spans}
    assert set(seconds) == {"other", "compute", "read changes"}
    assert seconds["compute"] < 0.05 <= seconds["read changes"]
    assert {name: round(took, 6) for name, took in seconds.items()} == {"other": 0.02, "compute": 0.03, "read changes": 0.05}
    assert all(before[2] == after[1] for before, after in zip(phases.spans, phases.spans[1:], strict=False))


def profiled(lake: TestLake, group: str) -> tuple[RefreshResult, int]:
    """A refresh of view v with its profile, and how many jobs Spark itself counted for it."""
    context = lake.spark.sparkContext
    context.setJobGroup(group, "one refresh")
    try:
        result = lake.refresh("v", profile=True)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    return result, len(context.statusTracker().getJobIdsForGroup(group))


def test_jobs_and_seconds_are_those_of_the_refresh(lake: TestLake) -> None:
    lake.table("a", "SELECT id, id % 7 AS g FROM range(200000)")
    lake.table("b", "SELECT id, concat('n', id) AS name FROM range(7)")
    lake.view("v", "SELECT a.id, b.name FROM a JOIN b ON a.g = b.id")
    lake.refresh("v")
    lake.sql("UPDATE {a} SET g = g + 1 WHERE id < 25000 AND g < 6")  # more rows than the driver writes by itself
    started = time.time()
    result, jobs = profiled(lake, "many rows")
    wall = time.time() - started
    assert result.mode == "incremental"
    assert result.profile is not None
    total, phases = result.profile.total, {p.name: p for p in result.profile.phases}
    assert total.jobs == jobs > 0
    assert total.tasks >= total.jobs
    assert result.seconds - 0.01 <= total.seconds <= wall + 0.01
    assert phases["publish"].jobs > 0
    assert phases["start Spark"].seconds == 0
    assert 0 < total.job_seconds <= total.seconds
    assert total.bytes_read > 0
    assert result.to_json()["profile"]["total"]["jobs"] == total.jobs
    assert "profile" not in lake.refresh("v").to_json()


def test_few_rows_are_read_and_written_without_a_job(lake: TestLake) -> None:
    lake.table("a", "SELECT id, id % 7 AS g FROM range(500)")
    lake.table("b", "SELECT id, concat('n', id) AS name FROM range(7)")
    lake.view("v", "SELECT a.id, b.name FROM a JOIN b ON a.g = b.id")
    lake.refresh("v")
    lake.sql("UPDATE {a} SET g = g + 1 WHERE id < 50 AND g < 6")
    result, jobs = profiled(lake, "few rows")
    assert result.mode == "incremental"
    assert result.profile is not None
    phases = {phase.name: phase for phase in result.profile.phases}
    assert result.profile.total.jobs == jobs == 0
    assert phases["read changes"].tasks > 0  # read by the driver itself
    assert phases["read changes"].bytes_read > 0
    lake.assert_exact("v")


def test_the_command_shows_it(lake: TestLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table("a", "SELECT 1 AS id")
    lake.view("v", "SELECT id FROM a")
    (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(lake.config))
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: lake.spark)
    shown = CliRunner().invoke(app, ["--config", str(tmp_path / "lakejoin.yml"), "refresh", "--all", "--profile"])
    assert shown.exit_code == 0, shown
    assert "publish" in shown.stdout
    assert "Spark jobs" in shown.stdout
    again = CliRunner().invoke(app, ["--config", str(tmp_path / "lakejoin.yml"), "refresh", "v", "--profile", "--json"])
    assert json.loads(again.stdout)[0]["profile"]["total"]["seconds"] > 0


def test_a_stage_that_spark_has_forgotten_is_no_failure(lake: TestLake) -> None:
    """Of its stages Spark keeps the last thousand; later jobs that skip an older one still name it."""
    store = jvm_of(lake.spark).org.apache.spark.SparkContext.getOrCreate().statusStore()
    assert stage_of(store, 1_000_000_000) is None
