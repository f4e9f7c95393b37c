"""Starts a server in the background, asks one what it does, and ends one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lake.errors import ConfigError, EngineError
from lake.server.client import Client
from lake.server.socket_folder import Place, private

_LOOKS_EVERY = 0.1
_STARTS_WITHIN = 120.0
_STOPS_WITHIN = 30.0
_LAST_LINES = 10


@dataclass(frozen=True)
class Background:
    """The server of a place, from outside."""

    place: Place

    def about(self) -> dict[str, Any] | None:
        """What the running server says of itself; None if there is none."""
        try:
            return dict(Client(self.place.socket).get("/v1/server"))
        except OSError:
            return None

    def start(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Start a server with these arguments of `lakejoin`, and wait until it is ready. Raises ConfigError with what it said instead."""
        self.place.make()
        if self.about() is not None:
            raise ConfigError('A server of this configuration runs already. "lakejoin serve --stop" ends it.')
        with self.place.log.open("w", encoding="utf-8") as log:
            self.place.log.chmod(0o600)
            command = [sys.executable, "-m", "lake.cli", *arguments]
            started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            return self._ready(started)
        except BaseException:  # also Ctrl-C
            started.terminate()
            raise

    def _ready(self, started: subprocess.Popen[bytes]) -> dict[str, Any]:
        until = time.monotonic() + _STARTS_WITHIN
        while time.monotonic() < until:
            if started.poll() is not None:
                lines = self.place.log.read_text(encoding="utf-8", errors="replace").splitlines()
                raise ConfigError("\n".join(["The server ended while it started:", *lines[-_LAST_LINES:]]))
            found = self.about()
            if found is not None and found["ready"]:
                return found
            time.sleep(_LOOKS_EVERY)
        raise EngineError(f"The server was not ready within {_STARTS_WITHIN:.0f} s, and was ended. What it said is in {self.place.log}.")

    def stop(self) -> bool:
        """End the running server as SIGTERM does, and wait for it; False if there is none. Raises EngineError if it goes on, or does not
        answer."""
        found = self.about()
        if found is None:
            self._refuse_silent()
            return False
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(found["pid"], signal.SIGTERM)
        until = time.monotonic() + float(found["drain_seconds"]) + _STOPS_WITHIN
        while time.monotonic() < until:
            lock = self.place.locked()
            if lock is not None:
                lock.close()
                return True
            time.sleep(_LOOKS_EVERY)
        raise EngineError(f"The server (process {found['pid']}) has not ended yet: a request of it still runs. `kill -9` ends it at once.")

    def _refuse_silent(self) -> None:
        """Raise EngineError if a server has the lock, although it does not answer."""
        if not private(self.place.folder):
            return
        lock = self.place.locked()
        if lock is not None:
            lock.close()
            return
        running = self.place.described()
        process = f" (process {running.pid})" if running is not None else ""
        raise EngineError(f"The server{process} does not answer: it starts, ends or hangs. Try again; `kill -9` ends it at once.")
