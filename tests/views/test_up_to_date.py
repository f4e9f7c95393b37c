"""A refresh that has nothing to do says so without a JVM, and whatever else could be the matter is left to one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import lake.views.registry as open_views
from lake import open_lake
from lake.cli.app import app
from lake.config.loader import load
from lake.core.stamp import Stamp
from lake.spark.session import make_session
from lake.spark.session_digest import SESSION_DIGEST, settings_digest
from lake.views.up_to_date import unchanged
from tests.lakes import TestLake


@pytest.fixture
def built(lake: TestLake) -> Iterator[TestLake]:
    """Two views, one on the other, built in a session that is as Lakejoin's own would be."""
    before = lake.spark.conf.get(SESSION_DIGEST)
    lake.spark.conf.set(SESSION_DIGEST, settings_digest({}))
    lake.table("a", "SELECT * FROM VALUES (1, 'x'), (2, 'y') t(id, s)")
    lake.sql("INSERT INTO {a} VALUES (3, 'z')")
    lake.view("v", "SELECT id, s FROM a")
    lake.view("top", "SELECT s, count(*) AS n FROM v GROUP BY s")
    lake.refresh("v")
    lake.refresh("top")
    yield lake
    lake.spark.conf.set(SESSION_DIGEST, before)


def told(lake: TestLake, view: str = "v") -> Stamp | None:
    return unchanged(load(lake.config), view)


def test_nothing_new_is_told_as_a_refresh_would_tell_it(built: TestLake) -> None:
    for view in ("v", "top"):
        stamp = told(built, view)
        assert stamp is not None
        assert stamp == built.open.stamp(view)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(open_views, "make_session", _no_jvm)
            cold = open_lake(built.config).refresh(view)
        warm = built.refresh(view)
        assert (cold.mode, cold.reason, cold.since, cold.until) == (warm.mode, warm.reason, warm.since, warm.until)
        assert cold.mode == "none"


def test_reformatting_the_configuration_around_a_view_is_nothing_new(built: TestLake) -> None:
    built.views["v"] |= {"description": "of rows", "tags": ["x"]}
    built.table("c", "SELECT 1 AS id")
    assert told(built) is not None


def test_upkeep_of_the_view_s_table_is_nothing_new(built: TestLake) -> None:
    """So is what `apply` and a rebuild commit after the rows: the view's description."""
    built.sql("ALTER TABLE {v} SET TBLPROPERTIES ('x' = 'y')", "OPTIMIZE {v}")
    assert told(built) == built.open.stamp("v")
    for query in ("SELECT s, count(*) AS n, max(id) AS hi FROM v GROUP BY s", built.views["top"]["query"]):
        built.view("top", query)
        assert told(built, "top") is None
        built.open.apply(["top"])
        assert told(built, "top") == built.open.stamp("top")
    built.sql("UPDATE {v} SET s = 'changed' WHERE id = 1", "ALTER TABLE {v} SET TBLPROPERTIES ('x' = 'z')")
    assert told(built) is None


def test_what_is_written_under_the_view_s_stamp_is_taken_for_published_as_a_refresh_takes_it(built: TestLake) -> None:
    """Both go by the stamp; that the rows are wrong is for verify and check to find."""
    with built.as_if_published("v"):
        built.sql("DELETE FROM {v} WHERE id = 1")
    assert told(built) == built.open.stamp("v")
    assert built.refresh("v").mode == "none"
    assert not built.open.verify("v").exact


def _no_jvm(settings: Any, **_: Any) -> Any:
    raise AssertionError("a JVM was asked for")


def _replaced(lake: TestLake) -> None:
    """Another table at the same place, with as many commits."""
    shutil.rmtree(lake.path("a"))
    lake.spark.sql("SELECT 1 AS id, 'x' AS s").write.format("delta").save(lake.path("a"))
    lake.sql("INSERT INTO {a} VALUES (3, 'z')")


def _edited(**changed: Any) -> Callable[[TestLake], None]:
    return lambda lake: lake.views["v"].update(changed)


OTHERWISE: dict[str, Callable[[TestLake], Any]] = {
    "a new version": lambda lake: lake.sql("DELETE FROM {a} WHERE id = 1"),
    "a version without other rows": lambda lake: lake.sql("OPTIMIZE {a}"),
    "another table": _replaced,
    "no table": lambda lake: shutil.rmtree(lake.path("a")),
    "a table elsewhere": lambda lake: lake.tables.update(a={"name": "db.a"}),
    "another query": _edited(query="SELECT id, s FROM a WHERE id > 1"),
    "another file": lambda lake: lake.views.update(v={"query_file": "nowhere.sql"}),
    "another mode": _edited(refresh_mode="incremental"),
    "another key": lambda lake: lake.tables["a"].update(primary_key=["id"]),
    "other settings": lambda lake: lake.others.update(spark={"spark.sql.ansi.enabled": "false"}),
    "another table under the view's name": lambda lake: lake.others.update(target=str(lake.folder / "other")),
    "somebody else wrote the view": lambda lake: lake.sql("DELETE FROM {v} WHERE id = 1"),
    "half a commit": lambda lake: Path(lake.path("a"), "_delta_log", f"{2:020}.json").write_text('{"add": '),
}


@pytest.mark.parametrize("how", OTHERWISE)
def test_anything_else_is_left_to_the_refresh_itself(built: TestLake, how: str) -> None:
    OTHERWISE[how](built)
    assert told(built) is None


def test_a_view_on_a_view_that_was_refreshed_has_something_to_do(built: TestLake) -> None:
    built.sql("INSERT INTO {a} VALUES (4, 'x')")
    assert told(built, "top") is not None  # it reads v, and v is as it was
    built.refresh("v")
    assert told(built, "v") is not None
    assert told(built, "top") is None


def test_a_function_may_call_what_is_written_elsewhere(built: TestLake) -> None:
    built.views["v"] = {"function": "nowhere:f"}
    assert told(built) is None


def test_a_view_of_a_session_that_somebody_else_made_is_left_to_the_refresh(built: TestLake) -> None:
    built.spark.conf.unset(SESSION_DIGEST)
    built.sql("INSERT INTO {a} VALUES (4, 'x')")
    open_lake(built.config, spark=built.spark).refresh("v")
    assert told(built) is None


def test_the_command_starts_no_jvm_for_nothing(built: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    (built.folder / "lakejoin.yml").write_text(yaml.safe_dump(built.config))
    monkeypatch.setattr(open_views, "make_session", _no_jvm)

    def run(*arguments: str) -> Any:
        answer = CliRunner().invoke(app, ["--config", str(built.folder / "lakejoin.yml"), "refresh", *arguments, "--json"])
        assert answer.exit_code == 0, answer
        return json.loads(answer.stdout)

    (one,) = run("v")
    assert (one["mode"], one["until"]) == ("none", {"a": 1})
    assert [(found["view"], found["mode"], found["until"]) for found in run("--all")] == [
        ("v", "none", {"a": 1}),
        ("top", "none", {"v": 1}),
    ]


def test_a_session_that_was_there_already_is_somebody_else_s(spark: SparkSession) -> None:
    before = spark.conf.get(SESSION_DIGEST, None)
    make_session({"spark.sql.ansi.enabled": "true"})
    assert spark.conf.get(SESSION_DIGEST, None) == before
