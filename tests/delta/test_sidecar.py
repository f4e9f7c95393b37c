"""The small files beside a table are listed by prefix, removed by age, and never written through a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lake.delta import sidecar
from lake.delta.sidecar import Folder, names_below
from lake.errors import TargetError


def test_names_are_filtered_by_prefix_before_they_cross_to_python(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(spark, f"{tmp_path}/_runs")
    assert folder.names("a-") == []
    for name in ("a-2", "a-1", "b-1", "a-3 #%41`"):
        assert folder.create(name, "x")
    assert folder.names("a-") == ["a-1", "a-2", "a-3 #%41`"]
    assert folder.names() == ["a-1", "a-2", "a-3 #%41`", "b-1"]
    listed = folder._jvm.own_files.names(folder._files, folder._at(""), "b-")
    assert listed == "b-1"


def test_files_older_than_a_time_are_removed(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(spark, f"{tmp_path}/_runs")
    assert folder.delete_older(100.0) == 0
    for number in range(3):
        folder.create(f"a-{number}", "x")
        os.utime(tmp_path / "_runs" / f"a-{number}", (number * 100, number * 100))
    assert folder.delete_older(100.0) == 1
    assert folder.names() == ["a-1", "a-2"]


def test_names_of_files_stay_in_the_jvm_and_are_asked_for_some_at_a_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sidecar, "_MOST_NAMES", 2)
    names = ["a", "b c", "d%20e", "f#", "g`é"]
    (tmp_path / "p=1 2").mkdir()
    (tmp_path / "_change_data").mkdir()
    (tmp_path / "_delta_log").mkdir()
    for name, folder in zip(names, ("", "p=1 2", "p=1 2", "_change_data", ""), strict=True):
        (tmp_path / folder / name).touch()
    (tmp_path / "_delta_log" / "hidden").touch()
    there = names_below(spark, str(tmp_path))
    assert there.missing([*names, "h", "hidden", "d e", "i"]) == {"h", "hidden", "d e", "i"}
    assert there.missing([]) == set()
    (tmp_path / "p=1 2" / "b c").unlink()
    (tmp_path / "j").touch()
    assert there.without(names_below(spark, str(tmp_path))) == 1


@pytest.mark.parametrize("link", ["lease.json", ".lease.json.crc"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_never_written_through(spark: SparkSession, tmp_path: Path, link: str, exists: bool) -> None:
    folder, other = Folder(spark, f"{tmp_path}/_runs"), tmp_path / "other"
    (tmp_path / "_runs").mkdir()
    if exists:
        other.write_text("kept")
    (tmp_path / "_runs" / link).symlink_to(other)
    for write in (folder.create, folder.replace):
        with pytest.raises(TargetError, match="is a symbolic link"):
            write("lease.json", "x")
    assert other.exists() == exists
    assert not exists or other.read_text() == "kept"
