"""Airflow with a scheduler, a triggerer and its REST API on a small lake: schedules, events, retries, killed processes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
import yaml
from pyspark.sql import SparkSession

from examples.nexmark.airflow import environment, password, standalone
from lake.server.client import Client
from lake.server.socket_folder import place_of
from tests.conftest import QUICK
from tests.lakes import TestLake, multiset, until
from tests.server.test_serve import short_folder

JOIN = "SELECT l.id, l.k, r.y FROM l LEFT JOIN r ON l.k = r.k"


class Api:
    """Airflow's REST API."""

    def __init__(self, env: dict[str, str]) -> None:
        self._address = env["AIRFLOW__API__BASE_URL"]
        self._token = self.call("/auth/token", {"username": "admin", "password": password(env)})["access_token"]

    def call(self, path: str, body: Any = None, method: str | None = None) -> Any:
        token = {"Authorization": f"Bearer {self._token}"} if hasattr(self, "_token") else {}
        data = json.dumps(body).encode() if body is not None else None
        request = Request(self._address + path, data, {"Content-Type": "application/json", **token}, method=method)
        try:
            with urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except HTTPError as error:
            raise AssertionError(f"{path}: {error.read().decode()}") from error

    def events(self, name: str) -> list[dict[str, Any]]:
        """What the events of an asset carried, oldest first. (Airflow 3.3.2 can't answer while a run that an event started is queued.)"""
        return [event["extra"] for event in self._of(name)]

    def told_by(self, name: str) -> list[str]:
        """The runs that told of an asset, oldest first."""
        return [event["source_run_id"] for event in self._of(name)]

    def _of(self, name: str) -> list[dict[str, Any]]:
        return [event for event in until(self._events)["asset_events"] if event["name"] == name]

    def _events(self) -> Any:
        try:
            return self.call("/api/v2/assets/events?order_by=timestamp&limit=100")
        except AssertionError as error:
            if "Internal Server Error" not in str(error):
                raise
            return None

    def start(self, dag: str, **form: Any) -> str:
        return str(self.call(f"/api/v2/dags/{dag}/dagRuns", {"logical_date": None, "conf": form})["dag_run_id"])

    def state(self, dag: str, run: str) -> str:
        return str(self.call(f"/api/v2/dags/{dag}/dagRuns/{quote(run)}")["state"])

    def ended(self, dag: str, run: str) -> str:
        """How a run ended."""
        until(lambda: self.state(dag, run) in ("success", "failed"))
        return self.state(dag, run)

    def answer(self, dag: str, run: str, task: str) -> Any:
        """A task's return value."""
        found = self.call(f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/taskInstances/{task}/xcomEntries/return_value?deserialize=true")
        return found["value"]

    def runs(self, dag: str) -> list[str]:
        """The runs of a DAG, oldest first."""
        return [run["dag_run_id"] for run in self.call(f"/api/v2/dags/{dag}/dagRuns?order_by=run_after")["dag_runs"]]

    def followed(self, dag: str) -> int:
        """The number of events that runs of a DAG were started by, of those that have succeeded."""
        done = [run for run in self.runs(dag) if self.state(dag, run) == "success"]
        return sum(len(self.call(f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/upstreamAssetEvents")["asset_events"]) for run in done)

    def tries(self, dag: str, run: str, task: str) -> int:
        return int(self.call(f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/taskInstances/{task}")["try_number"])

    def log(self, dag: str, run: str, task: str, number: int = 1) -> str:
        return json.dumps(self.call(f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/taskInstances/{task}/logs/{number}?full_content=true"))


def processes(*words: str) -> list[int]:
    """The processes on this machine whose command line has all the words."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "cmdline").read_text()
        except OSError:
            continue
        if all(word in text for word in words):
            found.append(int(folder.name))
    return found


@pytest.fixture
def small(spark: SparkSession, tmp_path: Path) -> TestLake:
    """A join that follows its sources' changes, a view on it in the same application, and a view that does not work."""
    lake = TestLake(spark, tmp_path)
    lake.table("l", "SELECT * FROM VALUES (1, 1), (2, 1), (3, NULL), (3, NULL) t(id, k)")
    lake.table("r", "SELECT * FROM VALUES (1, 10), (2, 20) t(k, y)")
    lake.view("v", JOIN, group="g", refresh="changes", realtime={"trigger_seconds": 0.5})
    lake.view("w", "SELECT y, count(*) AS rows FROM v GROUP BY y", group="g", refresh="changes")
    lake.view("broken", "SELECT nothing FROM l")
    lake.table("many", "SELECT id FROM range(30000)")
    lake.view("endless", "SELECT a.id, count(*) AS n FROM many a JOIN many b ON sha2(CAST(a.id + b.id AS STRING), 512) > '' GROUP BY a.id")
    return lake


TOKEN = "t" * 32


@pytest.fixture
def airflow(small: TestLake) -> Iterator[Api]:
    settings = {"poll_seconds": 0.5, "retry_seconds": 1, "quality": None, "maintenance": None, "heartbeat": None}
    (small.folder / "lakejoin.yml").write_text(yaml.safe_dump({**small.config, "spark": QUICK, "airflow": settings}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {**environment(small.folder, port), "LAKEJOIN_TOKEN": TOKEN}
    with standalone(env):
        yield Api(env)
    assert not processes(str(small.folder)), "something of Airflow's was left behind"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_airflow_runs_it_all(small: TestLake, airflow: Api) -> None:
    # the watches see the two tables for the first time, in one run or in two: the views are built, and each is told of with its snapshot
    until(lambda: airflow.followed("lakejoin_refresh_g") == 2)
    assert airflow.events("lakejoin/v") == [
        {"view": "v", "since": {}, "snapshot": {"l": 0, "r": 0}, "rows_inserted": 4, "rows_deleted": 0, "mode": "build"}
    ]
    assert not airflow.call("/api/v2/importErrors")["import_errors"]
    built = airflow.told_by("lakejoin/v")[0]
    until(lambda: airflow.state("lakejoin_refresh_g", built) == "success")
    told = airflow.answer("lakejoin_refresh_g", built, "views.v")
    assert (told["mode"], told["rows_inserted"], told["moved"]) == ("build", 4, True)
    assert 0 < told["seconds"] < 600
    assert "View 'v':" in airflow.log("lakejoin_refresh_g", built, "views.v")

    # a commit to a source: the refresh is killed in the middle, tried again, and tells what changed
    small.sql("UPDATE {l} SET k = 2 WHERE id = 2")
    until(lambda: processes("job.py", "refresh", str(small.folder)))
    for process in processes("job.py", "refresh", str(small.folder)):
        os.kill(process, signal.SIGKILL)
    until(lambda: len(airflow.events("lakejoin/v")) == 2)
    told = airflow.events("lakejoin/v")[-1]
    assert (told["since"], told["snapshot"]) == ({"l": 0, "r": 0}, {"l": 1, "r": 0})
    assert airflow.tries("lakejoin_refresh_g", airflow.told_by("lakejoin/v")[-1], "refresh") == 2
    small.assert_exact("v")
    assert small.open.verify("w").exact

    _a_run_that_is_cleared_goes_to_the_same_snapshot(small, airflow)
    _checks_end_with_a_report_that_their_run_links_to(airflow)
    _a_failure_reads_as_lakejoin_says_it(airflow)
    _a_backfill_by_the_form(small, airflow)
    _a_real_time_path_is_started_and_looked_after(small, airflow)
    _the_same_in_a_server(small, airflow)


def _checks_end_with_a_report_that_their_run_links_to(airflow: Api) -> None:
    run = airflow.start("lakejoin_quality")
    assert airflow.ended("lakejoin_quality", run) == "failed"
    assert "broken, exactness could not run: View 'broken' has not been built yet" in airflow.log("lakejoin_quality", run, "check")
    links = airflow.call(f"/api/v2/dags/lakejoin_quality/dagRuns/{quote(run)}/taskInstances/check/links")["extra_links"]
    assert re.search(r"<h1>\d of \d views needs? you", Path(links["Report"].removeprefix("file://")).read_text())


def _a_run_that_is_cleared_goes_to_the_same_snapshot(small: TestLake, airflow: Api) -> None:
    first = airflow.runs("lakejoin_refresh_g")[0]
    airflow.call(f"/api/v2/dags/lakejoin_refresh_g/dagRuns/{quote(first)}/clear", {"dry_run": False})
    until(lambda: airflow.tries("lakejoin_refresh_g", first, "refresh") == 2)
    assert airflow.ended("lakejoin_refresh_g", first) == "success"
    answer = airflow.answer("lakejoin_refresh_g", first, "refresh")
    assert answer["pinned"] == {"l": 0, "r": 0}
    assert len(airflow.events("lakejoin/v")) == 2  # it published nothing, and told nobody
    assert answer["views"]["v"]["result"]["reason"] == "the view is already at a newer snapshot of l"
    assert airflow.answer("lakejoin_refresh_g", first, "views.v")["reason"] == "the view is already at a newer snapshot of l"


def _a_failure_reads_as_lakejoin_says_it(airflow: Api) -> None:
    run = airflow.start("lakejoin_refresh_broken")
    assert airflow.ended("lakejoin_refresh_broken", run) == "failed"
    for task in ("refresh", "views.broken"):
        assert airflow.tries("lakejoin_refresh_broken", run, task) == 1  # somebody has to mend it: it was not tried again
    log = airflow.log("lakejoin_refresh_broken", run, "views.broken")
    assert "The query of view 'broken' can't be used: [UNRESOLVED_COLUMN" in log


def _a_view_is_tried_again_alone(airflow: Api) -> None:
    dag = "lakejoin_refresh_g"
    run = airflow.runs(dag)[-1]
    assert airflow.ended(dag, run) == "success"
    refreshed, tries = airflow.tries(dag, run, "refresh"), airflow.tries(dag, run, "views.w")
    cleared = {"dry_run": False, "dag_run_id": run, "task_ids": ["views.w"], "only_failed": False}
    airflow.call(f"/api/v2/dags/{dag}/clearTaskInstances", cleared)
    until(lambda: airflow.tries(dag, run, "views.w") > tries)
    assert airflow.ended(dag, run) == "success"
    assert airflow.tries(dag, run, "refresh") == refreshed
    assert airflow.answer(dag, run, "views.w")["mode"] == "none"  # it was at the run's snapshot already


def _a_backfill_by_the_form(small: TestLake, airflow: Api) -> None:
    form = {"view": "v", "mode": "replay", "since": "l=0 r=0", "until": "l=1"}
    with pytest.raises(AssertionError, match="since"):
        airflow.start("lakejoin_backfill", **{**form, "since": "l:0"})
    run = airflow.start("lakejoin_backfill", **form)
    assert airflow.ended("lakejoin_backfill", run) == "success"
    planned, made = (airflow.answer("lakejoin_backfill", run, task)["steps"] for task in ("plan", "backfill"))
    assert [step["until"] for step in planned] == [step["until"] for step in made] == [{"l": 0, "r": 0}, {"l": 1, "r": 0}]
    assert [step["done"] for step in planned] == [False, False]
    assert [step["result"]["mode"] for step in made] == ["build", "incremental"]
    assert multiset(small.open.read("v", at={"l": 0})).total() == 4


def _a_real_time_path_is_started_and_looked_after(small: TestLake, airflow: Api) -> None:
    assert airflow.ended("lakejoin_heartbeat", airflow.start("lakejoin_heartbeat")) == "failed"
    run = airflow.start("lakejoin_realtime")
    assert airflow.ended("lakejoin_realtime", run) == "success"
    assert airflow.ended("lakejoin_heartbeat", airflow.start("lakejoin_heartbeat")) == "success"
    again = airflow.start("lakejoin_realtime")
    assert airflow.ended("lakejoin_realtime", again) == "success"
    assert processes("job.py", "realtime", str(small.folder))
    subprocess.run(["kill", "-9", *map(str, processes("job.py", "realtime", str(small.folder)))], check=True)
    until(lambda: airflow.ended("lakejoin_heartbeat", airflow.start("lakejoin_heartbeat")) == "failed")


def _the_same_in_a_server(small: TestLake, airflow: Api) -> None:
    """From here on the tasks are requests: no application is started for them."""
    file, runtime = small.folder / "lakejoin.yml", {"LAKEJOIN_RUNTIME_DIR": short_folder(), "LAKEJOIN_TOKEN": TOKEN}
    command = [sys.executable, "-m", "lake.cli", "--config", str(file), "serve", "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(command, env={**os.environ, **runtime})
    try:
        client = Client(place_of(file, None, runtime).socket)
        url = until(lambda: suppressed(lambda: client.get("/v1/server")["url"]))
        config = yaml.safe_load(file.read_text())
        file.write_text(yaml.safe_dump({**config, "airflow": {**config["airflow"], "server": url}}))
        number = len(airflow.events("lakejoin/v"))
        small.sql("DELETE FROM {l} WHERE id = 1")
        until(lambda: len(airflow.events("lakejoin/v")) > number)
        assert airflow.events("lakejoin/v")[-1]["mode"] == "incremental"
        assert any(request["verb"] == "refresh" and request["exit_code"] == 0 for request in client.get("/v1/requests"))
        assert not processes("job.py", "refresh", str(small.folder))
        small.assert_exact("v")
        _a_failure_reads_as_lakejoin_says_it(airflow)
        number = len(airflow.events("lakejoin/w"))
        _a_view_is_tried_again_alone(airflow)
        assert len(airflow.events("lakejoin/w")) == number  # what it found was told before
        assert [request["view"] for request in client.get("/v1/requests") if request["view"] == "w" and request["exit_code"] == 0]

        # a task that waits in the triggerer is marked as failed: its request is cancelled
        dag = "lakejoin_refresh_endless"
        run = airflow.start(dag)
        task = f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/taskInstances/refresh"
        until(lambda: airflow.call(task)["triggerer_job"])
        airflow.call(task, {"new_state": "failed"}, method="PATCH")
        until(lambda: any(r["view"] == "endless" and r["cancelled"] and r["exit_code"] == 130 for r in client.get("/v1/requests")))
    finally:
        server.terminate()
        server.wait(timeout=120)


def suppressed(ask: Callable[[], Any]) -> Any:
    """The answer of a server that is being started; None while there is none."""
    with suppress(OSError):
        return ask()
    return None
