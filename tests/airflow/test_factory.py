"""The DAGs of a lakejoin.yml: schedules, tasks, sources that start them, and what an invalid view changes for the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.sdk import DAG, Asset, CronDataIntervalTimetable, CronTriggerTimetable

from lake.airflow.factory import airflow_dags, raise_for_invalid_views
from lake.airflow.operators import RefreshOperator
from lake.airflow.triggers import NewVersion
from lake.config.groups import groups
from lake.config.loader import load
from lake.errors import ConfigError
from lake.spark.preflight import AT_START
from tests.airflow.conftest import JOIN, TABLES

Written = Callable[..., Path]
FOLDER = Path(__file__).resolve().parents[2] / "dags"


def started_by(dag: DAG) -> list[Asset]:
    """The assets that start a DAG."""
    return list(dag.timetable.asset_condition.objects)


def parsed(file: Path, folder: Path = FOLDER) -> dict[str, Any]:
    """What Airflow finds in a folder, in a process that has loaded nothing before."""
    code = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
heavy = [name for name in ("pyspark", "great_expectations", "pandas", "py4j") if name in sys.modules]
from airflow.serialization.serialized_objects import DagSerialization
tasks = {dag_id: [task.task_id for task in dag.tasks] for dag_id, dag in bag.dags.items() if DagSerialization.to_dict(dag)}
print(json.dumps({"tasks": tasks, "errors": bag.import_errors, "heavy": heavy}))
"""
    env = {**os.environ, "LAKEJOIN_CONFIG": str(file)}
    out = subprocess.run([sys.executable, "-c", code, str(folder)], env=env, capture_output=True, text=True, check=True).stdout
    return dict(json.loads(out.splitlines()[-1]))


def test_each_kind_of_dag_exists_and_nothing_heavy_is_loaded(written: Written) -> None:
    found = parsed(written({"q20": {"query": JOIN, "realtime": True}, "w": {"query": "SELECT id FROM q20", "group": "more"}}))
    assert found == {
        "tasks": {
            "lakejoin_refresh_q20": ["refresh", "views.q20", "outcome"],
            "lakejoin_refresh_more": ["refresh", "views.w", "outcome"],
            "lakejoin_backfill": ["plan", "backfill"],
            "lakejoin_quality": ["check"],
            "lakejoin_maintenance": ["maintain"],
            "lakejoin_realtime": ["start"],
            "lakejoin_heartbeat": ["check"],
        },
        "errors": {},
        "heavy": [],
    }


def test_two_hundred_views_are_two_hundred_and_three_dags_or_as_few_as_there_are_groups(written: Written) -> None:
    views = {f"v{n}": {"query": JOIN, "schedule": "@hourly"} for n in range(200)}
    assert len(airflow_dags(written(views))) == 203
    grouped = {name: {**view, "group": f"g{n % 4}"} for n, (name, view) in enumerate(views.items())}
    dags = airflow_dags(written(grouped))
    assert len(dags) == 7
    tasks = {task.task_id for task in dags["lakejoin_refresh_g0"].tasks}
    assert tasks == {"refresh", "outcome", *(f"views.v{n}" for n in range(0, 200, 4))}  # one Spark application for fifty views


def test_an_invalid_view_is_an_import_error_of_its_own_and_the_others_stay(written: Written) -> None:
    file = written({"good": {"query": JOIN}, "bad": {"query": JOIN, "shedule": "@daily"}, "lost": {"query_file": "nowhere.sql"}})
    found = parsed(file)
    assert "lakejoin_refresh_good" in found["tasks"]
    assert not {"lakejoin_refresh_bad", "lakejoin_refresh_lost"} & found["tasks"].keys()
    ((where, error),) = found["errors"].items()
    assert where.endswith("lakejoin_invalid.py")
    assert f"{file}, line" in error
    assert "`views.bad.shedule` is not known here. Did you mean 'schedule'?" in error
    assert "nowhere.sql can't be read" in error


def test_what_is_wrong_outside_the_views_is_an_import_error_of_the_dag_file(written: Written) -> None:
    found = parsed(written({"good": {"query": JOIN}}, airflow={"pol": "spark"}))
    assert not found["tasks"]
    assert any("`airflow.pol` is not known here. Did you mean 'pool'" in error for error in found["errors"].values())


def test_a_wrong_cron_expression_is_an_error_of_its_own_view(written: Written) -> None:
    file = written({"good": {"query": JOIN}, "bad": {"query": JOIN, "schedule": "every hour"}})
    assert "lakejoin_refresh_good" in airflow_dags(file)
    with pytest.raises(ConfigError, match=r"bad: .*'every hour' is not a cron expression"):
        raise_for_invalid_views(file)
    with pytest.raises(ConfigError, match=r"`airflow.quality`: 'nightly' is not a cron expression"):
        airflow_dags(written({"good": {"query": JOIN}}, airflow={"quality": "nightly"}))


def test_the_configuration_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKEJOIN_CONFIG", raising=False)
    with pytest.raises(ConfigError, match="LAKEJOIN_CONFIG"):
        airflow_dags()


def test_scheduled_views_have_data_intervals_and_the_rest_of_the_dags_go_by_the_clock(written: Written) -> None:
    settings = {"quality": "5 4 * * *", "maintenance": None, "catchup": True, "start_date": "2026-05-01"}
    dags = airflow_dags(written({"v": {"query": JOIN, "schedule": "*/5 * * * *", "tags": ["sales"], "owner": "ann"}}, airflow=settings))
    refresh = dags["lakejoin_refresh_v"]
    assert isinstance(refresh.timetable, CronDataIntervalTimetable)
    assert (refresh.catchup, refresh.start_date, refresh.max_active_runs) == (True, datetime(2026, 5, 1, tzinfo=UTC), 1)
    assert refresh.tags == {"lakejoin", "sales"}
    assert refresh.tasks[0].owner == "ann"
    assert isinstance(dags["lakejoin_quality"].timetable, CronTriggerTimetable)
    assert dags["lakejoin_maintenance"].schedule is None


def test_retries_pool_timeout_and_what_spark_submit_takes_come_from_the_configuration(written: Written) -> None:
    settings = {
        "pool": "spark",
        "conn_id": "yarn",
        "retries": 5,
        "retry_seconds": 7,
        "timeout_minutes": 3,
        "submit": {"executor_memory": "3g"},
    }
    file = written({"v": {"query": JOIN}}, airflow=settings, spark={"spark.driver.memory": "4g"})
    task = airflow_dags(file)["lakejoin_refresh_v"].tasks[0]
    assert isinstance(task, RefreshOperator)
    assert (task.pool, task.retries, task.retry_exponential_backoff) == ("spark", 5, True)
    assert (task.retry_delay.total_seconds(), task.execution_timeout.total_seconds()) == (7, 180)  # type: ignore[union-attr]
    assert (task._conn_id, task._executor_memory, task.conf) == ("yarn", "3g", {**AT_START, "spark.driver.memory": "4g"})


def test_a_table_is_watched_once_whatever_number_of_views_read_it(written: Written) -> None:
    dags = airflow_dags(written({f"v{n}": {"query": JOIN, "refresh": "changes"} for n in range(3)}, airflow={"poll_seconds": 4}))
    assets: dict[str, set[int]] = {}
    for n in range(3):
        for asset in started_by(dags[f"lakejoin_refresh_v{n}"]):
            assets.setdefault(asset.name, set()).add(id(asset))
            (watcher,) = asset.watchers
            assert isinstance(watcher.trigger, (NewVersion, dict))
    assert {name: len(found) for name, found in assets.items()} == {"lakejoin/auction": 1, "lakejoin/bid": 1}


def test_an_upstream_dags_asset_takes_the_place_of_a_watch(written: Written) -> None:
    tables = {**TABLES, "bid": {"path": "bid", "asset": "s3://lake/bid"}}
    dag = airflow_dags(written({"v": {"query": JOIN, "refresh": "changes"}}, tables=tables))["lakejoin_refresh_v"]
    found: dict[str, Asset] = {asset.uri: asset for asset in started_by(dag)}
    assert not found["s3://lake/bid"].watchers


@pytest.mark.parametrize(
    ("views", "expected"),
    [
        ({"a": {"query": JOIN}, "b": {"query": "SELECT id FROM a"}}, {"a": ["auction", "bid"], "b": ["a"]}),
        # what a view below has read, it starts: the table itself starts nothing more
        ({"a": {"query": JOIN}, "b": {"query": "SELECT id FROM a JOIN bid USING (id)"}}, {"a": ["auction", "bid"], "b": ["a"]}),
        ({"a": {"query": JOIN}, "b": {"query": "SELECT 1 FROM a, person"}}, {"a": ["auction", "bid"], "b": ["a", "person"]}),
        ({"a": {"query": JOIN, "group": "g"}, "b": {"query": "SELECT id FROM a", "group": "g"}}, {"g": ["auction", "bid"]}),
        ({"c": {"query": "SELECT * FROM `BID` -- and no auction"}}, {"c": ["auction", "bid"]}),  # at worst one too many
        ({"a": {"query": "SELECT id FROM b"}, "b": {"query": "SELECT a FROM bid a"}}, {"a": ["b"], "b": ["bid"]}),  # an alias is no view
        # what one view of a group is started by through another view, the next is started by itself
        (
            {"x": {"query": JOIN}, "c": {"query": "SELECT id FROM x", "group": "g"}, "e": {"query": "SELECT 1 FROM bid", "group": "g"}},
            {"x": ["auction", "bid"], "g": ["bid", "x"]},
        ),
        # a WITH of a view's name is no view, but what it is made of is read
        (
            {"c": {"query": "WITH d AS (SELECT * FROM bid) SELECT * FROM d"}, "d": {"query": "SELECT 1 FROM bid"}},
            {"c": ["bid"], "d": ["bid"]},
        ),
        ({"c": {"query": "WITH d AS (SELECT * FROM d) SELECT * FROM d"}, "d": {"query": JOIN}}, {"c": ["d"], "d": ["auction", "bid"]}),
        ({"a": {"query": "SELECT b FROM ((( bid"}, "b": {"query": "SELECT 1 FROM auction"}}, {"a": ["b", "bid"], "b": ["auction"]}),
    ],
)
def test_views_are_started_by_what_they_read(written: Written, views: dict[str, Any], expected: dict[str, list[str]]) -> None:
    found, wrong = groups(load(written({name: {**view, "refresh": "changes"} for name, view in views.items()})))
    assert not wrong
    assert {group.name: sorted(group.sources) for group in found} == expected


def test_a_functions_parameters_are_read_from_its_source(written: Written, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import nothing_that_there_is\n\ndef joined(bid, *, person):\n    return bid\n")
    views = {"f": {"function": "mine:joined", "refresh": "changes"}, "g": {"function": "elsewhere:it", "refresh": "changes"}}
    found, _ = groups(load(written(views)))
    assert {group.name: sorted(group.sources) for group in found} == {"f": ["bid", "person"], "g": ["auction", "bid", "person"]}


def test_views_of_a_group_must_have_one_schedule_and_tables_of_a_catalog_an_asset(written: Written) -> None:
    views = {"a": {"query": JOIN, "group": "g", "schedule": "@daily"}, "b": {"query": JOIN, "group": "g"}, "c": {"query": JOIN}}
    found, wrong = groups(load(written(views)))
    assert [group.name for group in found] == ["c"]
    assert "must have the same `schedule`" in str(wrong["g"])
    named = {**TABLES, "bid": {"name": "main.sales.bid"}}
    _, wrong = groups(load(written({"v": {"query": JOIN, "refresh": "changes"}}, tables=named)))
    assert "'bid' is named in a catalog" in str(wrong["v"])


def test_a_schedule_and_changes_exclude_each_other(written: Written) -> None:
    with pytest.raises(ConfigError, match="either `schedule`"):
        load(written({"v": {"query": JOIN, "schedule": "@daily", "refresh": "changes"}}))


@pytest.mark.parametrize("text", ["bid=10 auction=3", "bid=10,auction=3", "2026-01-31T12:00", "", None])
def test_the_backfills_form_takes_versions_and_times(written: Written, text: str | None) -> None:
    params = airflow_dags(written({"v": {"query": JOIN}}))["lakejoin_backfill"].params
    params["since"] = text
    assert params.validate()["since"] == text


@pytest.mark.parametrize(("name", "value"), [("since", "bid:10"), ("view", "w"), ("mode", "again"), ("step", "2x"), ("until", "yesterday")])
def test_the_backfills_form_refuses_what_it_does_not_understand(written: Written, name: str, value: str) -> None:
    params = airflow_dags(written({"v": {"query": JOIN}}))["lakejoin_backfill"].params
    with pytest.raises(ValueError, match="Invalid input"):
        params[name] = value


def test_the_example_in_the_documentation_is_a_configuration(tmp_path: Path) -> None:
    page = (FOLDER.parent / "docs" / "how-to" / "airflow.md").read_text()
    (text,) = [block.split("```")[0] for block in page.split("```yaml\n")[1:] if block.startswith("views:")]
    file = tmp_path / "lakejoin.yml"
    file.write_text(text)
    assert yaml.safe_load(text)
    assert len(airflow_dags(file)) > 4
