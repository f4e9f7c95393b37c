"""The process of a server without Spark: its files, and how it is started and ended from outside."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lake.errors import EngineError
from lake.server import background, process
from lake.server.background import Background
from lake.server.process import ServerProcess
from lake.server.socket_folder import Description, Place

DESCRIPTION = Description(4711, "0", "python", "lakejoin.yml", None, "salt", 0.0)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path / "run", "x")
    found.make()
    return found


def test_a_server_whose_socket_was_replaced_ends(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_LOOKS_EVERY", 0.001)
    queue = SimpleNamespace(ready=False, running=0, waiting=0, drain=lambda seconds: None)
    server = ServerProcess(place, SimpleNamespace(queue=queue), DESCRIPTION, lambda: None, print)  # type: ignore[arg-type, return-value]

    async def watched() -> None:
        with server._open_socket():
            other = process.open_socket(place.folder / "other")
            (place.folder / "other").replace(place.socket)
            await asyncio.wait_for(server._watch(), 10)
            other.close()

    asyncio.run(watched())
    assert "removed or replaced" in server._failed
    assert not server._has_socket()


def test_a_server_that_hangs_is_not_taken_for_none(place: Place) -> None:
    assert not Background(place).stop()
    lock = place.locked()
    assert lock is not None
    place.describe(DESCRIPTION)
    with lock, pytest.raises(EngineError, match=r"process 4711\) does not answer"):
        Background(place).stop()
    assert not Background(Place(place.folder / "none", "x")).stop()


def test_a_server_that_ends_by_itself_is_stopped(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(pid: int, number: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(Background, "about", lambda self: {"pid": 1, "drain_seconds": 0})
    monkeypatch.setattr(os, "kill", gone)
    assert Background(place).stop()


def test_an_interrupted_start_leaves_no_server(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, ended = list[bool](), list[bool]()

    def about(self: Background) -> None:
        if asked:  # it waits for the server
            raise KeyboardInterrupt
        asked.append(True)

    def started(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(poll=lambda: None, terminate=lambda: ended.append(True))

    monkeypatch.setattr(background.subprocess, "Popen", started)
    monkeypatch.setattr(Background, "about", about)
    with pytest.raises(KeyboardInterrupt):
        Background(place).start([])
    assert ended == [True]
