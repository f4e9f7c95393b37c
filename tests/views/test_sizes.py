"""Which configurations have small tables, so that a process of one command is compiled for these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lake.config.loader import load
from lake.opening import opened
from lake.views import registry, sizes
from lake.views.sizes import are_small


def small(root: Path, **table: Any) -> bool:
    tables = {"t": {"path": "t", **table}}
    return are_small(load({"root": str(root), "tables": tables, "views": {"v": {"query": "SELECT id FROM t"}}}))


def test_files_of_all_tables_and_views_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "_SMALL", 100)
    assert small(tmp_path)  # nothing is there yet
    for folder, size in (("t/_delta_log", 10), ("t/day=1", 60), ("views/v", 30)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "file").write_bytes(bytes(size))
        assert small(tmp_path)
    (tmp_path / "views/v/more").write_bytes(b"1")
    assert not small(tmp_path)


def test_many_files_are_not_few_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "_MOST_FILES", 2)
    (tmp_path / "t").mkdir()
    for name in "abc":
        assert small(tmp_path)
        (tmp_path / "t" / name).touch()
    assert not small(tmp_path)


@pytest.mark.parametrize("place", [{"path": "s3a://lake/t"}, {"path": None, "name": "silver.t"}])
def test_what_is_elsewhere_may_be_large(tmp_path: Path, place: dict[str, str]) -> None:
    assert not small(tmp_path, **place)


def test_only_a_process_of_one_command_is_compiled_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []
    monkeypatch.setattr(registry, "make_session", lambda _, briefly, **_options: made.append(briefly))
    monkeypatch.setattr(registry, "refuse_untested_session", lambda _: None)
    config = load({"root": str(tmp_path), "tables": {"t": {"path": "t"}}, "views": {"v": {"query": "SELECT id FROM t"}}})
    for one_command in (True, False):
        _ = opened(config, one_command=one_command).spark
    monkeypatch.setattr(registry, "are_small", lambda _: False)
    _ = opened(config, one_command=True).spark
    assert made == [True, False, False]
