"""Runs commands inside `lakejoin serve`: with the server's open lakehouse, and their output as events of the request."""

from __future__ import annotations

import inspect
import io
import logging
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import typer
from rich.console import Console

from lake.cli import adopting, console, dropping, planning
from lake.cli import app as commands
from lake.cli.context import GlobalOptions, alone, opener, writer
from lake.cli.logs import Lines
from lake.cli.remote import FILE, Taken, taking
from lake.core.variables import assigned
from lake.lakehouse import Lakehouse
from lake.server.engine import Engine
from lake.server.request import Request
from lake.server.verbs import UsageError, Verb
from lake.spark.failures import is_transient
from lake.spark.job_groups import job_group

_READ = (commands.show, commands.explain, commands.verify, commands.status, commands.history, commands.report, planning.plan)
_WRITE = (
    commands.refresh,
    commands.rebuild,
    commands.backfill,
    commands.check,
    commands.snooze,
    commands.maintain,
    planning.apply,
    adopting.adopt,
    dropping.drop,
)
_PLAIN_WIDTH = 200

_request: ContextVar[Request | None] = ContextVar("request", default=None)
"""The request that this thread carries out."""


def verbs() -> tuple[Verb, ...]:
    """The commands that a server carries out."""
    return tuple(Verb.of(inspect.unwrap(command), command in _WRITE, FILE) for command in (*_READ, *_WRITE))


def parsed(words: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
    """The verb and the options of a command, read as the command line reads them. Raises UsageError."""
    names = [command.__name__ for command in (*_READ, *_WRITE)]
    if words[0] not in names:
        raise UsageError(f"The server does not run {words[0]!r}. The first word is one of: {', '.join(sorted(names))}.")
    try:
        with assigned(taking, Taken()) as found:
            commands.app(list(words), prog_name="lakejoin", standalone_mode=False)
    except Exception as error:  # of Typer, which does not say which
        message = getattr(error, "format_message", None)
        raise UsageError(message() if message is not None else str(error)) from error
    if not found:
        raise UsageError(f"{' '.join(words)!r} asks for nothing.")
    verb, options = found[0]
    if options.pop(FILE, None) is not None:
        raise UsageError(f"The server writes no file: leave --{FILE} out, and write the result of `{verb} --json` where you want it.")
    return verb, options


@dataclass(frozen=True)
class CommandContext:
    """What commands use of typer.Context."""

    obj: GlobalOptions


@dataclass(frozen=True)
class Commands:
    """Carries out requests, with the lakehouse of an engine."""

    engine: Engine
    verbs: Mapping[str, Verb]

    def run(self, request: Request) -> int:
        """Carry out a request in this thread; returns the exit code of its command."""
        call, client = request.call, request.call.client
        settings = GlobalOptions(self.engine.file, self.engine.env, call.run, bool(client.get("debug")))
        options = {**call.options, **({"output": Path("-")} if "output" in call.options else {})}  # files are the client's
        command = self.verbs[call.verb].command
        if client.get("file") and FILE in inspect.signature(command).parameters:
            options[FILE] = Path("-")
        logs = _logs(request, str(client.get("log_format", "none")))
        jobs = job_group(self.engine.spark, request.jobs, f"lakejoin {call.verb}")
        with (
            assigned(_request, request),
            console.printing_to(_output(request)),
            assigned(opener, self._lake),
            assigned(alone, request.alone),
            assigned(writer, lambda _, text: request.emit({"file": text})),
            logs,
            jobs,
        ):
            try:
                command(CommandContext(settings), **options)
            except typer.Exit as exited:
                if isinstance(exited.__cause__, Exception):
                    request.error, request.again = type(exited.__cause__).__name__, is_transient(exited.__cause__)
                return int(exited.exit_code)
            except typer.BadParameter as wrong:
                request.usage, request.error = str(wrong.message), "BadParameter"
                return 2
            except Exception as error:  # only with --debug: else the command has printed it
                traceback.print_exception(error, file=console.errors().file)
                request.error, request.again = type(error).__name__, is_transient(error)
                return 1
        return 0

    def _lake(self, settings: GlobalOptions, strict: bool) -> Lakehouse:
        """The open lakehouse, for the commands of a request."""
        return self.engine.lake(strict or settings.run is None)


class _Sent(io.TextIOBase):
    """A file whose text becomes events of a request."""

    def __init__(self, request: Request, kind: Literal["out", "err"]) -> None:
        self._request, self._kind = request, kind
        self._encoding = str(request.call.client.get("encoding") or "utf-8")

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the client's standard output: without UTF-8, tables have other lines."""
        return self._encoding

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text and not (self._request.cancelled and self._kind == "err"):  # what fails because it is cancelled is no news
            self._request.emit({self._kind: text})
        return len(text)


@dataclass(frozen=True)
class _Streamed(console.Output):
    """An output that also sends what a command is doing."""

    request: Request

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        self.request.emit({"status": what})
        try:
            yield
        finally:
            self.request.emit({"status": ""})


def _output(request: Request) -> console.Output:
    """The output of a request, for the terminal of its client."""
    client = request.call.client
    width, color, terminal = client.get("width"), client.get("color"), bool(client.get("terminal"))

    def console_of(kind: Literal["out", "err"]) -> Console:
        return Console(
            file=_Sent(request, kind),  # type: ignore[arg-type]  # rich only writes and flushes
            force_terminal=terminal and kind == "out",
            width=width if isinstance(width, int) and 0 < width < 10_000 else _PLAIN_WIDTH,
            color_system=color if color in ("standard", "256", "truecolor") else None,
            highlight=False,
            soft_wrap=True,
        )

    return _Streamed(console_of("out"), console_of("err"), request)


class _ToRequest(logging.Handler):
    """Sends log records of a request's thread to its client as text."""

    def __init__(self, request: Request, log_format: str) -> None:
        super().__init__()
        self._request = request
        self.setFormatter(Lines(log_format, request.id[:12]))

    def emit(self, record: logging.LogRecord) -> None:
        if _request.get() is self._request:
            self._request.emit({"err": f"{self.format(record)}\n"})


@contextmanager
def _logs(request: Request, log_format: str) -> Iterator[None]:
    """Within it, the request's log records are sent to its client, if it asked for them."""
    if log_format not in ("text", "json"):
        yield
        return
    logger, handler = logging.getLogger("lakejoin"), _ToRequest(request, log_format)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class Refreshes(logging.Handler):
    """Keeps with each request the refreshes that it made, which Lakejoin logs."""

    def emit(self, record: logging.LogRecord) -> None:
        request, found = _request.get(), getattr(record, "lakejoin", {})
        if request is not None and found.get("event") == "refresh":
            request.refreshes.append({name: value for name, value in found.items() if name != "event"})
