"""A dropped view leaves nothing, a drop that was killed leaves nothing that looks like a view, and nothing else is ever removed."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import lake.views.registry as open_views
from lake import open_lake
from lake.cli import dropping
from lake.cli.app import app
from lake.core.constants import LEASE_FOLDER
from lake.delta import own_folder
from lake.delta.lease import Lease
from lake.delta.own_folder import OwnFolder
from lake.delta.sidecar import Folder
from lake.errors import ConcurrencyError, ConfigError, LakeError, TargetError
from lake.refresh import publish
from tests.lakes import TestLake

ROWS = "SELECT * FROM VALUES (1, 'x'), (2, 'y'), (2, 'y'), (3, NULL) t(id, s)"


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir() if not file.name.startswith(".")}


@pytest.fixture
def command(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The lakejoin command on the lake, in the tests' own session."""
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: lake.spark)

    def invoke(*arguments: str, answer: str = "") -> Any:
        file = lake.folder / "lakejoin.yml"
        file.write_text(yaml.safe_dump(lake.config))
        return CliRunner().invoke(app, ["--config", str(file), *arguments], input=answer)

    return invoke


ENDS = (".pin.json", ".json", "@part.json")


def a_run(lake: TestLake, name: str, views: str, days: float = 0, result: str = "{}") -> None:
    """The files of a scheduled run and of a part of it, written some days ago."""
    runs = Folder(lake.spark, lake.open.config.runs_path)
    runs.create(f"{name}.pin.json", json.dumps({"until": {}, "before": {view: {} for view in views}}))
    runs.create(f"{name}.json", result)
    runs.create(f"{name}@part.json", "{}")
    for end in ENDS:
        os.utime(f"{runs.path}/{name}{end}", (0, time.time() - days * 86_400))


def test_all_of_a_view_is_dropped_and_nothing_of_another(lake: TestLake, command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    views = built(lake).parent
    lake.view("v", lake.views["v"]["query"], realtime=True)
    lake.view("w", "SELECT id FROM v")
    lake.refresh("w")
    lake.open.on("eventual").refresh("v")
    lake.open.backfill("v", {"a": 1})
    for run, of in (("dag_v.one", "v"), ("dag_w.one", "w"), ("dag_vw.both", "vw")):
        a_run(lake, run, of)
    lake.sql("ALTER TABLE {v} SET TBLPROPERTIES ('lakejoin.project' = 'ours')")
    (found,) = open_lake({**lake.config, "views": {}, "project": "ours"}, spark=lake.spark).removed_views()
    assert (found.name, len(found.tables)) == ("v", 3)  # the project was given after the other tables were written
    assert [view.name for view in open_lake({**lake.config, "views": {}}, spark=lake.spark).removed_views()] == ["w"]
    lake.others["project"] = "ours"
    lake._open = None
    with pytest.raises(TargetError, match="'v' is read by view w of the configuration"):
        lake.open.drop("v")
    lease = Lease.take("v", Folder(lake.spark, f"{views}/v__realtime/{LEASE_FOLDER}"))
    with pytest.raises(ConcurrencyError, match="already running"):
        lake.open.drop("v", force=True)
    lease.renew("stopped", {})
    asked = json.loads(command("drop", "v", "--force", "--dry-run", "--json").stdout)
    assert (asked["dropped"], asked["readers"], asked["runs"]) == (False, ["view w"], [f"dag_v.one{end}" for end in ENDS])
    assert [(t["kind"], t["place"], t["state"]) for t in asked["tables"]] == [
        ("strong", str(views / "v"), "whole"),
        ("eventual", str(views / "v__realtime"), "whole"),
        ("replay", str(views / "v__replay"), "whole"),
    ]
    files = [file for table in asked["tables"] for file in Path(table["place"]).rglob("*") if file.is_file()]
    assert asked["bytes"] == sum(file.stat().st_size for file in files)
    assert asked["tables"][0]["files"] == sum("/v/" in str(file) for file in files)
    unasked = command("drop", "v", "--force")
    assert (unasked.exit_code, "Add --yes" in unasked.stderr) == (2, True)
    monkeypatch.setattr(dropping, "has_terminal", lambda: True)
    refused = command("drop", "v", "--force", answer="n\n")
    assert (refused.exit_code, refused.stdout.splitlines()[-1]) == (1, "Nothing was removed.")
    done = command("drop", "v", "--force", answer="y\n")
    assert (done.exit_code, "its next refresh builds it again" in done.stdout) == (0, True)
    assert f"{views}/v__replay: " in done.stderr
    assert sorted(row.id for row in lake.open.read("w").collect()) == [1, 2, 2, 3, 4]
    assert names(views) == {"w", "_lakejoin"}
    assert names(views / "_lakejoin" / "runs") == {f"{run}{end}" for run in ("dag_w.one", "dag_vw.both") for end in ENDS}
    assert command("drop", "v", "--force").stdout == "Nothing is kept of view v.\n"


def test_removed_views_are_found_by_their_tables_and_dropped_when_they_are_old(lake: TestLake, command: Any) -> None:
    views = built(lake).parent
    lake.view("w", "SELECT id FROM v")
    lake.refresh("w")
    a_run(lake, "old", "vw", days=31)
    a_run(lake, "young", "w", days=29)
    assert lake.open.removed_views() == []
    del lake.views["v"], lake.views["w"]
    lake.view("z", "SELECT id FROM a")
    a_run(lake, "died", "z", days=31, result='{"answer": null}')
    a_run(lake, "ended", "z", days=31, result='{"answer": {"views": {"z": {}}}}')
    (views / "unrelated").mkdir()
    shutil.copytree(views / "w", views / "copy_of_w")
    v, w = lake.open.removed_views()
    assert (v.name, v.table, v.half_dropped) == ("v", str(views / "v"), False)
    assert w.last_published is not None
    assert abs(w.last_published.timestamp() - time.time()) < 3_600
    assert json.loads(json.dumps(w.to_json()))["bytes"] == w.bytes > 0
    asked = json.loads(command("gc", "--json").stdout)
    states = {"v": False, "w": False, "old": True, "young": False, "died": True}
    assert {each["name"]: each["due"] for each in asked["leftovers"]} == states
    assert not any(each["dropped"] for each in asked["leftovers"])
    assert "Dropped 2 of 5" in command("gc", "--yes").stdout
    assert names(views / "_lakejoin" / "runs") == {f"{run}{end}" for run in ("young", "ended") for end in ENDS}
    lake.others["drop_after_days"] = 0
    assert "Dropped 0 of 3" in command("gc", "--yes").stdout
    lake.open.drop("v")
    assert "Dropped 2 of 2" in command("gc", "--yes", "--older-than", "0").stdout
    assert command("gc").stdout == "Nothing is left of removed views or dead runs.\n"
    assert names(views) == {"copy_of_w", "unrelated", "_lakejoin"}
    with pytest.raises(ConfigError, match="nothing of a view 'v'"):
        lake.open.drop("v")
    for wrong in ("../a", "a/b", "v__realtime", "..", ""):
        with pytest.raises(ConfigError, match="is no name of a view"):
            lake.open.drop(wrong)


def built(lake: TestLake) -> Path:
    """The folder of a view's table, of three versions with a checkpoint."""
    lake.table("a", ROWS)
    lake.view("v", "SELECT id, s FROM a")
    lake.refresh("v")
    lake.sql("INSERT INTO {a} VALUES (4, 'z')")
    lake.refresh("v")
    log = lake.open.table_log("v")
    assert log is not None
    log.checkpoint(log.head())
    return lake.folder / "views" / "v"


def test_a_drop_killed_anywhere_leaves_no_view_and_the_next_one_finishes(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each drop is killed after it has removed some files, until one comes to its end."""
    folder, remove, left, seen = built(lake), own_folder._remove_one, 0, set[str]()

    def one(place: Path) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        remove(place)

    monkeypatch.setattr(own_folder, "_remove_one", one)
    for _ in range(100):
        left = 6
        try:
            lake.open.drop("v")
            break
        except KeyboardInterrupt:
            seen.add("data" if any(folder.rglob("*.parquet")) else "log")
            assert [table.state for table in lake.open.drop("v", dry_run=True).tables] == ["half dropped"]
            for use in (lake.open.refresh, lake.open.read):
                with pytest.raises(LakeError):
                    use("v")
    assert seen == {"data", "log"}
    assert not folder.exists()
    lake.refresh("v")
    lake.assert_exact("v")


def test_a_refresh_that_runs_when_its_view_is_dropped_publishes_nothing(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, commit, remove = built(lake), publish._commit, OwnFolder.remove
    lake.sql("INSERT INTO {a} VALUES (5, 'q')")

    def drop_first(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(publish, "_commit", commit)
        monkeypatch.setattr(OwnFolder, "remove", lambda _: None)
        open_lake(lake.config, spark=lake.spark).drop("v")
        return commit(*arguments, **named)

    monkeypatch.setattr(publish, "_commit", drop_first)
    with pytest.raises(TargetError, match='Run "lakejoin drop v" to finish it'):
        lake.refresh("v")
    monkeypatch.setattr(OwnFolder, "remove", remove)
    lake.open.drop("v")
    assert not folder.exists()


def test_what_is_not_the_view_is_never_removed(lake: TestLake) -> None:
    folder = built(lake)
    elsewhere = lake.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("x")

    def refused(match: str) -> None:
        before = sorted(lake.folder.rglob("*"))
        with pytest.raises(TargetError, match=match):
            lake.open.drop("v", force=True)
        assert sorted(lake.folder.rglob("*")) == before

    view = lake.views.pop("v")
    lake.view("n", "SELECT id FROM a", renamed_from="v")
    with pytest.raises(TargetError, match=r"view n \(`renamed_from: v`\)"):
        lake.open.drop("v")
    lake.views = {"v": view}
    lake.tables["again"] = {"path": "views/v"}
    lake._open = None
    with pytest.raises(TargetError, match="is read by table again"):
        lake.open.drop("v")
    del lake.tables["again"]
    lake._open = None
    (folder / "link").symlink_to(elsewhere)
    refused(r"v/link is a symbolic link")
    (folder / "link").unlink()
    shutil.copytree(lake.path("a"), folder / "deep" / "er")
    refused(r"also holds .*v/deep/er, which is something else")
    shutil.rmtree(folder / "deep")
    lake.others["quality"] = {"results": str(folder / "results")}
    lake._open = None
    refused(r"also holds .*v/results")
    lake.others = {"project": "ours"}
    lake._open = None
    del lake.views["v"]
    refused(r"has `project: ours`: the table's is none")
    assert lake.open.removed_views() == []
    lake.others = {}
    lake._open = None
    folder.rename(elsewhere / "v")
    folder.symlink_to(elsewhere / "v")
    refused(r"views/v is a symbolic link")
    folder.unlink()
    shutil.copytree(lake.path("a"), folder)
    refused("was not made by Lakejoin for view 'v'")
    shutil.copytree(elsewhere / "v", lake.folder / "views" / "u")
    with pytest.raises(TargetError, match="it is view 'v'"):
        lake.open.drop("u")


def test_a_table_of_a_catalog_is_dropped_by_its_name(lake: TestLake) -> None:
    lake.spark.sql("CREATE SCHEMA IF NOT EXISTS dropped_views")
    lake.others["target"] = {"schema": "dropped_views"}
    lake.table("a", ROWS)
    lake.view("Mixed", "SELECT id FROM a")
    lake.view("other", "SELECT s FROM a")
    lake.refresh("Mixed")
    lake.refresh("other")
    del lake.views["Mixed"]
    lake._open = None
    (found,) = lake.open.removed_views()
    assert (found.name, found.table) == ("Mixed", "dropped_views.Mixed")
    folder = Path(found.tables[0].folder.removeprefix("file:"))
    assert folder.is_dir()
    lake.open.drop("Mixed")
    assert not folder.exists()
    assert [row.tableName for row in lake.spark.sql("SHOW TABLES IN dropped_views").collect()] == ["other"]
    lake.spark.sql("DROP SCHEMA dropped_views CASCADE")


def test_an_object_store_is_listed_and_emptied_in_the_same_order(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("part-0", "ab/part-1", "_delta_log/0.crc", "_delta_log/_last", "in/ner/_delta_log/x", f"_delta_log/{1:020}.json"):
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).write_text("12345")
    here = OwnFolder(spark, str(tmp_path / "t"))
    monkeypatch.setattr(own_folder, "local_path", lambda _: None)
    there = OwnFolder(spark, str(tmp_path / "t"))
    asked, same = here.contents(), there.contents()
    assert asked is not None
    assert same is not None
    assert (asked.bytes, asked.files, asked.names) == (30, 6, same.names)
    assert (same.bytes, same.files, same.tables) == (30, 6, ("in/ner",))
    there.remove()
    assert not (tmp_path / "t").exists()
    assert there.contents() is None
    there.remove()
