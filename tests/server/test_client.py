"""The command as a client: which servers it uses, what it sends, and how it ends; the servers are of the test."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lake import __version__
from lake.cli import console, served_commands
from lake.cli.app import app
from lake.errors import ConfigError, EngineError
from lake.server import client as clients
from lake.server.client import Client, NotUsableError, local, remote
from lake.server.listening import open_socket
from lake.server.request import Call, Request
from lake.server.socket_folder import Description, Place, place_of

TOKEN = "t" * 32


class Spoken:
    """A client whose server says what the test wants; it remembers what was sent and cancelled."""

    sent: tuple[Any, ...] = ()

    def __init__(self, *events: dict[str, Any], cancel: Callable[[], None] = lambda: None) -> None:
        self.events, self.cancelled, self._cancel = events, list[str](), cancel

    def call(self, *sent: Any) -> Iterator[dict[str, Any]]:
        self.sent = sent
        for event in self.events:
            if event.get("interrupt"):
                raise KeyboardInterrupt
            yield event

    def cancel(self, name: str) -> None:
        self.cancelled.append(name)
        self._cancel()


@pytest.fixture
def answer(tmp_path: Path) -> Iterator[Callable[[int], Client]]:
    """A server on a Unix socket that answers one request with a status."""
    path, threads = tmp_path / "s", list[threading.Thread]()

    def serve(status: int) -> Client:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        listening.listen()

        def once() -> None:
            connection, _ = listening.accept()
            with connection, listening:
                got = b""
                while not got.endswith(b"}}"):  # of the request's body
                    got += connection.recv(65536)
                connection.sendall(f"HTTP/1.1 {status} x\r\ncontent-length: 14\r\n\r\n".encode() + b'{"error": "x"}')

        threads.append(threading.Thread(target=once))
        threads[-1].start()
        return Client(path)

    yield serve
    for thread in threads:
        thread.join(10)


def call(client: Client) -> dict[str, Any]:
    return next(client.call("refresh", {"views": ["v"]}, {}, None, "1"))


@pytest.mark.parametrize(("status", "kind"), [(400, NotUsableError), (413, NotUsableError), (409, NotUsableError), (429, ConfigError)])
def test_what_only_the_server_refuses_the_command_does_itself(answer: Callable[[int], Client], status: int, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="x"):
        call(answer(status))


def test_who_names_a_server_that_does_not_answer_gets_an_error_and_no_work_on_this_machine(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"http://127.0.0.1:9 does not answer"):
        call(remote("http://127.0.0.1:9", TOKEN))
    with pytest.raises(NotUsableError, match="does not answer"):
        call(Client(tmp_path / "none"))


@pytest.mark.parametrize(
    "url", ["http://host:port", "http://[", "ftp://host", "http://:1", "http://user:secret@host", "http://host/x", "host"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="is auto, off, or an address"):
        remote(url, TOKEN)


def test_a_token_that_can_not_be_sent_is_in_no_message() -> None:
    assert remote("http://host:1", f"{TOKEN}\n").token == TOKEN
    for token in (f"{TOKEN}\r\nx: y", f"{TOKEN}é"):
        with pytest.raises(ConfigError, match="can't be sent") as refused:
            remote("http://host:1", token)
        assert TOKEN not in str(refused.value)
    with pytest.raises(ConfigError, match="wants a token"):
        remote("http://host:1", " ")


@pytest.fixture
def spoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a command whose server says some events."""
    monkeypatch.setenv("LAKEJOIN_RUNTIME_DIR", str(tmp_path))
    config = tmp_path / "lakejoin.yml"
    place_of(config, None).socket.touch()

    def run(found: Spoken, *words: str) -> Any:
        monkeypatch.setattr(clients, "local", lambda place: found)
        return CliRunner().invoke(app, ["--config", str(config), *words])

    return run


def test_a_wrong_option_of_a_scheduled_run_is_said_once(spoken: Callable[..., Any]) -> None:
    done = spoken(Spoken({"err": "lakejoin: no such option\n"}, {"exit_code": 2, "usage": "no such option"}), "--run", "r", "refresh", "v")
    assert (done.exit_code, done.stderr.count("lakejoin: no such option")) == (2, 1)
    assert "Invalid value: no such option" in done.stderr


def test_an_interrupted_command_ends_as_one_also_if_the_server_is_gone(spoken: Callable[..., Any]) -> None:
    def gone() -> None:
        raise EngineError("The server ended before it answered.")

    client = Spoken({"state": "running"}, {"interrupt": True}, cancel=gone)
    done = spoken(client, "refresh", "v")
    assert (done.exit_code, len(client.cancelled)) == (130, 1)
    assert done.stderr == "lakejoin: interrupted; what was published stays as it was.\n"


def test_a_report_is_written_as_without_a_server(spoken: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert spoken(Spoken({"out": "<p>\n"}, {"exit_code": 0}), "report", "-o", str(file)).exit_code == 0
    assert file.read_text() == "<p>"
    assert spoken(Spoken({"out": "<b>"}, {"exit_code": 2}), "report", "-o", str(file)).exit_code == 2
    assert file.read_text() == "<p>"


def test_a_plan_is_written_by_the_client_also_where_there_are_changes(spoken: Callable[..., Any], tmp_path: Path) -> None:
    file, planned = tmp_path / "plan.json", ({"file": '{"views": []}\n'}, {"out": "Plan: 1 to edit.\n"}, {"exit_code": 2})
    done = spoken(Spoken(*planned), "plan", "--out", str(file))
    assert (done.exit_code, done.stdout, file.read_text()) == (2, "Plan: 1 to edit.\n", '{"views": []}\n')
    done = spoken(Spoken(*planned), "plan", "--out", str(tmp_path / "no" / "plan.json"))
    assert (done.exit_code, "plan.json can't be written" in done.stderr) == (2, True)
    file.unlink()
    assert spoken(Spoken(*planned), "plan").exit_code == 2  # a server that sends a file that nobody named
    assert not file.exists()


def test_a_plan_is_read_by_the_client(spoken: Callable[..., Any], tmp_path: Path) -> None:
    file, client = tmp_path / "plan.json", Spoken({"exit_code": 0})
    file.write_text('{"views": [{"view": "v", "action": "edit", "how": "stamp", "token": "1"}]}')
    assert spoken(client, "apply", "v", "--plan", str(file)).exit_code == 0
    (verb, options, *_) = client.sent
    assert (verb, options["views"], options["plan"]["views"][0]["token"]) == ("apply", ["v"], "1")
    file.write_text("{}")
    refused = spoken(Spoken(), "apply", "--plan", str(file))
    assert (refused.exit_code, "plan.json can't be read: it is no plan of lakejoin plan --json" in refused.stderr) == (2, True)


def test_tables_of_the_server_have_lines_that_the_clients_terminal_has() -> None:
    def printed(encoding: str) -> str:
        request = Request(Call("show", {}, False, client={"encoding": encoding}))
        with console.printing_to(served_commands._output(request)):
            console.print_table(["id"], [["1"]])
        return request.text("out")

    assert printed("ascii").isascii()
    assert not printed("utf-8").isascii()


PRINTS = "from lake.cli import console, remote\nfor _ in range(100): remote._write(console.out(), 'x' * 100_000)"


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    with subprocess.Popen([sys.executable, "-c", PRINTS], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.read(1)
        started.stdout.close()
        assert started.stderr.read() == b""
    assert started.returncode == 1


@pytest.mark.parametrize(("name", "usable"), [("python", True), ("python3", True), ("python3.0", False)])
def test_one_environment_has_its_interpreter_under_several_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, usable: bool
) -> None:
    (tmp_path / "python3").touch()
    (tmp_path / "python3.0").touch()
    (tmp_path / "python").symlink_to("python3")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    place = Place(tmp_path / "run", "x")
    place.make()
    place.describe(Description(1, __version__, str(tmp_path / name), "lakejoin.yml", None, "salt", 0.0))
    with open_socket(place.socket):
        if usable:
            assert local(place) is not None
        else:
            with pytest.raises(NotUsableError, match=r"python3\.0"):
                local(place)
