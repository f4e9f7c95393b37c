"""`lakejoin status --watch`: it looks until it is interrupted, and ends as its last look did."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import typer
from typer.testing import CliRunner

from lake.cli import app as commands
from lake.cli import watching
from lake.cli.remote import Taken, taking
from lake.core.variables import assigned


def interrupted_after(number: int) -> Callable[[float], None]:
    """A sleep that Ctrl-C ends, the so-manieth time."""
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == number:
            raise KeyboardInterrupt

    return sleep


@pytest.mark.parametrize(("codes", "last"), [((0, 1, 0), 0), ((0, 0, 1), 1)])
def test_it_ends_as_its_last_look(codes: tuple[int, ...], last: int) -> None:
    looks: list[int] = []

    def look() -> None:
        looks.append(codes[len(looks)])
        if looks[-1]:
            raise typer.Exit(looks[-1])

    with pytest.raises(typer.Exit) as ended:
        watching.repeat(look, 5, interrupted_after(len(codes)))
    assert (ended.value.exit_code, looks) == (last, list(codes))


@pytest.mark.parametrize("code", [2, 130])
def test_what_can_not_look_at_all_does_not_look_again(code: int) -> None:
    def look() -> None:
        raise typer.Exit(code)

    with pytest.raises(typer.Exit) as ended:
        watching.repeat(look, 5, interrupted_after(1))
    assert ended.value.exit_code == code


def test_the_command_looks_again_and_a_server_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    monkeypatch.setattr(commands, "status", lambda context, **options: looked.append(options))
    monkeypatch.setattr(watching, "repeat", lambda look, seconds: [look(), look()])
    assert CliRunner().invoke(commands.app, ["status", "v", "--watch", "5", "--json"]).exit_code == 0
    assert looked == [{"view": "v", "verbose": False, "as_json": True}] * 2
    looked.clear()
    with assigned(taking, Taken()):
        CliRunner().invoke(commands.app, ["status", "--watch", "5"])
    assert len(looked) == 1
    assert CliRunner().invoke(commands.app, ["status", "--watch", "0"]).exit_code == 2
