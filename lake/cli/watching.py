"""Runs a command that only looks again and again, until Ctrl-C (`--watch`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

import typer

from lake.cli import console


def repeat(look: Callable[[], None], seconds: float, sleep: Callable[[float], None] = time.sleep) -> None:
    """Run a command, wait, and run it again. A terminal is cleared before each; elsewhere the time is printed to standard error.

    Raises typer.Exit with the exit code of the last run when it is interrupted while it waits, and with that of a run that could not
    look at all (2, or 130 for Ctrl-C).
    """
    code = 0
    while True:
        _begin()
        try:
            look()
            code = 0
        except typer.Exit as ended:
            code = ended.exit_code
            if code > 1:
                raise
        try:
            sleep(seconds)
        except KeyboardInterrupt:
            raise typer.Exit(code) from None


def _begin() -> None:
    if console.out().is_terminal:
        console.out().clear()
    console.errors().print(f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S} (Ctrl-C ends it)", markup=False)
