"""`lakejoin status` says the same whether it reads the logs itself or asks Spark, and asks Spark only for what the logs can't tell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import lake.views.registry as open_views
from lake.cli.app import app
from lake.cli.context import opener
from lake.config.loader import load
from lake.core.variables import assigned
from lake.operations.local_status import LocalStatus
from lake.quality.local_results import recent
from lake.quality.measurements import PER_FINDING, Measurement, Row, row_of
from lake.quality.results import QualityResults
from lake.spark.session_digest import SESSION_DIGEST, settings_digest
from tests.lakes import TestLake

STATES = {
    "changed": "refused",
    "foreign": "failed",
    "lost": "failed",
    "late": "expired",
    "bad": "wrong",
    "halted": "stopped",
    "unbuilt": "not built",
    "waiting": "behind",
    "diamond": "behind",
    "good": "up to date",
}
"""The views of the lake, and the state of each."""
NEEDS_SPARK = {"changed", "foreign", "lost", "unbuilt"}


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestLake]:
    """A lake with a view in every state, built in a session that is as Lakejoin's own would be."""
    before = spark.conf.get(SESSION_DIGEST)
    spark.conf.set(SESSION_DIGEST, settings_digest({}))
    lake = TestLake(spark, tmp_path_factory.mktemp("states"))
    for table in ("a", "b", "gone"):
        lake.table(table, "SELECT * FROM VALUES (1, 'x'), (2, 'y') t(id, s)")
    lake.table("old", "SELECT 1 AS id", delta__deletedFileRetentionDuration="interval 0 hours", delta__enableChangeDataFeed="false")
    sources = {"lost": "gone", "late": "old", "waiting": "b", "diamond": "waiting JOIN b USING (id)"}
    for view in STATES:
        lake.view(view, f"SELECT id FROM {sources.get(view, 'a')}")
    for view in STATES:
        if view != "unbuilt":
            lake.refresh(view)
    lake.sql("INSERT INTO {old} VALUES (2)", "INSERT INTO {b} VALUES (3, 'z')", "DELETE FROM {foreign} WHERE id = 1")
    lake.refresh("waiting")
    lake.sql("OPTIMIZE {b}", "INSERT INTO {b} VALUES (4, 'z')")
    spark.sql("SELECT 1 AS id").write.format("delta").save(f"{lake.path('views')}/halted__realtime")
    lease = Path(lake.path("views"), "halted__realtime", "_lakejoin", "lease-00000002.json")
    lease.parent.mkdir()
    lease.write_text(json.dumps({"state": "failed", "error": "no space"}))
    Path(lake.path("gone"), "_delta_log").rename(Path(lake.path("gone"), "elsewhere"))
    QualityResults(lake.open).add([result("bad", 0, 2), *(result("good", hour, 0) for hour in range(PER_FINDING + 2))])
    QualityResults(lake.open).add([replace(result("good", 0, 0), kind="snooze", until=datetime.now(UTC) + timedelta(days=1))])
    lake.views["changed"]["query"] = "SELECT id + 1 AS id FROM a"
    lake._open = None
    (lake.folder / "lakejoin.yml").write_text(yaml.safe_dump(lake.config, sort_keys=False))
    yield lake
    spark.conf.set(SESSION_DIGEST, before)


def result(view: str, hours_ago: int, value: float) -> Row:
    measure = Measurement(
        view, "exactness", "rows that differ", value, "rows", most=0, samples=({"id": 1},), command=f"lakejoin verify {view}"
    )
    return row_of(measure, f"run{hours_ago}", datetime.now(UTC) - timedelta(hours=hours_ago + 2.5), "me")


def status(lake: TestLake, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["--config", str(lake.folder / "lakejoin.yml"), "status", *arguments])


def told(answer: Any) -> list[dict[str, Any]]:
    """The rows of the answer, but for the time that has passed since the other answer."""
    rows: list[dict[str, Any]] = json.loads(answer.stdout)
    for row in rows:
        for body, name in ((row, "expires_in"), (row["view_status"], "behind")):
            if body[name] is not None:
                body[name] = pytest.approx(body[name], abs=3600)
    return rows


def test_both_ways_say_the_same_of_views_in_every_state(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: lake.spark)
    by_logs = status(lake, "--json")
    with assigned(opener, lambda *_: lake.open):
        by_spark = status(lake, "--json")
    assert told(by_logs) == told(by_spark)
    assert {row["view"]: row["view_status"]["state"] for row in json.loads(by_spark.stdout)} == STATES
    assert (by_logs.exit_code, by_spark.exit_code) == (1, 1)


def test_spark_is_asked_only_for_what_the_logs_can_not_tell(lake: TestLake) -> None:
    local = LocalStatus(load(lake.config))
    assert {view for view in STATES if local.rows(view) is None} == NEEDS_SPARK


def test_no_jvm_is_started_for_views_whose_logs_tell_all(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_views, "make_session", _no_jvm)
    for view in STATES.keys() - NEEDS_SPARK:
        answer = status(lake, view)
        assert (STATES[view] in answer.stdout, answer.exit_code) == (True, int(STATES[view] in ("expired", "wrong", "stopped"))), answer
    unknown = status(lake, "nothing")
    assert (unknown.exit_code, "There is no view 'nothing'" in unknown.stderr) == (2, True)


def test_results_of_checks_are_the_same_both_ways(lake: TestLake) -> None:
    assert recent(load(lake.config)) == QualityResults(lake.open).recent()
    assert len(QualityResults(lake.open).recent()) == PER_FINDING + 2


@pytest.mark.parametrize(
    ("table", "changed"),
    [
        ("another column", "ALTER TABLE {c} ADD COLUMN more INT"),
        ("another property", "ALTER TABLE {c} SET TBLPROPERTIES ('x' = 'y')"),
    ],
)
def test_a_source_that_is_described_anew_is_left_to_spark(lake: TestLake, tmp_path: Path, table: str, changed: str) -> None:
    other = TestLake(lake.spark, tmp_path)
    other.table("c", "SELECT 1 AS id")
    other.view("v", "SELECT id FROM c")
    other.refresh("v")
    assert LocalStatus(load(other.config)).rows("v") is not None
    other.sql(changed)
    assert LocalStatus(load(other.config)).rows("v") is None


def _no_jvm(settings: Any, **_: Any) -> Any:
    raise AssertionError("a JVM was asked for")
