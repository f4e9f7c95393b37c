"""Lets a running `lakejoin serve` carry out a command: its output, progress and exit code are those of the command here.

`--server auto` (the default) uses the server of the same configuration, if one runs that would do the same as this command; `off` uses
none; an address names one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lake.cli import console
from lake.cli.context import GlobalOptions, invocation, write_atomically
from lake.errors import LakeError
from lake.server.socket_folder import place_of

if TYPE_CHECKING:
    from lake.server.client import Client

_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit: the command then has a Spark application of its own."""


FILE = "out"
"""The option of a file that a command writes besides what it prints: a server sends the text, and the client writes it."""
Taken = list[tuple[str, dict[str, Any]]]
taking: ContextVar[Taken | None] = ContextVar("taking", default=None)
"""Takes commands and their options instead of running them, if it is set (lake/cli/served_commands.py)."""


def in_server(command: Callable[..., None]) -> Callable[..., None]:
    """A command (its first parameter is the context) that a running server carries out, if there is one."""

    @wraps(command)
    def either(context: typer.Context, **options: Any) -> None:
        if (taken := taking.get()) is not None:
            taken.append((command.__name__, options))
            return
        with invocation(context):
            end = _end_of_server(command.__name__, context.obj, options)
        if end is None:
            command(context, **options)
        elif "usage" in end:  # outside of `invocation`: for a scheduled run, that of the server has printed it
            raise typer.BadParameter(end["usage"])

    return either


def _end_of_server(verb: str, settings: GlobalOptions, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The last event of a server that has carried out the command; None if none has. If one runs that may not be used, it is said why."""
    if settings.server == "off" or (settings.server == "auto" and _SUBMITTED in os.environ):
        return None
    if settings.server == "auto" and not options.get("yes", True) and not options.get("dry_run"):  # it asks, in this terminal
        return None
    place = place_of(settings.config, settings.env)
    if settings.server == "auto" and not os.path.exists(place.socket):  # also false if the folder may not be read
        return None
    from lake.server.client import NotUsableError, local, remote  # Python's HTTP client takes a tenth of a command's start

    try:
        client = local(place) if settings.server == "auto" else remote(settings.server, os.environ.get("LAKEJOIN_TOKEN"))
        if client is None:
            return None
        return _carried_out(client, verb, settings, options)
    except NotUsableError as reason:
        console.errors().print(f"lakejoin: without the running server: {reason}", markup=False)
        return None


def _carried_out(client: Client, verb: str, settings: GlobalOptions, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Print what the server's command prints, and end as it ends; returns the last event."""
    file, beside = options.get("output"), options.get(FILE)
    sent = {name: value for name, value in options.items() if name != FILE} | ({"output": "-"} if file is not None else {})
    name, printed = os.urandom(16).hex(), list[str]()
    about = {
        "debug": settings.debug,
        "log_format": settings.log_format,
        "width": console.out().width,
        "color": console.out().color_system if console.out().is_terminal else None,
        "terminal": console.out().is_terminal,
        "encoding": console.out().encoding,
        "file": beside is not None,
    }
    try:
        events = client.call(verb, sent, about, settings.run, name)
        end = _shown(events, printed if file not in (None, Path("-")) else None, beside)
    except KeyboardInterrupt:
        with suppress(LakeError):  # a server that is gone runs nothing
            client.cancel(name)
        raise
    if end["exit_code"] and "usage" not in end:
        raise typer.Exit(end["exit_code"])
    if printed and not end["exit_code"]:
        assert isinstance(file, Path)
        wrote_report(file, "".join(printed).removesuffix("\n"))
    return end


def wrote_report(file: Path, text: str) -> None:
    """Write a report, and say so."""
    write_atomically(file, text)
    console.out().print(f"Wrote {file}: open it in a browser.", markup=False)


def _shown(events: Iterable[dict[str, Any]], kept: list[str] | None, file: Path | None) -> dict[str, Any]:
    """Print events as they come; returns the last. `kept`: takes the result instead of standard output; `file`: written besides."""
    end: dict[str, Any] = {}
    with ExitStack() as status:
        for event in events:
            if event.get("status") is not None or "exit_code" in event:
                status.close()
            if event.get("status"):
                status.enter_context(console.output().working(event["status"]))
            if "err" in event:
                _write(console.errors(), event["err"])
            if "file" in event and file is not None:
                write_atomically(file, event["file"])
            if "out" in event and kept is not None:
                kept.append(event["out"])
            elif "out" in event:
                _write(console.out(), event["out"])
            end = event
    return end


def _write(to: Any, text: str) -> None:
    try:
        to.file.write(text)
        to.file.flush()
    except BrokenPipeError:  # such as of `| head`
        to.on_broken_pipe()  # what it does as well when it prints by itself
