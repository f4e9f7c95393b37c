"""Real servers and commands: one server for most tests, which kills and ends others."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lake import __version__
from lake.server.client import Client
from lake.server.socket_folder import place_of
from tests import lakes
from tests.conftest import QUICK

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent.parent
WAIT = 300
until = partial(lakes.until, within=WAIT, every=0.05)
TOKEN, READING = "t" * 32, "r" * 32
CONFIG: dict[str, Any] = {
    "root": ".",
    "spark": {**QUICK, "spark.driver.memory": "1g"},
    "tables": {"orders": {"path": "orders", "primary_key": ["id"]}, "customers": {"path": "customers", "primary_key": ["id"]}},
    "views": {
        "named": {"query": "SELECT o.id, o.amount, c.name FROM orders o JOIN customers c ON o.customer = c.id"},
        "totals": {"query": "SELECT customer, sum(amount) AS total, count(*) AS n FROM orders GROUP BY customer"},
        "from_file": {"query_file": "from_file.sql"},
        "from_function": {"function": "own_views:from_function"},
    },
}
FUNCTION = "from own_parts import part\n\ndef from_function(customers):\n    return customers.selectExpr('id', part)\n"


def short_folder() -> str:
    """A folder that is not below pytest's, whose path is too long for a socket."""
    found = tempfile.mkdtemp(prefix="lakejoin-")
    atexit.register(shutil.rmtree, found, ignore_errors=True)
    return found


@dataclass
class Server:
    """A lake with a folder for its server, and commands that run on it."""

    folder: Path
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    runtime: str = field(default_factory=short_folder)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        (self.folder / "from_file.sql").write_text("SELECT id FROM customers")
        (self.folder / "own_views.py").write_text(FUNCTION)
        (self.folder / "own_parts.py").write_text("part = 'upper(name) AS shown'\n")
        self.configure(CONFIG)
        self.write("customers", [(n, f"customer {n}") for n in range(3)])
        self.orders = list[tuple[int, int, int]]()
        self.append_orders([(n, n % 3, n) for n in range(10)])

    def configure(self, config: dict[str, Any]) -> None:
        (self.folder / "lakejoin.yml").write_text(json.dumps(config))

    def write(self, table: str, rows: list[tuple[int, str]]) -> None:
        ids, names = pa.array([r[0] for r in rows], pa.int64()), pa.array([r[1] for r in rows])
        write_deltalake(str(self.folder / table), pa.table({"id": ids, "name": names}), mode="append")

    def append_orders(self, rows: list[tuple[int, int, int]]) -> None:
        self.orders += rows
        columns = {name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate(("id", "customer", "amount"))}
        write_deltalake(str(self.folder / "orders"), pa.table(columns), mode="append")

    def totals(self) -> dict[int, tuple[int, int]]:
        """What the view `totals` must have, from the orders that were written."""
        found: dict[int, tuple[int, int]] = {}
        for _, customer, amount in self.orders:
            total, n = found.get(customer, (0, 0))
            found[customer] = (total + amount, n + 1)
        return found

    def published_totals(self) -> dict[int, tuple[int, int]]:
        """What it has."""
        rows = json.loads(self.run("show", "totals", "--json", "--limit", "1000").stdout)
        return {row["customer"]: (row["total"], row["n"]) for row in rows}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "lake.cli", "--config", str(self.folder / "lakejoin.yml"), *words]

    def env(self, **more: str) -> dict[str, str]:
        own = {"PYTHONPATH": str(ROOT), "LAKEJOIN_RUNTIME_DIR": self.runtime}
        return {**{k: v for k, v in os.environ.items() if not k.startswith("LAKEJOIN_")}, **own, **self.environment, **more}

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*words), capture_output=True, text=True, env=self.env(**environment), timeout=WAIT, check=False)

    def begin(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env())

    def start(self) -> None:
        started = self.run("serve", "--background", *self.options)
        assert started.returncode == 0, started.stderr

    @property
    def client(self) -> Client:
        return Client(place_of(self.folder / "lakejoin.yml", None, self.env()).socket)

    def about(self) -> Any:
        return self.client.get("/v1/server")

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = self.client.connection(WAIT)
        text = None if body is None else json.dumps(body).encode()
        connection.request(method, path, text, {"content-type": "application/json", **headers})
        answer = connection.getresponse()
        found = json.loads(answer.read())
        connection.close()
        return answer.status, found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--listen", "127.0.0.1:0", "--queue", "20", "--drain", "30", "--connect", str(port))
    found = Server(tmp_path_factory.mktemp("serve") / "lake", options, {"LAKEJOIN_TOKEN": TOKEN, "LAKEJOIN_READ_ONLY_TOKEN": READING})
    found.start()
    yield found
    found.run("serve", "--stop")


def long_refresh(server: Server) -> subprocess.Popen[str]:
    """A refresh that runs for minutes unless it is cancelled, and has begun to run Spark jobs."""
    many = server.folder / "many"
    if not many.exists():
        write_deltalake(str(many), pa.table({"id": pa.array(range(30_000), pa.int64())}))
    query = "SELECT a.id, count(*) AS n FROM many a JOIN many b ON sha2(CAST(a.id + b.id AS STRING), 512) > '' GROUP BY a.id"
    tables, views = {**CONFIG["tables"], "many": {"path": "many"}}, {**CONFIG["views"], "slow": {"query": query}}
    server.configure({**CONFIG, "tables": tables, "views": views})
    begun = server.begin("refresh", "slow")
    until(lambda: any(r["view"] == "slow" and r["state"] == "running" for r in server.client.get("/v1/requests")))
    return begun


def test_commands_use_the_server_and_print_the_same(server: Server) -> None:
    built = server.run("refresh", "--all", "--json")
    assert built.returncode == 0, built.stderr
    assert {r["view"]: r["mode"] for r in json.loads(built.stdout)} == dict.fromkeys(CONFIG["views"], "build")
    server.append_orders([(100, 1, 7), (101, 2, 8)])
    refreshed = server.run("refresh", "totals", "--profile")
    assert "totals: incremental, +2 -2 rows" in refreshed.stdout
    assert "Spark jobs" in refreshed.stdout
    assert [r["verb"] for r in server.client.get("/v1/requests")] == ["refresh", "refresh"]
    assert server.published_totals() == server.totals()
    for words in (("show", "totals", "--limit", "2"), ("refresh", "nothing")):
        here, there = server.run("--server", "off", *words), server.run(*words)
        assert (here.returncode, here.stdout, here.stderr) == (there.returncode, there.stdout, there.stderr)


def test_logs_and_stack_traces_are_sent_to_the_client_that_asks(server: Server) -> None:
    logged = server.run("--log-format", "json", "refresh", "totals")
    assert json.loads(logged.stderr.splitlines()[-1])["event"] == "refresh"
    assert server.run("refresh", "totals").stderr == ""
    assert "Traceback" in server.run("--debug", "refresh", "nothing").stderr


def test_a_report_is_written_by_the_client(server: Server, tmp_path: Path) -> None:
    found = server.run("report", "--output", str(tmp_path / "report.html"))
    assert found.returncode == 0, found.stderr
    assert f"Wrote {tmp_path / 'report.html'}" in found.stdout
    assert "totals" in (tmp_path / "report.html").read_text()
    status, answer = server.ask("POST", "/v1/report", {"output": str(tmp_path / "written_by_the_server.html")})
    assert (status, answer["exit_code"], "totals" in answer["result"]) == (200, 0, True)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_edited_files_are_read_again(server: Server) -> None:
    assert "nothing" not in server.run("show", "from_function", "--json").stdout
    (server.folder / "own_parts.py").write_text("part = 'lower(name) AS shown'\n")
    changed = server.run("refresh", "from_function")
    assert (changed.returncode, "definition" in changed.stderr) == (2, True)
    (server.folder / "own_parts.py").write_text("part = 'upper(name) AS shown'\n")
    assert server.run("refresh", "from_function").returncode == 0
    (server.folder / "from_file.sql").write_text("SELECT id, name FROM customers")
    assert server.run("refresh", "from_file").returncode == 2
    assert server.run("rebuild", "from_file").returncode == 0
    assert "name" in json.loads(server.run("show", "from_file", "--json", "-n", "1").stdout)[0]
    (server.folder / "lakejoin.yml").write_text("views: [")
    wrong = server.run("refresh", "totals")
    server.configure(CONFIG)
    assert (wrong.returncode, "lakejoin.yml, line 2" in wrong.stderr) == (2, True)
    assert server.run("refresh", "totals").returncode == 0


def test_an_edit_is_planned_and_applied_by_the_server(server: Server, tmp_path: Path) -> None:
    """The next refresh has the new definition, too."""
    assert server.run("apply").returncode == 0
    query, kept = "SELECT customer, sum(amount) AS total, count(*) AS n, max(amount) AS most FROM orders GROUP BY customer", tmp_path / "p"
    server.configure({**CONFIG, "views": {**CONFIG["views"], "totals": {"query": query}}})
    planned = server.run("plan", "--out", str(kept))
    assert (planned.returncode, "columns: +most" in planned.stdout, planned.stderr) == (2, True, "")
    server.configure(CONFIG)
    assert server.run("plan").returncode == 0
    stale = server.run("apply", "--plan", str(kept))
    assert (stale.returncode, "The plan is out of date: totals" in stale.stderr) == (2, True)
    server.configure({**CONFIG, "views": {**CONFIG["views"], "totals": {"query": query}}})
    assert server.run("apply", "--plan", str(kept)).stdout.startswith("totals: rebuild")
    assert server.run("refresh", "totals").returncode == 0
    assert "most" in json.loads(server.run("show", "totals", "--json", "-n", "1").stdout)[0]
    server.configure(CONFIG)
    assert server.run("apply", "totals").returncode == 0
    assert [r["verb"] for r in server.client.get("/v1/requests")][:2] == ["apply", "show"]


def test_a_command_that_would_do_something_else_runs_without_the_server(server: Server) -> None:
    """All of them find out that there is nothing to do, for which no Spark is started."""
    server.run("refresh", "totals")
    requests = len(server.client.get("/v1/requests"))
    other = server.run("refresh", "totals", AWS_REGION="elsewhere")
    assert (other.returncode, "AWS_REGION" in other.stderr) == (0, True)
    server.configure({**CONFIG, "spark": {**CONFIG["spark"], "spark.sql.shuffle.partitions": "3"}})
    settings = server.run("refresh", "totals")
    server.configure(CONFIG)
    assert (settings.returncode, "`spark:`" in settings.stderr) == (0, True)
    place = place_of(server.folder / "lakejoin.yml", None, server.env())
    described = place.described()
    assert described is not None
    try:
        place.describe(type(described)(**{**described.to_json(), "version": "0.0.1"}))
        version = server.run("refresh", "totals")
    finally:
        place.describe(described)
    assert f"lakejoin 0.0.1 of {sys.executable}, and this is lakejoin {__version__}" in version.stderr
    assert server.run("--server", "off", "refresh", "totals").stderr == ""
    assert len(server.client.get("/v1/requests")) == requests


def test_an_interrupted_command_cancels_its_own_request_only(server: Server) -> None:
    begun = long_refresh(server)
    begun.send_signal(signal.SIGINT)
    _, said = begun.communicate(timeout=WAIT)
    assert (begun.returncode, said) == (130, "lakejoin: interrupted; what was published stays as it was.\n")
    server.append_orders([(200, 0, 1)])
    assert server.run("refresh", "totals").returncode == 0  # by the same server, on the same threads
    assert server.published_totals() == server.totals()
    until(lambda: server.about()["running"] == 0)
    assert not (server.folder / "views" / "slow").exists()


def test_the_request_of_a_killed_command_is_cancelled(server: Server) -> None:
    begun = long_refresh(server)
    begun.kill()
    begun.communicate()
    until(lambda: server.about()["running"] == 0)
    (request,) = [r for r in server.client.get("/v1/requests") if r["cancelled"] == "its client is gone"]
    assert (request["view"], request["exit_code"]) == ("slow", 130)


def test_hundreds_of_requests_at_once_are_answered_or_refused(server: Server) -> None:
    """Each refused one is told so; the view has every order once."""

    def ask(n: int) -> tuple[int, Any]:
        if n % 40 == 0:
            with lock:
                server.append_orders([(1000 + n, n % 3, n)])
        verb, body = ("refresh", {"views": ["totals"]}) if n % 2 else ("history", {"view": "totals"})
        return server.ask("POST", f"/v1/{verb}", body, **{"lakejoin-request": f"many-{n}"})

    lock = threading.Lock()
    with ThreadPoolExecutor(64) as clients:
        found = list(clients.map(ask, range(400)))
    assert {status for status, _ in found} <= {200, 429}
    assert all(answer["exit_code"] == 0 for status, answer in found if status == 200)
    assert sum(status == 200 for status, _ in found) >= 20
    assert server.ask("POST", "/v1/refresh", {"views": ["totals"]})[1]["exit_code"] == 0
    assert server.published_totals() == server.totals()
    verified = server.ask("POST", "/v1/verify", {"view": "totals"})[1]
    assert verified["result"][0]["exact"]


def test_over_tcp_a_token_is_needed_and_the_reading_one_only_reads(server: Server) -> None:
    address = server.about()["url"].removeprefix("http://")

    def status(path: str, token: str | None, **headers: str) -> int:
        connection = HTTPConnection(address, timeout=WAIT)
        authorization = {"authorization": f"Bearer {token}"} if token else {}
        connection.request("POST", path, b'{"view": "totals"}', {"content-type": "application/json", **authorization, **headers})
        found = connection.getresponse().status
        connection.close()
        return found

    assert [status("/v1/show", token) for token in (None, "wrong", READING, TOKEN)] == [401, 401, 200, 200]
    assert [status("/v1/rebuild", token) for token in (READING, TOKEN)] == [403, 200]
    assert status("/v1/apply", READING) == 403
    assert status("/v1/show", TOKEN, host="evil.example") == 421
    assert status("/v1/show", TOKEN, origin="https://evil.example") == 403
    url = f"http://{address}"
    assert json.loads(server.run("--server", url, "show", "totals", "--json").stdout)
    refused = server.run("--server", url, "show", "totals", LAKEJOIN_TOKEN="x" * 32)
    assert (refused.returncode, "token is missing or wrong" in refused.stderr) == (2, True)
    assert TOKEN not in (place_of(server.folder / "lakejoin.yml", None, server.env()).log).read_text()


CONNECT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
spark.sql(f"INSERT INTO delta.`{sys.argv[2]}/orders` VALUES (500, 1, 3)")
print(spark.read.format("delta").load(f"{sys.argv[2]}/views/totals").count())
"""


def test_connect_clients_share_the_driver_and_need_the_token(server: Server) -> None:
    def connect(token: str) -> subprocess.CompletedProcess[str]:
        url = f"{server.about()['connect']}/;token={token}"
        command = [sys.executable, "-c", CONNECT, url, str(server.folder)]
        return subprocess.run(command, capture_output=True, text=True, timeout=WAIT, env=server.env(), check=False)

    server.run("refresh", "totals")
    assert "UNAUTHENTICATED" in connect("x" * 32).stderr
    done = connect(TOKEN)
    assert (done.returncode, int(done.stdout)) == (0, len(server.totals())), done.stderr
    server.orders.append((500, 1, 3))
    assert "incremental" in server.run("refresh", "totals").stdout
    assert server.published_totals() == server.totals()


def test_only_its_user_may_open_the_socket_and_there_is_one_server(server: Server) -> None:
    place = place_of(server.folder / "lakejoin.yml", None, server.env())
    assert place.socket.stat().st_mode & 0o777 == 0o600
    assert place.folder.stat().st_mode & 0o777 == 0o700
    second = server.run("serve")
    assert (second.returncode, f"process {server.about()['pid']}" in second.stderr) == (2, True)
    assert f"process {server.about()['pid']}" in server.run("serve", "--status").stdout


def test_a_killed_server_leaves_nothing_and_an_ending_one_finishes(tmp_path: Path) -> None:
    server = Server(tmp_path / "lake", ("--drain", "300"))
    server.start()
    assert server.run("refresh", "totals").returncode == 0
    begun = long_refresh(server)
    os.kill(server.about()["pid"], signal.SIGKILL)
    _, said = begun.communicate(timeout=WAIT)
    assert (begun.returncode, "ended before it answered" in said) == (2, True)
    server.configure(CONFIG)
    assert server.run("serve", "--status").returncode == 1
    server.append_orders([(300, 0, 5)])
    server.start()  # over the socket that was left
    rebuilt = server.begin("rebuild", "totals")
    until(lambda: any(r["verb"] == "rebuild" for r in server.client.get("/v1/requests")))
    assert "has ended" in server.run("serve", "--stop").stdout
    out, said = rebuilt.communicate(timeout=WAIT)
    assert (rebuilt.returncode, "totals" in out) == (0, True), said
    assert server.published_totals() == server.totals()
    assert "No server" in server.run("serve", "--stop").stdout
    assert not place_of(server.folder / "lakejoin.yml", None, server.env()).socket.exists()


def test_a_watching_server_follows_the_tables(tmp_path: Path) -> None:
    """It is told nothing but a commit to a table and an edit of the configuration."""
    server = Server(tmp_path / "lake", ("--watch", "--watch-seconds", "0.2"))
    views = {**CONFIG["views"], "totals": {**CONFIG["views"]["totals"], "refresh": "changes"}}
    server.configure({**CONFIG, "views": views})
    server.start()

    def refreshes(view: str) -> list[str]:
        found = [f["mode"] for r in server.client.get("/v1/requests") for f in r["refreshes"] if f["view"] == view]
        return [mode for mode in found if mode != "none"]

    until(lambda: refreshes("totals") == ["build"])
    server.append_orders([(400, 2, 9)])
    until(lambda: refreshes("totals") == ["incremental", "build"])
    assert server.published_totals() == server.totals()
    server.configure({**CONFIG, "views": {**views, "named": {**CONFIG["views"]["named"], "schedule": "@yearly"}}})
    until(lambda: refreshes("named") == ["build"])
    assert refreshes("from_file") == []
    server.run("serve", "--stop")
    assert "totals: incremental, +1 -1 rows" in place_of(server.folder / "lakejoin.yml", None, server.env()).log.read_text()


def test_a_server_that_can_not_start_says_why(tmp_path: Path) -> None:
    server = Server(tmp_path / "lake")
    (server.folder / "lakejoin.yml").write_text("views: [")
    failed = server.run("serve", "--background")
    assert (failed.returncode, "lakejoin.yml, line 2" in failed.stderr) == (2, True)
    server.configure({**CONFIG, "spark": {"spark.driver.memory": "no size"}})
    failed = server.run("serve", "--background")
    assert failed.returncode == 2
    assert "The server ended while it started" in failed.stderr
    assert server.run("serve", "--listen", "127.0.0.1:0").returncode == 2
    assert server.run("serve", "--stop", "--status").returncode == 2
