"""`lakejoin serve`: puts the server together from the command's options, and prints what it says."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lake.cli import console
from lake.cli.context import GlobalOptions
from lake.cli.served_commands import Commands, Refreshes, parsed, verbs
from lake.config.groups import Group
from lake.errors import ConfigError
from lake.server.background import Background
from lake.server.engine import Engine
from lake.server.http import Service
from lake.server.lags import Lags
from lake.server.listening import SHORTEST_TOKEN, Address, Tls, token_of
from lake.server.metrics import ServerMetrics
from lake.server.page import Page
from lake.server.process import Life, ServerProcess, description
from lake.server.queue import Limits, Queue
from lake.server.request import Call, Request
from lake.server.socket_folder import place_of
from lake.server.verbs import Verb
from lake.server.watch import Watch
from lake.spark.connect import connect_settings
from lake.spark.job_groups import cancel_group
from lake.spark.profile import heap_bytes

IDLE_IN_BACKGROUND = 180.0


@dataclass(frozen=True)
class Bounds:
    """How much the server does at once, and how long. `timeout_minutes`: None without limit; `idle_minutes`: None for the default, 0 for
    never."""

    parallel: int | None
    waiting: int
    timeout_minutes: float | None
    idle_minutes: float | None
    drain: float


@dataclass(frozen=True)
class Options:
    """The options of the command. `watch_seconds`: None does not watch; `connect`: a port for Spark Connect."""

    listen: str | None
    token_file: Path | None
    read_only_token_file: Path | None
    host_names: Sequence[str]
    tls_certificate: Path | None
    tls_key: Path | None
    bounds: Bounds
    watch_seconds: float | None = None
    connect: int | None = None

    def address(self) -> Address | None:
        """Where to listen besides the socket. Raises ConfigError."""
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ConfigError("--tls-certificate and --tls-key belong together: give both, or neither.")
        tls = Tls(self.tls_certificate, self.tls_key) if self.tls_certificate and self.tls_key else None
        token = token_of(self.token_file, "LAKEJOIN_TOKEN")
        read_only = token_of(self.read_only_token_file, "LAKEJOIN_READ_ONLY_TOKEN")
        if self.listen is None:
            if tls is not None or self.host_names or (self.token_file and self.connect is None) or self.read_only_token_file:
                raise ConfigError("Tokens, host names and TLS are for --listen HOST:PORT, which is not given.")
            return None
        return Address.parsed(self.listen, token, read_only, tuple(self.host_names), tls)

    def connect_settings(self) -> dict[str, str]:
        """The settings of the session for Spark Connect; none without --connect. Raises ConfigError if there is no token for it."""
        if self.connect is None:
            return {}
        token = token_of(self.token_file, "LAKEJOIN_TOKEN")
        if token is None or len(token) < SHORTEST_TOKEN:
            raise ConfigError(
                f"--connect needs a token of {SHORTEST_TOKEN} characters or more, since its clients run any code as this user. Set the "
                "environment variable LAKEJOIN_TOKEN, or name a file with --token-file."
            )
        return connect_settings(self.connect, token)

    def idle_minutes(self, default: float) -> float:
        """The minutes without requests after which the server ends; 0: never."""
        given = self.bounds.idle_minutes
        return given if given is not None else 0 if self.watch_seconds is not None else default

    def arguments(self) -> list[str]:
        """The same options as words of a command, with absolute paths."""
        files = (
            ("--token-file", self.token_file),
            ("--read-only-token-file", self.read_only_token_file),
            ("--tls-certificate", self.tls_certificate),
            ("--tls-key", self.tls_key),
        )
        bounds = self.bounds
        values = (
            ("--listen", self.listen),
            *((name, file.resolve() if file is not None else None) for name, file in files),
            *(("--host-name", name) for name in self.host_names),
            ("--connect", self.connect),
            ("--parallel", bounds.parallel),
            ("--queue", bounds.waiting),
            ("--timeout-minutes", bounds.timeout_minutes),
            ("--idle-minutes", self.idle_minutes(IDLE_IN_BACKGROUND)),
            ("--drain", bounds.drain),
        )
        watching = [] if self.watch_seconds is None else ["--watch", f"--watch-seconds={self.watch_seconds}"]
        return [*(f"{name}={value}" for name, value in values if value is not None), *watching]


def serve(settings: GlobalOptions, options: Options) -> int:
    """Serve until the process is ended; returns the exit code. Raises LakeError if the server can't start."""
    engine = Engine(settings.config.resolve(), settings.env)
    engine.besides = options.connect_settings()  # after the engine has looked at its environment, to which this adds the token
    address, place = options.address(), place_of(settings.config, settings.env)
    logging.getLogger("lakejoin").setLevel(logging.INFO)
    logging.getLogger("lakejoin").addHandler(Refreshes())
    served = verbs()
    metrics = ServerMetrics(lambda: heap_bytes(engine.spark))
    bounds, seconds = options.bounds, options.bounds.timeout_minutes
    limits = Limits(bounds.parallel or os.cpu_count() or 2, bounds.waiting, seconds * 60 if seconds else None)
    commands = Commands(engine, {verb.name: verb for verb in served})
    queue = Queue(commands.run, lambda request: cancel_group(engine.spark, request.jobs), limits, metrics.count)
    lags = Lags(lambda: engine.lake(False).status(), lambda: queue.ready)
    metrics.watch(queue, lags)
    page = Page(queue, lambda: list(engine.config().views), lags, str(engine.file))
    said = description(str(engine.file), settings.env, engine.salt)

    connect = {} if options.connect is None else {"connect": f"sc://localhost:{options.connect}"}

    def about() -> dict[str, Any]:
        now = {"ready": queue.ready, "running": queue.running, "waiting": queue.waiting, "idle_seconds": round(queue.idle_for(), 1)}
        own = {name: value for name, value in process.description.to_json().items() if name != "salt"}
        return own | now | {"parallel": limits.parallel, "drain_seconds": bounds.drain, "socket": str(place.socket), **connect}

    service = Service(served, parsed, queue, page, about, engine.refuse_other_process, metrics.text)
    watch = None if options.watch_seconds is None else _watching(engine, queue, commands.verbs["refresh"], options.watch_seconds)
    life = Life(options.idle_minutes(0) * 60 or None, bounds.drain)
    process = ServerProcess(place, service, said, engine.start, _say, life, address, watch)
    code = process.run()
    if queue.running:  # a request that can't be cancelled must not keep the process
        os._exit(code)
    return code


def _watching(engine: Engine, queue: Queue, refresh: Verb, seconds: float) -> Watch:
    """What sends the refreshes of `--watch` to the queue."""

    def submit(group: Group) -> Request:
        asked = refresh.options(refresh.body(views=list(group.views)))  # type: ignore[call-arg]
        return queue.submit(Request(Call("refresh", asked, True, waits=False)))

    return Watch(engine.config, engine.newest, submit, _say, seconds)


def start_in_background(settings: GlobalOptions, options: Options, as_json: bool) -> None:
    """Start a server of its own session, and say where it is. Raises LakeError if it does not start."""
    options.address()
    words = ["--config", str(settings.config.resolve()), *(["--env", settings.env] if settings.env is not None else []), "serve"]
    place = place_of(settings.config, settings.env)
    with console.output().working("starting Spark"):
        found = Background(place).start([*words, *options.arguments()])
    if as_json:
        console.print_json(found)
        return
    url = f" and {found['url']}" if found["url"] else ""
    console.out().print(f"The server runs (process {found['pid']}) at {found['socket']}{url}. Its log: {place.log}", markup=False)


def stop(settings: GlobalOptions) -> None:
    """End the running server, and say so."""
    with console.output().working("ending"):
        ended = Background(place_of(settings.config, settings.env)).stop()
    console.out().print("The server has ended." if ended else "No server of this configuration runs.", markup=False)


def show_status(settings: GlobalOptions, as_json: bool) -> int:
    """Print what the running server is and does; returns the exit code: 1 if there is none."""
    found = Background(place_of(settings.config, settings.env)).about()
    if as_json:
        console.print_json(found)
    elif found is None:
        console.out().print("No server of this configuration runs.", markup=False)
    else:
        doing = f"{found['running']} running, {found['waiting']} waiting" if found["ready"] else "starting or ending"
        url = f" and {found['url']}" if found["url"] else ""
        console.out().print(f"process {found['pid']}, lakejoin {found['version']}, at {found['socket']}{url}: {doing}", markup=False)
    return 0 if found is not None else 1


def _say(text: str) -> None:
    console.errors().print(text, markup=False)
