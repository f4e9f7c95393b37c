"""The arguments that a task passes to the lakejoin command, its return value and events, and the text of its failures."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import AssetAlias
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from lake.airflow.factory import airflow_dags
from lake.airflow.operators import JOB, BackfillOperator, CheckOperator, LakejoinOperator, RefreshOperator
from lake.airflow.realtime import CheckHeartbeat, StartRealtime
from lake.airflow.settings import Deployment
from lake.spark.driver_options import CLASS_PATH, JAVA_OPTIONS
from lake.spark.preflight import AT_START
from tests.airflow.conftest import JOIN

Written = Callable[..., Path]
DONE = {"state": "done", "since": {"bid": 1}, "until": {"bid": 2}, "moved": True, "error": "", "again": False}
RESULT = {"mode": "incremental", "rows_inserted": 3, "rows_deleted": 1}


class Events(dict[str, Any]):
    """The asset events that a task sends, by alias."""

    def __missing__(self, alias: AssetAlias) -> Any:
        return SimpleNamespace(add=lambda asset, extra: self.__setitem__(asset.name, extra))


def context(run_type: str = "manual", end: datetime | None = None, **more: Any) -> Any:
    number = more.pop("number", 1)
    task = SimpleNamespace(dag_id="lakejoin_refresh_v", try_number=number, max_tries=2, xcom_pull=lambda task_ids: more["planned"])
    task.xcom_push = lambda key, value: None
    run = SimpleNamespace(run_type=run_type)
    return {"ti": task, "dag_run": run, "run_id": "manual__1+00:00", "data_interval_end": end, "outlet_events": Events(), **more}


def refresh(deployment: Deployment, *views: str) -> RefreshOperator:
    return RefreshOperator(task_id="refresh", deployment=deployment, views=views)


def test_a_scheduled_run_goes_to_the_end_of_its_interval_and_any_other_to_what_is_newest(deployment: Deployment) -> None:
    end = datetime(2026, 5, 1, 12, tzinfo=UTC)
    task = refresh(deployment, "v", "w")
    assert task.arguments(context("scheduled", end)) == ["refresh", "v", "w", "--until", "2026-05-01T12:00:00+00:00"]
    assert task.arguments(context("backfill", end)) == ["refresh", "v", "w", "--until", "2026-05-01T12:00:00+00:00"]
    for run_type in ("manual", "asset_triggered"):
        assert task.arguments(context(run_type, end)) == ["refresh", "v", "w"]


def test_the_task_returns_the_answer_and_sends_an_event_for_what_was_published(deployment: Deployment, submitted: Any) -> None:
    views = {"v": {**DONE, "result": RESULT}, "w": {**DONE, "moved": False, "result": {**RESULT, "mode": "none"}}}
    asked = submitted(deployment, {"views": views})
    at = context()
    task = refresh(deployment, "v", "w")
    assert task.execute(at) == {"views": views}
    assert asked == [["--config", deployment.file, "--run", "lakejoin_refresh_v.refresh.manual__1_00_00", "refresh", "v", "w"]]
    assert at["outlet_events"] == {"lakejoin/v": {"view": "v", "since": {"bid": 1}, "snapshot": {"bid": 2}, **RESULT}}
    assert (task.application, task.env_vars) == (JOB, {"PYSPARK_DRIVER_PYTHON": sys.executable})
    assert Path(JOB).is_file()
    assert task.jars or task.packages


CONNECTION = "AIRFLOW_CONN_SPARK_DEFAULT"


def test_on_this_machine_alone_an_application_starts_as_the_command_does(
    deployment: Deployment, submitted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONNECTION, json.dumps({"conn_type": "spark", "host": "local[2]"}))
    submitted(deployment, {"views": {}})
    task = refresh(deployment, "v")
    task.execute(context())
    assert task.jars is None
    assert task.packages is None
    assert "delta-spark" in task.conf[CLASS_PATH]
    assert "-XX:TieredStopAtLevel=1" in task.conf[JAVA_OPTIONS]
    realtime = StartRealtime(task_id="realtime", deployment=deployment)
    realtime.add_delta()
    assert "-XX:TieredStopAtLevel=1" not in realtime.conf[JAVA_OPTIONS]  # it lasts


@pytest.mark.parametrize("master", ["spark://master:7077", "local-cluster[2,1,1024]"])
def test_executors_elsewhere_need_the_jars(deployment: Deployment, monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    monkeypatch.setenv(CONNECTION, json.dumps({"conn_type": "spark", "host": master}))
    task = refresh(deployment, "v")
    task.add_delta()
    assert "delta-spark" in task.jars
    assert not {CLASS_PATH, JAVA_OPTIONS} & task.conf.keys()


def test_java_options_that_must_not_be_shown_stay_in_their_file(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONNECTION, json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setenv("SECRET", "s3cr3t")
    task = refresh(Deployment.of(written({"v": {"query": JOIN}}, spark={JAVA_OPTIONS: "-Dpassword=${SECRET}"})), "v")
    task.add_delta()
    assert "s3cr3t" not in str(task.conf)
    assert task.jars


FAILED = {
    "view": "w",
    "state": "failed",
    "since": {},
    "until": {},
    "moved": False,
    "result": None,
    "error": "View 'w': DIVIDE_BY_ZERO",
    "again": False,
}


def test_published_views_send_events_whichever_other_view_failed(deployment: Deployment, submitted: Any) -> None:
    views = {"v": {**DONE, "result": None}, "w": FAILED}
    submitted(deployment, {"views": views}, error="Cannot execute: ... Error code is: 2.")
    at = context()
    answer = refresh(deployment, "v", "w").execute(at)  # Airflow would send nothing for a task that fails
    assert at["outlet_events"]["lakejoin/v"]["mode"] is None  # an earlier try published it, and was killed
    assert answer == {"views": views}  # the task of `w` fails with it


@pytest.mark.parametrize(("number", "raises"), [(1, True), (2, True), (3, False)])
def test_a_failure_that_may_pass_is_tried_again_and_at_last_only_reported(
    deployment: Deployment, submitted: Any, number: int, raises: bool
) -> None:
    submitted(deployment, {"views": {"w": {**FAILED, "again": True}}}, error="Error code is: 2.")
    at = context(number=number)
    if raises:
        with pytest.raises(AirflowException, match="DIVIDE_BY_ZERO"):
            refresh(deployment, "w").execute(at)
    else:
        assert refresh(deployment, "w").execute(at)["views"]["w"]["state"] == "failed"


@pytest.mark.parametrize(
    ("answer", "error", "kind", "text"),
    [
        ({"error": "bid version 4 can no longer be read", "again": False}, "Error code is: 3", AirflowFailException, "bid version 4"),
        ({"error": "Other writers won", "again": True}, "Error code is: 2", AirflowException, "Other writers won"),
        (None, "Cannot execute ... lakejoin: x.yml, line 3: no view 'w'\nmore", AirflowFailException, "x.yml, line 3: no view 'w'"),
        (None, "Cannot execute: killed. Error code is: -9.", AirflowException, "Error code is: -9"),
    ],
)
def test_a_failure_reads_as_lakejoin_says_it_and_is_tried_again_only_where_that_may_help(
    deployment: Deployment, submitted: Any, answer: Any, error: str, kind: type[Exception], text: str
) -> None:
    submitted(deployment, answer, error)
    with pytest.raises(AirflowException, match=text) as raised:
        LakejoinOperator(task_id="verify", deployment=deployment, command=["verify", "--all"]).execute(context())
    assert type(raised.value) is kind


def test_an_answer_of_an_earlier_try_is_not_taken_for_this_ones(deployment: Deployment, submitted: Any) -> None:
    task = LakejoinOperator(task_id="maintain", deployment=deployment, command=["maintain", "--all"])
    submitted(deployment, {"error": "of the first try", "again": True}, "Error code is: 2")
    with pytest.raises(AirflowException, match="of the first try"):
        task.execute(context())
    submitted(deployment, None, "Error code is: -9.")
    with pytest.raises(AirflowException, match="Error code is: -9"):
        task.execute(context())


FORM = {"view": "v", "mode": "replay", "since": "bid=3, auction=1", "until": None, "step": "2", "publish": True, "dry_run": False}
PLAN = {"steps": [{"until": {"bid": 3, "auction": 1}}, {"until": {"bid": 9, "auction": 4}}]}


def test_a_backfill_is_planned_first_and_then_made_over_just_that_range(deployment: Deployment) -> None:
    plan = BackfillOperator(task_id="plan", deployment=deployment)
    common = ["backfill", "v", "--mode", "replay", "--step", "2"]
    assert plan.arguments(context(params=FORM)) == [*common, "--since=bid=3", "--since=auction=1", "--dry-run"]
    make = BackfillOperator(task_id="backfill", deployment=deployment, planned_by="plan")
    ends = ["--until=bid=9", "--until=auction=4", "--since=bid=3", "--since=auction=1", "--publish"]
    assert make.arguments(context(params=FORM, planned=PLAN)) == [*common, *ends]
    again = {**FORM, "mode": "catch-up", "since": None}
    assert make.arguments(context(params=again, planned=PLAN))[6:] == ["--until=bid=9", "--until=auction=4"]
    with pytest.raises(AirflowSkipException, match="dry run"):
        make.arguments(context(params={**FORM, "dry_run": True}))


def sign(deployment: Deployment, **said: Any) -> None:
    """What a real-time path says of itself, in its lease."""
    folder = Path(f"{deployment.config.view_path('v')}__realtime", "_lakejoin")
    folder.mkdir(parents=True, exist_ok=True)
    own = {"state": "running", "renewed": time.time(), "host": socket.gethostname(), "process": os.getpid()}
    (folder / "lease-00000001.json").write_text(json.dumps({**own, **said}))


def checked(deployment: Deployment) -> None:
    CheckHeartbeat(task_id="check", deployment=deployment).execute(context())


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"state": "failed", "error": "the feed has a gap"}, "'v' has failed: the feed has a gap. Run the DAG lakejoin_realtime"),
        ({"state": "stopped"}, "'v' has stopped"),
        ({"renewed": 0}, r"is dead: process \d+ on .* has not renewed its lease for \d+ days"),
        ({"latency_seconds": {"p95": 900.0}, "backlog_versions": 40}, "is behind: 40 versions wait, and 95 % of changes took up to 900 s"),
    ],
)
def test_a_real_time_path_that_is_dead_or_behind_fails_the_check(deployment: Deployment, said: Any, text: str) -> None:
    with pytest.raises(AirflowException, match="has never run"):
        checked(deployment)
    sign(deployment, latency_seconds={"p95": 900.0}, backlog_versions=0)  # late once, and done with it
    checked(deployment)
    sign(deployment, **said)
    with pytest.raises(AirflowException, match=text):
        checked(deployment)


def test_real_time_paths_that_run_are_not_started_again(deployment: Deployment) -> None:
    sign(deployment)
    with pytest.raises(AirflowSkipException, match="run"):
        StartRealtime(task_id="start", deployment=deployment).execute(context())


def test_in_cluster_mode_the_workers_python_is_not_the_drivers(written: Written) -> None:
    file = written({"v": {"query": JOIN}}, airflow={"submit": {"deploy_mode": "cluster", "conf": {"spark.x": "y"}}})
    task = airflow_dags(file)["lakejoin_refresh_v"].tasks[0]
    assert isinstance(task, RefreshOperator)
    assert (task.env_vars, task.conf, task._deploy_mode) == ({}, {**AT_START, "spark.x": "y"}, "cluster")


HEARD: list[Any] = []


def heard(event: Any) -> None:
    """What `airflow.on_finding` names in the test below; it fails after it has heard."""
    HEARD.append(event["event"])
    raise RuntimeError("the chat is down")


def test_findings_are_reported_and_critical_ones_fail_the_task_with_the_command_to_run(deployment: Deployment, submitted: Any) -> None:
    airflow = deployment.config.airflow.model_copy(update={"on_finding": "tests.airflow.test_operators:heard"})
    called = replace(deployment, config=deployment.config.model_copy(update={"airflow": airflow}))
    said = {"scope": "v", "check": "exactness", "subject": "rows", "cause": "a broken key", "command": "lakejoin rebuild v"}
    found = [{**said, "id": "F1", "severity": "critical"}, {**said, "id": "F2", "severity": "warning"}]
    submitted(called, {"findings": found, "events": [{"event": "opened"}, {"event": "resolved"}]}, "Error code is: 1.")
    task = CheckOperator(task_id="check", deployment=called, command=["check", "--all"])
    with pytest.raises(AirflowFailException, match=r"^F1 v, exactness: rows \(a broken key\). Run: lakejoin rebuild v$"):
        task.execute(context())
    assert HEARD == ["opened", "resolved"]
    views = {"v": {**DONE, "result": None, "events": [{"event": "escalated"}]}, "w": FAILED}
    submitted(called, {"views": views})
    refresh(called, "v", "w").execute(context())  # checked after its refresh
    assert HEARD == ["opened", "resolved", "escalated"]
    assert task.operator_extra_links[0].get_link(task, ti_key=None).endswith("/_lakejoin/quality/report.html")


def test_settings_of_spark_submit_may_be_set_by_the_configuration_and_by_a_task(written: Written) -> None:
    submit = {"deploy_mode": "cluster", "yarn_track_via_rm_api": False}
    deployment = Deployment.of(written({"v": {"query": JOIN, "realtime": True}}, airflow={"submit": submit}))
    assert StartRealtime(task_id="start", deployment=deployment).command == ["realtime", "--all", "--json"]
