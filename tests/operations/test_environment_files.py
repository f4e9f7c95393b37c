"""What a dropped development environment leaves: nothing of its own, all that Lakejoin did not write, and what others may still read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lake import Lakehouse, open_lake
from lake.config.models import REPORT
from lake.quality import data_docs
from lake.quality.results import SCHEMA
from tests.lakes import TestLake

STATISTICS = {"unsuccessful_expectations": 0, "successful_expectations": 0, "evaluated_expectations": 0}


@pytest.fixture
def target(lake: TestLake) -> Path:
    """A lake with a table, and a folder for an environment's views."""
    lake.table("t", "SELECT id FROM range(3)")
    lake.view("v", "SELECT id FROM t")
    return lake.folder / "dev"


def dev(lake: TestLake, target: Path, **settings: Any) -> Lakehouse:
    own = {"development_of": "default", "target": {"path": str(target)}, **settings}
    return open_lake({**lake.config, "environments": {"dev": own}}, spark=lake.spark, env="dev")


def checked(lake: Lakehouse) -> None:
    """Write what checks and scheduled runs write."""
    lake.spark.createDataFrame([], SCHEMA).write.format("delta").save(f"{lake.config.quality_path}/quality_results")
    data_docs.write(lake, "run-1", {"v": {"results": [], "success": True, "statistics": STATISTICS}})
    lake.folder(lake.config.quality_path).replace(REPORT, "<html>")
    lake.folder(lake.config.runs_path).replace("v-w.pin.json", '{"before": {"v": 1, "w": 1}}')
    lake.folder(lake.config.runs_path).replace("v-w.json", "{}")


def files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_symlink() or not file.is_dir()}


def test_results_of_checks_and_runs_go_with_the_tables(lake: TestLake, target: Path) -> None:
    made = dev(lake, target)
    made.rebuild("v")
    checked(made)
    before = files(target)
    found = made.drop_environment(dry_run=True)
    assert files(target) == before
    assert [(kept.what, kept.place) for kept in found.files] == [
        ("results of checks", f"{target}/_lakejoin/quality"),
        ("files of scheduled runs", f"{target}/_lakejoin/runs"),
    ]
    beside = {file for file in before if not file.startswith("v/") and ("quality_results/" in file or not file.endswith(".crc"))}
    assert sum(kept.files for kept in found.files) == len(beside)
    assert sum(kept.bytes for kept in found.files) == sum((target / file).stat().st_size for file in beside)
    assert found.bytes == sum(kept.bytes for kept in (*found.files, *found.views))
    assert found.stays == ()
    assert made.drop_environment().files == found.files
    assert target.exists()
    assert list(target.iterdir()) == []
    assert made.drop_environment() == type(found)("dev", (), True)


def test_what_lakejoin_did_not_write_stays_and_is_named(lake: TestLake, target: Path) -> None:
    made = dev(lake, target)
    checked(made)
    outside = lake.folder / "outside"
    outside.mkdir()
    (outside / "page.html").write_text("mine")
    mine = ["notes.txt", "_lakejoin/readme.md", "_lakejoin/quality/docs/mine.css", "_lakejoin/quality/old-report.html"]
    for name in mine:
        (target / name).write_text("mine")
    runs = target / "_lakejoin/quality/docs/runs"
    for page in runs.iterdir():
        page.unlink()
    runs.rmdir()
    runs.symlink_to(outside)
    found = made.drop_environment()
    foreign = {f"{target}/{name} (Lakejoin did not write it)" for name in mine}
    assert set(found.stays) == {*foreign, f"{runs} (it is a symbolic link)"}
    assert files(target) == {*mine, str(runs.relative_to(target))}
    assert (outside / "page.html").read_text() == "mine"
    assert made.drop_environment().files == ()


def test_results_that_others_may_read_stay(lake: TestLake, target: Path) -> None:
    """A folder that the configuration names; and one with a view of another project beside it."""
    named = dev(lake, target, quality={"results": str(lake.folder / "results")})
    checked(named)
    found = named.drop_environment()
    assert [kept.what for kept in found.files] == ["files of scheduled runs"]
    assert found.stays == (f"{lake.folder}/results (`quality.results` names it)",)
    assert (lake.folder / "results" / REPORT).exists()
    theirs = open_lake(
        {**lake.config, "project": "theirs", "views": {"other": {"query": "SELECT id FROM t"}}, "target": {"path": str(target)}},
        spark=lake.spark,
    )
    theirs.refresh("other")
    made = dev(lake, target)
    checked(made)
    made.rebuild("v")
    before = files(target / "_lakejoin") | files(target / "other")
    found = made.drop_environment()
    assert [view.view for view in found.views] == ["v"]
    why = f"(there are views of another project, such as {target}/other)"
    assert found.stays == (f"{target}/_lakejoin/quality {why}", f"{target}/_lakejoin/runs {why}")
    assert files(target / "_lakejoin") | files(target / "other") == before
    assert not (target / "v").exists()
