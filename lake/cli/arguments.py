"""Parses arguments of the command line: versions of tables, times, sizes of steps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


class BackfillMode(StrEnum):
    """What a backfill does: re-create past states beside the view, or change the view itself, in steps or in one commit."""

    replay = "replay"
    catch_up = "catch-up"
    rebuild = "rebuild"


class Kind(StrEnum):
    """What to render for keeping a command running."""

    systemd = "systemd"
    kubernetes = "kubernetes"
    compose = "compose"


class RowFormat(StrEnum):
    """How rows are printed."""

    table = "table"
    csv = "csv"
    json = "json"


def until_of(values: list[str] | None) -> dict[str, int] | str | None:
    return moment(values, "--until") if values else None


def moment(values: list[str], option: str) -> dict[str, int] | str:
    """Versions of tables, or a time."""
    return values[0] if len(values) == 1 and "=" not in values[0] else versions(values, option, " or one time")


def versions(values: list[str], option: str, otherwise: str = "") -> dict[str, int]:
    found = {}
    for value in values:
        table, _, version = value.partition("=")
        if not version.isdigit():
            raise typer.BadParameter(f"{option} is TABLE=VERSION{otherwise}, not {value!r}")
        found[table] = int(version)
    return found


def step_of(text: str) -> int | timedelta:
    """A number of commits, or a length of time."""
    units = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
    number, unit = (text[:-1], text[-1]) if text and text[-1] in units else (text, "")
    if not number.isdigit():
        raise typer.BadParameter(f"--step is a number of commits, or of seconds, minutes, hours or days (30m, 6h, 1d), not {text!r}")
    return timedelta(seconds=int(number) * units[unit]) if unit else int(number)


def time_of(text: str) -> datetime:
    """A time; without a time zone it is UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"--until is a time such as 2026-12-01 or 2026-12-01T12:00, not {text!r}") from error
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
