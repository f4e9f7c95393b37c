"""Errors of the lakejoin command are one message, and a stack trace only with --debug; a file is written completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import lake
import lake.cli.init as init
from lake.cli.app import app
from lake.cli.context import write_atomically
from lake.errors import ConfigError


def test_a_stack_trace_is_shown_only_if_debug_asks_for_it(tmp_path: Path) -> None:
    config = str(tmp_path / "none.yml")
    plain = CliRunner().invoke(app, ["--config", config, "init", str(tmp_path / "nowhere")])
    assert (plain.exit_code, "Traceback" in plain.stderr) == (2, False)
    traced = CliRunner().invoke(app, ["--debug", "--config", config, "init", str(tmp_path / "nowhere")])
    assert (traced.exit_code, "Traceback" in traced.stderr) == (2, True)
    assert traced.stderr.endswith(plain.stderr)


def test_an_unexpected_error_is_one_message_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(init, "write_config", fail)
    plain = CliRunner().invoke(app, ["init", str(tmp_path)])
    assert plain.exit_code == 1
    assert plain.stderr == "lakejoin: RuntimeError: first line (lakejoin --debug VERB shows the stack trace)\n"
    assert isinstance(CliRunner().invoke(app, ["--debug", "init", str(tmp_path)]).exception, RuntimeError)


def test_the_version_is_shown() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"lakejoin {lake.__version__}\n"


def test_a_link_at_a_temporary_name_is_not_followed(tmp_path: Path) -> None:
    victim, file = tmp_path / "victim", tmp_path / "report.html"
    victim.write_text("precious")
    (tmp_path / ".report.html.part").symlink_to(victim)
    write_atomically(file, "page")
    assert (victim.read_text(), file.read_text()) == ("precious", "page")
    (tmp_path / "as-usual").write_text("")
    assert file.stat().st_mode == (tmp_path / "as-usual").stat().st_mode
    assert sorted(path.name for path in tmp_path.iterdir()) == [".report.html.part", "as-usual", "report.html", "victim"]


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(ConfigError, match=r"report.html can't be written .*--output"):
        write_atomically(tmp_path / "report.html", "page")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_the_earlier_place_of_make_session_still_works_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match=r"lake\.spark\.session"):
        from lake.session import make_session
    from lake.spark.session import make_session as moved

    assert make_session is moved
