"""Tasks that `lakejoin serve` carries out, with a small HTTP server in its place."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred

from lake.airflow import operators
from lake.airflow.operators import BackfillOperator, CheckOperator, LakejoinOperator, RefreshOperator
from lake.airflow.server import RequestEnded, ServerRequest
from lake.airflow.settings import Deployment
from tests.airflow.conftest import JOIN
from tests.airflow.test_operators import DONE, RESULT, context

TOKEN = "t" * 32
ROOT = Path(__file__).parent.parent.parent


class Server:
    """Remembers what it was asked, and answers what the test says. `answers`: of GET, one after the other, the last again and again."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.taken = (202, {"state": "waiting"})
        self.answers: list[tuple[int, Any]] = [(200, self.done())]
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: Any) -> None:
                pass

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                outer.asked.append((self.command, self.path, json.loads(body) if body else None))
                found = outer.taken if self.command == "POST" else outer.answers[0]
                if self.command == "GET" and len(outer.answers) > 1:
                    outer.answers.pop(0)
                if self.headers.get("authorization") != f"Bearer {TOKEN}":
                    found = (401, {"error": "The token is missing or wrong."})
                text = json.dumps(found[1]).encode()
                self.send_response(found[0])
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_DELETE = answer

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    @staticmethod
    def done(result: Any = None, exit_code: int = 0, *messages: str, **more: Any) -> dict[str, Any]:
        said = {"state": "done", "result": result, "exit_code": exit_code, "messages": list(messages), "again": False, "cancelled": ""}
        return {**said, **more}


RUNNING = (200, {"state": "running"})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    found = Server()
    monkeypatch.setenv("LAKEJOIN_TOKEN", TOKEN)
    monkeypatch.setattr(operators, "_SOON", 0.0)
    yield found
    found.close()


@pytest.fixture
def deployment(written: Callable[..., Path], server: Server) -> Deployment:
    return Deployment.of(written({"v": {"query": JOIN}}, airflow={"server": server.url}))


def refresh(deployment: Deployment) -> RefreshOperator:
    return RefreshOperator(task_id="refresh", deployment=deployment, views=["v"])


def test_a_task_is_one_request_with_the_words_of_its_command(deployment: Deployment, server: Server) -> None:
    outcome = {**DONE, "result": RESULT}
    server.answers = [(200, server.done({"views": {"v": outcome}}, 0, "a message"))]
    told = context()
    assert refresh(deployment).execute(told) == {"views": {"v": outcome}}
    (method, path, body), *_ = server.asked
    assert (method, path, body["words"]) == ("POST", "/v1/command", ["refresh", "v"])
    assert body["run"].startswith("lakejoin_refresh_v.refresh.manual__1")
    assert (body["timeout"], body["abandon_after"]) == (360 * 60, 300)
    assert list(told["outlet_events"]) == ["lakejoin/v"]


def test_each_try_has_a_request_of_its_own_for_the_same_run(deployment: Deployment, server: Server) -> None:
    for number in (1, 1, 2):
        refresh(deployment).execute(context(number=number))
    names = [path for method, path, _ in server.asked if method == "GET"]
    assert len(names) == 3
    assert names[0] == names[1] != names[2]
    assert len({body["run"] for method, _, body in server.asked if method == "POST"}) == 1


def test_a_retry_cancels_what_the_earlier_try_has_left_running(deployment: Deployment, server: Server) -> None:
    refresh(deployment).execute(context(number=1))
    first = next(path for method, path, _ in server.asked if method == "GET")
    refresh(deployment).execute(context(number=2))
    assert [path for method, path, _ in server.asked if method == "DELETE"] == [first]
    order = [method for method, _, _ in server.asked]
    assert order == ["POST", "GET", "DELETE", "POST", "GET"]


def test_what_takes_longer_is_waited_for_by_a_trigger(deployment: Deployment, server: Server) -> None:
    server.answers = [RUNNING, RUNNING, (200, server.done({"views": {"v": {**DONE, "moved": False}}}))]
    with pytest.raises(TaskDeferred) as deferred:
        refresh(deployment).execute(context())
    trigger = deferred.value.trigger
    assert isinstance(trigger, RequestEnded)
    where, arguments = trigger.serialize()
    assert (where, TOKEN in str(arguments)) == ("lake.airflow.server.RequestEnded", False)
    event = asyncio.run(anext(RequestEnded(**{**arguments, "seconds": 0.01}).run()))
    assert deferred.value.method_name == "ended_in_server"
    assert refresh(deployment).ended_in_server(context(), event.payload) == {"views": {"v": {**DONE, "moved": False}}}


def test_a_trigger_ends_when_the_server_does_not_know_the_request(deployment: Deployment, server: Server) -> None:
    server.answers = [(404, {"error": "There is no request 'x'."})]
    asyncio.run(anext(RequestEnded(server.url, "x", 0.01).run()))
    with pytest.raises(AirflowException, match=r"does not know the request of this try.*There is no request") as failed:
        refresh(deployment).ended_in_server(context())
    assert not isinstance(failed.value, AirflowFailException)


def test_a_trigger_waits_for_a_server_that_is_started_again(
    deployment: Deployment, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([ConnectionRefusedError("not yet"), None, {"state": "done"}])

    def answer(self: ServerRequest) -> Any:
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(ServerRequest, "answer", answer)
    asyncio.run(anext(RequestEnded(server.url, "x", 0.01).run()))
    assert next(answers, "all taken") == "all taken"


def test_a_person_who_ends_the_task_cancels_its_request_and_no_other(deployment: Deployment, server: Server) -> None:
    asyncio.run(RequestEnded(server.url, "mine", 0.01).on_kill())
    task = refresh(deployment)
    task.execute(context())
    task.on_kill()
    own = next(path for method, path, _ in server.asked if method == "GET")
    assert [path for method, path, _ in server.asked if method == "DELETE"] == ["/v1/requests/mine", own]
    refresh(deployment).on_kill()  # one that has sent nothing
    assert len([method for method, _, _ in server.asked if method == "DELETE"]) == 2


@pytest.mark.parametrize(
    ("said", "kind", "text"),
    [
        (Server.done(None, 2, "lakejoin: There is no view 'v'."), AirflowFailException, "^There is no view 'v'.$"),
        (Server.done(None, 2, "lakejoin: No space.", again=True), AirflowException, "^No space.$"),
        (Server.done(None, 130, "lakejoin: interrupted (timed out)", cancelled="timed out"), AirflowException, "interrupted"),
        (Server.done(None, 2, "--limit is a number"), AirflowFailException, "--limit is a number"),
        (Server.done(None, 1), AirflowFailException, "exit code 1"),
        (
            Server.done({"views": {"v": {**DONE, "state": "failed", "error": "broken", "again": False}}}, 2, "lakejoin: broken"),
            AirflowFailException,
            "broken",
        ),
    ],
)
def test_failures_have_lakejoins_message_and_are_tried_again_if_that_may_help(
    deployment: Deployment, server: Server, said: Any, kind: type[Exception], text: str
) -> None:
    server.answers = [(200, said)]
    with pytest.raises(AirflowException, match=text) as failed:
        LakejoinOperator(task_id="maintain", deployment=deployment, command=["maintain", "--all"]).execute(context())
    assert type(failed.value) is kind


def test_a_check_fails_with_its_findings(deployment: Deployment, server: Server) -> None:
    finding = {"id": "F1", "scope": "v", "check": "exactness", "subject": "", "cause": "a bug", "command": "verify", "severity": "critical"}
    server.answers = [(200, server.done({"findings": [finding], "checks": [], "events": []}, 1))]
    with pytest.raises(AirflowFailException, match=r"F1 v, exactness.*a bug"):
        CheckOperator(task_id="check", deployment=deployment, command=["check", "--all"]).execute(context())


def test_a_backfill_asks_for_the_range_that_was_planned(deployment: Deployment, server: Server) -> None:
    steps = {"steps": [{"until": {"bid": 1}}, {"until": {"bid": 3}}]}
    form = {"view": "v", "mode": "replay", "since": "bid=1", "until": None, "step": "2", "publish": True, "dry_run": False}
    BackfillOperator(task_id="backfill", deployment=deployment, planned_by="plan").execute(context(params=form, planned=steps))
    words = server.asked[0][2]["words"]
    assert words == ["backfill", "v", "--mode", "replay", "--step", "2", "--until=bid=3", "--since=bid=1", "--publish"]


@pytest.mark.parametrize(
    ("taken", "kind"),
    [
        ((429, {"error": "100 requests wait"}), AirflowException),
        ((503, {"error": "The server is ending"}), AirflowException),
        ((400, {"error": "No such option"}), AirflowFailException),
        ((503, {"message": "no backend"}), AirflowException),
        ((502, ["no backend"]), AirflowException),
    ],
)
def test_a_server_that_takes_no_request_says_why(deployment: Deployment, server: Server, taken: Any, kind: type[Exception]) -> None:
    server.taken = taken
    text = str(taken[1]["error"]) if "error" in taken[1] else "no backend"
    with pytest.raises(AirflowException, match=text) as failed:
        refresh(deployment).execute(context())
    assert type(failed.value) is kind


def test_wrong_tokens_and_servers_that_are_not_there_are_told(
    deployment: Deployment, server: Server, monkeypatch: pytest.MonkeyPatch, written: Callable[..., Path]
) -> None:
    monkeypatch.setenv("LAKEJOIN_TOKEN", "x" * 32)
    with pytest.raises(AirflowFailException, match="token is missing or wrong"):
        refresh(deployment).execute(context())
    monkeypatch.delenv("LAKEJOIN_TOKEN")
    with pytest.raises(AirflowFailException, match="LAKEJOIN_TOKEN"):
        refresh(deployment).execute(context())
    monkeypatch.setenv("LAKEJOIN_TOKEN", TOKEN)
    nowhere = Deployment.of(written({"v": {"query": JOIN}}, airflow={"server": "http://127.0.0.1:9"}))
    with pytest.raises(AirflowException, match="does not answer") as failed:
        refresh(nowhere).execute(context())
    assert not isinstance(failed.value, AirflowFailException)


def test_a_connection_says_where_the_server_is(server: Server, deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    connection = {"conn_type": "http", "host": host, "port": int(port), "password": TOKEN}
    monkeypatch.setenv("AIRFLOW_CONN_LAKEJOIN", json.dumps(connection))
    monkeypatch.delenv("LAKEJOIN_TOKEN")
    settings = deployment.config.airflow.model_copy(update={"server": "lakejoin"})
    task = refresh(replace(deployment, config=deployment.config.model_copy(update={"airflow": settings})))
    assert task.execute(context()) is None
    assert server.asked[0][:2] == ("POST", "/v1/command")


WORKER = """
import sys
from types import SimpleNamespace as Given
from airflow.sdk.exceptions import TaskDeferred
from lake.airflow import airflow_dags
task = airflow_dags()["lakejoin_refresh_v"].get_task("refresh")
ti = Given(dag_id="d", try_number=1, xcom_push=lambda **_: None)
context = {"ti": ti, "dag_run": Given(run_type="manual"), "run_id": "1", "outlet_events": {}}
assert task.execute(context) == {"views": {}}
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""


def test_a_worker_needs_neither_java_nor_pyspark(deployment: Deployment, server: Server, tmp_path: Path) -> None:
    server.answers = [(200, server.done({"views": {}}))]
    home = tmp_path / "airflow"
    env = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PATH")}
    env |= {"PATH": str(tmp_path), "LAKEJOIN_CONFIG": deployment.file, "PYTHONPATH": str(ROOT), "AIRFLOW_HOME": str(home)}
    done = subprocess.run([sys.executable, "-c", WORKER], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert not {"pyspark", "py4j", "delta"} & set(done.stdout.split())
