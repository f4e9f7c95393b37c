"""What of the engine needs no Spark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from lake.config.loader import load
from lake.server import engine
from lake.server.environment import digests

INVALID = {"query": "SELECT 1 FROM a", "refresh": "sometimes"}
CONFIG: dict[str, Any] = {"root": ".", "tables": {"a": {"path": "a"}}, "views": {"v": {"function": "own:v"}}}


def test_the_lock_of_an_editor_is_no_python_file_and_links_may_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "lakejoin.yml").write_text(str(CONFIG))
    (tmp_path / "own.py").write_text("")
    config = load(tmp_path / "lakejoin.yml")
    (tmp_path / ".#own.py").symlink_to("somebody@somewhere")
    before = engine._functions(config)
    assert list(before) == [str(tmp_path / "own.py")]
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    assert engine._functions(config) == {**before, str(tmp_path / "gone.py"): None}


def test_a_configuration_is_read_without_its_wrong_views(tmp_path: Path) -> None:
    file = tmp_path / "lakejoin.yml"
    file.write_text(str(CONFIG))
    found = engine.Engine(file, None)
    file.write_text(str({**CONFIG, "views": {**CONFIG["views"], "wrong": INVALID}}))
    assert list(found.config().views) == ["v"]


def test_other_settings_of_spark_are_refused_wherever_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    file, defaults = tmp_path / "lakejoin.yml", tmp_path / "spark-defaults.conf"
    file.write_text(str(CONFIG))
    found = engine.Engine(file, None)
    client = digests(os.environ, found.salt)
    found.refuse_other_process(client)
    defaults.write_text("spark.sql.session.timeZone UTC")
    with pytest.raises(engine.OtherSettingsError, match=r"settings in spark-defaults\.conf have changed"):
        found.refuse_other_process(client)
    with pytest.raises(engine.OtherSettingsError, match=r"spark-defaults\.conf"):
        found.lake(strict=True)
    defaults.unlink()
    file.write_text(str({**CONFIG, "spark": {"a": "b"}}))
    with pytest.raises(engine.OtherSettingsError, match=r"under `spark:` in .*lakejoin\.yml have changed"):
        found.refuse_other_process(client)
