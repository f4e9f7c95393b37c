"""A refresh task that has nothing to do starts no application, and returns what an application would have returned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException

from lake.airflow.no_changes import session_settings
from lake.airflow.operators import CheckOperator, RefreshOperator
from lake.airflow.settings import Deployment
from lake.cli.scheduled_run import GroupRefresh, Run
from lake.spark.preflight import AT_START
from lake.spark.session_digest import SESSION_DIGEST, settings_digest
from tests.airflow.conftest import JOIN
from tests.airflow.test_operators import Written, context
from tests.lakes import TestLake

NOW = datetime.now(UTC)


class StartedError(AirflowException):
    """An application was asked for."""


@pytest.fixture
def built(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    """Two views, one on the other, published by an application of an Airflow task."""
    monkeypatch.setattr(SparkSubmitOperator, "execute", _started)
    lake.table("a", "SELECT * FROM VALUES (1, 'x'), (2, 'y') t(id, s)")
    lake.view("v", "SELECT id, s FROM a")
    lake.view("top", "SELECT s, count(*) AS n FROM v GROUP BY s")
    deployment = deployed(lake)
    before = lake.spark.conf.get(SESSION_DIGEST)
    for name, value in (session_settings(deployment) or {}).items():
        lake.spark.conf.set(name, value)
    for view in ("v", "top"):
        lake.refresh(view)
    yield deployment
    lake.spark.conf.set(SESSION_DIGEST, before)


def deployed(lake: TestLake, **airflow: Any) -> Deployment:
    file = lake.folder / "lakejoin.yml"
    file.write_text(yaml.safe_dump({**lake.config, "airflow": airflow}))
    return Deployment.of(file)


def _started(self: Any, context: Any) -> None:
    raise StartedError(f"with {self.conf}")


def execute(deployment: Deployment, *views: str, **more: Any) -> Any:
    return RefreshOperator(task_id="refresh", deployment=deployment, views=views).execute(context(**more))


def without_seconds(answer: Any) -> Any:
    told = json.loads(json.dumps(answer, default=str))
    for view in told["views"].values():
        view["result"].pop("seconds")
    return told


def test_it_returns_what_an_application_returns_that_finds_nothing_to_do(built: Deployment, lake: TestLake) -> None:
    later: dict[str, Any] = {"run_type": "scheduled", "end": NOW + timedelta(days=1)}
    for more in ({}, later):
        until = more["end"].isoformat() if "end" in more else None
        answer = execute(built, "v", "top", **more)
        run = Run(lake.open, f"other {until}")
        by_spark = GroupRefresh(lake.open, ["v", "top"], until, None, lambda _: None).run(run).to_json()
        assert without_seconds(answer) == {**without_seconds(by_spark), "run": "lakejoin_refresh_v.refresh.manual__1_00_00"}
        assert {outcome["state"] for outcome in answer["views"].values()} == {"done"}


def changed(lake: TestLake) -> None:
    lake.sql("INSERT INTO {a} VALUES (3, 'z')")


def pinned(lake: TestLake) -> None:
    file = Path(lake.path("views"), "_lakejoin", "runs", "lakejoin_refresh_v.refresh.manual__1_00_00.pin.json")
    file.parent.mkdir(parents=True)
    file.write_text("{}")


@pytest.mark.parametrize("before", [changed, pinned])
def test_an_application_is_started_for_new_versions_and_for_a_run_that_has_begun(
    built: Deployment, lake: TestLake, before: Callable[[TestLake], None]
) -> None:
    before(lake)
    with pytest.raises(AirflowException, match=SESSION_DIGEST):
        execute(built, "v", "top")


def test_an_application_is_started_for_checks_other_settings_and_earlier_times(built: Deployment, lake: TestLake) -> None:
    early: dict[str, Any] = {"run_type": "scheduled", "end": NOW - timedelta(days=1)}
    for deployment, more in (
        (built, early),
        (deployed(lake, check_after_refresh=True), {}),
        (deployed(lake, submit={"conf": {"spark.sql.ansi.enabled": "false"}}), {}),
    ):
        with pytest.raises(AirflowException, match="with"):
            execute(deployment, "v", **more)
    with pytest.raises(AirflowException, match="with"):
        CheckOperator(task_id="check", deployment=built, command=["check", "--all"]).execute(context())
    assert execute(deployed(lake, submit={"executor_memory": "2g", "conf": {"spark.driver.memory": "2g"}}), "v")


def test_the_digest_is_that_of_the_command_and_is_not_shown_where_there_are_secrets(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Deployment.of(written({"v": {"query": JOIN}}, spark={"spark.x": "y"}))
    assert session_settings(plain) == {SESSION_DIGEST: settings_digest({"spark.x": "y"})}
    cluster = Deployment.of(written({"v": {"query": JOIN}}, airflow={"submit": {"deploy_mode": "cluster"}}))
    assert session_settings(cluster) is None
    monkeypatch.setenv("SECRET", "s3cret")
    private = Deployment.of(written({"v": {"query": JOIN}}, spark={"spark.hadoop.key": "${SECRET}"}))
    task = RefreshOperator(task_id="refresh", deployment=private, views=["v"])
    with task.private_settings():
        assert task.conf == AT_START
        assert SESSION_DIGEST in Path(str(task.properties_file)).read_text()
