"""The process of a server: starts Spark and the listeners, ends on signals, when idle, or when Spark's JVM ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import uvicorn

from lake import __version__
from lake.config.models import Config
from lake.errors import ConfigError, LakeError
from lake.server.access import Access, Guarded
from lake.server.http import COMMAND, Service, application
from lake.server.listening import Address, open_socket
from lake.server.socket_folder import Description, Place
from lake.server.watch import Watch
from lake.spark.launch import has_ended

_LOOKS_EVERY = 0.5
_KEEPS_EVERY = 3600.0
_GRACE = 5
"""Seconds in which clients read the ends of their answers, after the server has drained."""


@dataclass(frozen=True)
class Life:
    """How a server ends. `idle`: after so many seconds without requests (None: never); `drain`: the seconds that running requests may still
    take after SIGTERM."""

    idle: float | None = None
    drain: float = 60.0


@dataclass
class ServerProcess:
    """`start`: starts Spark, and returns the configuration; `say`: prints a line for people."""

    place: Place
    service: Service
    description: Description
    start: Callable[[], Config]
    say: Callable[[str], None]
    life: Life = Life()
    address: Address | None = None
    watch: Watch | None = None
    _servers: list[uvicorn.Server] = field(default_factory=list)
    _ending: asyncio.Task[None] | None = None
    _failed: str = ""
    _inode: int | None = None

    def run(self) -> int:
        """Serve until the end; returns the exit code. Raises ConfigError if another server of this configuration runs."""
        self.place.make()
        lock = self.place.locked()
        if lock is None:
            running = self.place.described()
            process = f" (process {running.pid})" if running is not None else ""
            raise ConfigError(f'A server of this configuration runs already{process}. "lakejoin serve --stop" ends it.')
        with lock:
            opened = self.address.open() if self.address is not None else None
            url = self.address.url(opened) if self.address is not None and opened is not None else ""
            self.description = replace(self.description, url=url)
            self.place.describe(self.description)
            try:
                asyncio.run(self._serve(opened))
            finally:
                if self._inode is None or self._has_socket():
                    self.place.clear()
        if self._failed:
            self.say(f"lakejoin: {self._failed}")
        return 2 if self._failed else 0

    async def _serve(self, opened: socket.socket | None) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, "")
        app = application(self.service)
        listeners: list[tuple[socket.socket, Access, dict[str, str]]] = [(self._open_socket(), Access(), {})]
        if self.address is not None and opened is not None:
            writes = frozenset({COMMAND, *(f"/v1/{verb.name}" for verb in self.service.verbs if verb.writes)})
            tls = self.address.tls
            files = {"ssl_certfile": str(tls.certificate), "ssl_keyfile": str(tls.key)} if tls is not None else {}
            listeners.append((opened, self.address.access(writes), files))
        sockets = []
        for listener, access, files in listeners:
            settings = uvicorn.Config(
                Guarded(app, access),  # type: ignore[arg-type]
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE,
                **files,  # type: ignore[arg-type]
            )
            self._servers.append(_Server(settings))
            sockets.append(listener)
        work = [asyncio.create_task(self._start()), asyncio.create_task(self._watch())]
        await asyncio.gather(*(server.serve([listener]) for server, listener in zip(self._servers, sockets, strict=True)))
        for task in work:
            task.cancel()

    def _open_socket(self) -> socket.socket:
        opened = open_socket(self.place.socket)
        self._inode = self.place.socket.stat().st_ino
        return opened

    def _has_socket(self) -> bool:
        """Whether the socket in the folder is that of this process, neither removed nor replaced by another server."""
        try:
            return self.place.socket.stat().st_ino == self._inode
        except OSError:
            return False

    async def _start(self) -> None:
        """Start Spark, then carry out requests."""
        started = time.monotonic()
        try:
            config = await asyncio.to_thread(self.start)
        except LakeError as error:
            self._end(str(error))
            return
        self.service.queue.open()
        if self.watch is not None:
            self.watch.start()
        url = f" and {self.description.url}" if self.description.url else ""
        self.say(
            f"lakejoin {__version__} serves {len(config.views)} views of {self.description.config} at {self.place.socket}{url} "
            f"(Spark started in {time.monotonic() - started:.1f} s)."
        )
        if self.address is not None and self.address.exposed:
            self.say(f"warning: tokens and rows travel unencrypted to {self.description.url}. Give --tls-certificate and --tls-key.")

    async def _watch(self) -> None:
        queue, kept = self.service.queue, time.monotonic()
        while self._ending is None:
            await asyncio.sleep(_LOOKS_EVERY)
            if time.monotonic() - kept > _KEEPS_EVERY:
                self.place.keep()
                kept = time.monotonic()
            if queue.ready and has_ended():
                self._end("Spark's JVM has ended (was it killed for its memory? `spark.driver.memory` under `spark:` sets it).")
            elif self.life.idle is not None and queue.idle_for() > self.life.idle:
                self.say(f"No request for {self.life.idle / 60:g} minutes: the server ends.")
                self._end("")
            elif not self._has_socket():
                self._end(f"{self.place.socket} was removed or replaced, so that no client finds the server.")

    def _end(self, failed: str) -> None:
        """Drain and end; a second signal ends without waiting."""
        self._failed = self._failed or failed
        if self._ending is None:
            running = self.service.queue.running + self.service.queue.waiting
            if running:
                self.say(f"Ending: {running} requests have {self.life.drain:g} s to finish. A second Ctrl-C cancels them.")
            self._ending = asyncio.get_running_loop().create_task(self._drain(0.0 if failed else self.life.drain))
        else:
            self._ending.cancel()
            self._ending = asyncio.get_running_loop().create_task(self._drain(0.0))

    async def _drain(self, seconds: float) -> None:
        if self.watch is not None:
            await asyncio.to_thread(self.watch.end)
        await asyncio.to_thread(self.service.queue.drain, seconds)
        for server in self._servers:
            server.should_exit = True


class _Server(uvicorn.Server):
    """Without uvicorn's handlers of signals: both listeners end together."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def description(config: str, env: str | None, salt: str) -> Description:
    """Of this process."""
    return Description(os.getpid(), __version__, sys.executable, config, env, salt, time.time())
