"""`plan` and `apply` in a server, which is in this process and has the tests' Spark, and without one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import lake.views.registry as open_views
from lake import Lakehouse
from lake.cli.app import app
from lake.cli.served_commands import Commands, verbs
from lake.server import client as clients
from lake.server.engine import Engine
from lake.server.queue import Limits, Queue
from lake.server.request import Call, Request
from lake.server.socket_folder import place_of
from tests import lakes
from tests.lakes import TestLake

WAIT = 600.0
until = partial(lakes.until, within=WAIT, every=0.01)


@dataclass
class Server:
    """A server of a lake, to which commands come without HTTP."""

    lake: TestLake
    file: Path
    verbs: Any = field(default_factory=lambda: {verb.name: verb for verb in verbs()})
    called: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.configure()
        engine = Engine(self.file, None)
        engine._spark = self.lake.spark
        self.queue = Queue(Commands(engine, self.verbs).run, lambda _: None, Limits(2))
        self.queue.open()

    def configure(self) -> None:
        self.file.write_text(yaml.safe_dump(self.lake.config))

    def submit(self, verb: str, **options: Any) -> Request:
        found = self.verbs[verb]
        return self.queue.submit(Request(Call(verb, found.options(found.body(**options)), found.writes, waits=False)))

    def call(self, verb: str, options: dict[str, Any], client: dict[str, Any], run: str | None, name: str) -> Iterator[dict[str, Any]]:
        """As lake.server.client.Client, which sends all this as JSON."""
        self.called.append(verb)
        found = self.verbs[verb]
        body = found.body(**json.loads(json.dumps(options, default=str)))
        request = self.queue.submit(Request(Call(verb, found.options(body), found.writes, run, client, waits=False), name))
        until(lambda: request.state == "done")
        yield from request.events

    def command(self, *words: str) -> Any:
        self.configure()
        return CliRunner().invoke(app, ["--config", str(self.file), *words])

    def both(self, *words: str) -> tuple[int, str, str]:
        """The exit code and the output of a command, which must be the same with the server and without it."""
        before = len(self.called)
        here, there = (self.command("--server", where, *words) for where in ("off", "auto"))
        assert self.called[before:] == [words[0]]
        assert (there.exit_code, there.stdout, there.stderr) == (here.exit_code, here.stdout, here.stderr)
        return here.exit_code, here.stdout, here.stderr


@pytest.fixture
def server(lake: TestLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    lake.table("a", "SELECT * FROM VALUES (1, 'x', 2), (2, 'y', 3) t(id, s, n)", ["id"])
    lake.view("v", "SELECT id, s, n FROM a")
    lake.view("w", "SELECT id, n FROM v")
    found = Server(lake, tmp_path / "lakejoin.yml")
    monkeypatch.setenv("LAKEJOIN_RUNTIME_DIR", str(tmp_path))
    place_of(found.file, None).socket.touch()
    monkeypatch.setattr(clients, "local", lambda place: found)
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: lake.spark)
    yield found
    found.queue.drain(WAIT)


def test_plan_and_apply_print_the_same_with_a_server_and_without(server: Server, lake: TestLake, tmp_path: Path) -> None:
    assert server.both("plan")[0] == 2
    built = server.command("apply")
    assert (built.exit_code, [line.partition(",")[0] for line in built.stdout.splitlines()]) == (0, ["v: build", "w: build"])
    assert server.both("plan")[:2] == (0, "Plan: 2 unchanged.\n")
    assert server.both("apply", "--json")[:2] == (0, "[]\n")

    lake.view("v", "SELECT id, n FROM a")
    for words in ((), ("--json",), ("--full", "--markdown")):
        code, out, _ = server.both("plan", *words)
        assert (code, "columns dropped: s" in out) == (2, True)
    assert server.both("plan", "--markdown", "--json")[0] == 2
    kept = [tmp_path / name for name in ("here.json", "there.json")]
    for where, file in zip(("off", "auto"), kept, strict=True):
        assert server.command("--server", where, "plan", "--out", str(file)).exit_code == 2
    assert kept[0].read_text() == kept[1].read_text()

    lake.view("v", "SELECT id, n, n + 1 AS m FROM a")
    code, _, said = server.both("apply", "--plan", str(kept[1]))
    assert (code, "The plan is out of date: v or what was published changed since it was made. Nothing was written." in said) == (2, True)
    assert server.both("apply", "nothing")[0] == 2
    lake.view("v", "SELECT id, n FROM a")
    assert server.command("apply", "--plan", str(kept[1])).stdout.startswith("v: metadata, 0 rows inserted, 0 deleted")
    lake.view("v", "SELECT id FROM a")
    code, out, _ = server.both("plan")
    assert (code, "x w: refused: " in out) == (1, True)


def test_a_table_is_adopted_and_dropped_and_the_server_asks_nobody(server: Server, lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    del lake.views["w"]  # a view that another one reads is not dropped
    lake.spark.sql(f"CREATE TABLE delta.`{lake.path('jobs/v')}` USING delta AS SELECT id, s, n FROM delta.`{lake.path('a')}`")
    adopt = ("adopt", "v", "--table", "jobs/v", "--at", "a=0")
    code, out, _ = server.both(*adopt, "--dry-run")
    assert (code, "It can be adopted at a@0" in out) == (0, True)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)  # of the server's terminal
    code, said = ended(server.submit("adopt", view="v", table="jobs/v", at=["a=0"]))
    assert (code, "There is no terminal" in said) == (2, True)
    adopted = server.command(*adopt, "--yes")
    assert (adopted.exit_code, "v: adopted, now at a@0" in adopted.stdout) == (0, True), adopted.stderr
    code, said = ended(server.submit("drop", view="v"))
    assert (code, "There is no terminal" in said) == (2, True)

    code, out, _ = server.both("drop", "v", "--dry-run")
    assert (code, "This was a dry run" in out) == (0, True)
    called = list(server.called)
    assert server.command("drop", "v").exit_code == 2
    assert server.called == called  # what may ask is done by the command itself
    dropped = server.command("drop", "v", "--yes")
    assert (dropped.exit_code, dropped.stdout.startswith("Dropped view v")) == (0, True), dropped.stderr
    assert server.both("drop", "v", "--yes")[1] == "Nothing is kept of view v.\n"


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Refreshes and builds of views begin when it is set."""
    found, refresh = threading.Event(), Lakehouse.refresh

    def late(*arguments: Any, **named: Any) -> Any:
        assert found.wait(WAIT)
        return refresh(*arguments, **named)

    monkeypatch.setattr(Lakehouse, "refresh", late)
    yield found
    found.set()


def ended(request: Request) -> tuple[int | None, str]:
    """The exit code and the output of a request, when it has ended."""
    until(lambda: request.state == "done")
    return request.exit_code, request.text("out") + request.text("err")


def test_of_two_applies_at_once_one_has_nothing_left_to_do(server: Server, gate: threading.Event) -> None:
    first = server.submit("apply", views=["v"])
    second = server.submit("apply", views=["v"])
    assert (first.state, second.state) == ("running", "waiting")
    gate.set()
    code, said = ended(first)
    assert (code, said.startswith("v: build, 2 rows inserted")) == (0, True)
    assert ended(second) == (0, "Nothing to do: what is published is what lakejoin.yml says.\n")


def test_a_refresh_with_the_old_definition_ends_before_the_edit_is_applied_and_the_next_one_has_the_new(
    server: Server, lake: TestLake, gate: threading.Event
) -> None:
    gate.set()
    assert ended(server.submit("apply"))[0] == 0
    gate.clear()
    lake.sql("INSERT INTO {a} VALUES (3, 'z', 4)")
    old = server.submit("refresh", views=["v"])
    until(lambda: old.doing == "refreshing v")  # it has opened the configuration
    lake.view("v", "SELECT id, n FROM a")
    server.configure()
    applied = server.submit("apply")
    until(lambda: applied.doing == "waiting for requests that change v")
    new = server.submit("refresh", views=["v"])
    assert (old.state, new.state) == ("running", "waiting")
    gate.set()
    codes, said = zip(*(ended(request) for request in (old, applied, new)), strict=True)
    assert codes == (0, 0, 0)
    assert [text.partition(",")[0] for text in said] == ["v: incremental", "v: metadata", "v: none"]
    assert [p.stamp.mode for p in lake.open.history("v")] == ["build", "incremental", "edit"]
    lake.assert_exact("v")


def test_an_apply_that_is_cancelled_changes_no_further_view(server: Server, lake: TestLake, gate: threading.Event) -> None:
    applied = server.submit("apply")
    until(lambda: applied.doing == "applying")
    until(lambda: applied.reserved == {"v"})
    server.queue.cancel(applied, "cancelled")
    gate.set()
    code, said = ended(applied)
    assert (code, said.startswith("v: build, 2 rows inserted")) == (130, True)
    assert said.endswith("lakejoin: interrupted (cancelled); what was published stays as it was.\n")
    assert (lake.open.stamp("v") is None, lake.open.stamp("w") is None) == (False, True)
