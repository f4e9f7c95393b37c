"""The commands that messages name for a view's table: in a development environment those that write the environment's table."""

from __future__ import annotations

from pathlib import Path

import pytest

from lake.config.loader import load
from lake.core.constants import PathKind
from lake.views.inputs import production_place, table_of

SETTINGS = {
    "tables": {"t": {"path": "t"}},
    "views": {"v": {"query": "SELECT * FROM t"}},
    "environments": {"dev": {"development_of": "default", "target": {"path": "dev"}}},
}
COMMANDS: dict[PathKind, tuple[str, str]] = {
    "strong": ("refresh v", "rebuild v"),
    "eventual": ("realtime v", "realtime v --reset"),
    "replay": ("backfill v", "backfill v --restart"),
}


@pytest.mark.parametrize(("kind", "commands"), COMMANDS.items())
@pytest.mark.parametrize(("env", "options"), [(None, ""), ("dev", "--env dev ")])
def test_commands_name_the_environment_whose_table_it_is(
    tmp_path: Path, kind: PathKind, commands: tuple[str, str], env: str | None, options: str
) -> None:
    table = table_of(load({**SETTINGS, "target": {"path": str(tmp_path)}}, env), "v", kind)
    create, recreate = commands
    assert (table.create_command, table.recreate_command) == (f"lakejoin {options}{create}", f"lakejoin {options}{recreate}")


def test_production_s_table_is_not_the_environment_s(tmp_path: Path) -> None:
    place = production_place(load({**SETTINGS, "target": {"path": str(tmp_path)}}, "dev"), "v")
    assert place is not None
    assert (place.recreate_command, place.reader) == ("lakejoin rebuild v", "dev")
