"""Each class of differences between the paths is provoked in one of their tables, and found as what it is, in the right number."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lake.core.results import Agreement
from tests.lakes import TestLake

A = "SELECT * FROM VALUES (1, 'a', 10), (2, 'b', 20), (3, NULL, 30), (4, 'd', NULL), (5, 'e', 50) AS t(id, name, x)"
B = "SELECT * FROM VALUES (1, 100), (3, 300), (5, 500) AS t(id, y)"
BAG = "SELECT * FROM VALUES (1, 'a'), (1, 'a'), (NULL, 'b'), (2, NULL), (3, 'c') AS t(id, name)"


@pytest.fixture(scope="module")
def built(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TestLake:
    """Views on both paths: a left join with a key, and a multiset without one."""
    lake = TestLake(spark, tmp_path_factory.mktemp("paths"))
    lake.table("a", A, key=["id"])
    lake.table("b", B, key=["id"])
    lake.table("bag", BAG)
    lake.view("v", "SELECT a.id, a.name, a.x, b.y FROM a LEFT JOIN b ON a.id = b.id", realtime=True)
    lake.view("m", "SELECT bag.id, bag.name FROM bag WHERE bag.id IS NULL OR bag.id < 10", realtime=True)
    for view in ("v", "m"):
        lake.refresh(view)
        lake.open.on("eventual").refresh(view)
    return lake


@pytest.fixture
def paths(built: TestLake, tmp_path: Path) -> TestLake:
    """A copy of them, to be written to."""
    shutil.copytree(built.folder, tmp_path, dirs_exist_ok=True)
    lake = TestLake(built.spark, tmp_path)
    lake.tables, lake.views = built.tables, built.views
    return lake


def tampered(lake: TestLake, view: str, *texts: str) -> Agreement:
    """The agreement after {path}, the view's real-time table, was written behind our back."""
    with lake.as_if_published(view, "eventual"):
        for text in texts:
            lake.spark.sql(text.format(path=f"delta.`{lake.path('views')}/{view}__realtime`"))
    return lake.open.agreement(view)


def counts(found: Agreement) -> dict[str, int]:
    return {c.name: c.rows for c in found.classes}


@pytest.mark.parametrize("view", ["v", "m"])
def test_a_clean_pair_has_no_differences(paths: TestLake, view: str) -> None:
    found = paths.open.agreement(view)
    assert (found.position, found.classes, found.rows) == ("equal", (), 5)


@pytest.mark.parametrize(
    ("view", "texts", "expected"),
    [
        ("v", ["INSERT INTO {path} SELECT * FROM {path} WHERE id IN (1, 2)"], {"duplicate": 2}),
        ("m", ["INSERT INTO {path} SELECT * FROM {path} WHERE id = 1"], {"duplicate": 2}),
        ("v", ["UPDATE {path} SET x = 99 WHERE id IN (1, 3)"], {"wrong_value": 2}),
        ("v", ["UPDATE {path} SET name = NULL WHERE id = 1"], {"wrong_value": 1}),
        ("v", ["UPDATE {path} SET y = NULL WHERE id IN (1, 5)"], {"left_over": 2}),
        ("v", ["UPDATE {path} SET y = 400 WHERE id = 4"], {"lost_padded": 1}),
        ("v", ["DELETE FROM {path} WHERE id IN (2, 4)"], {"lost_padded": 2}),
        ("v", ["DELETE FROM {path} WHERE id = 3"], {"lost": 1}),
        ("v", ["INSERT INTO {path} (id, name, x, y) VALUES (8, 'h', 80, NULL)"], {"left_over": 1}),
        ("m", ["UPDATE {path} SET name = 'z' WHERE id = 3"], {"left_over": 1, "lost": 1}),
        ("m", ["DELETE FROM {path} WHERE id IS NULL"], {"lost": 1}),
        (
            "v",
            ["UPDATE {path} SET x = 99 WHERE id = 3", "DELETE FROM {path} WHERE id IN (1, 2)"],
            {"wrong_value": 1, "lost": 1, "lost_padded": 1},
        ),
    ],
)
def test_a_difference_is_found_in_its_class(paths: TestLake, view: str, texts: list[str], expected: dict[str, int]) -> None:
    found = tampered(paths, view, *texts)
    assert found.position == "equal"
    assert counts(found) == expected


def test_one_of_two_equal_rows_is_lost(paths: TestLake) -> None:
    table = f"delta.`{paths.path('views')}/m__realtime`"
    found = tampered(paths, "m", f"DELETE FROM {table} WHERE id = 1", f"INSERT INTO {table} (id, name) VALUES (1, 'a')")
    assert counts(found) == {"lost": 1}


def test_a_row_that_the_strong_view_has_held_is_a_missed_delete(paths: TestLake) -> None:
    paths.sql("DELETE FROM {a} WHERE id = 5", "DELETE FROM {bag} WHERE id = 3")
    for view in ("v", "m"):
        paths.refresh(view)
        paths.open.on("eventual").refresh(view)
    found = tampered(paths, "v", "INSERT INTO {path} (id, name, x, y) VALUES (5, 'e', 50, 500), (9, 'n', 90, NULL)")
    assert counts(found) == {"missed_delete": 1, "left_over": 1}
    assert counts(tampered(paths, "m", "INSERT INTO {path} (id, name) VALUES (3, 'c')")) == {"missed_delete": 1}


def test_ahead_and_behind_follow_from_the_snapshots_and_errors_are_seen_beside_them(paths: TestLake) -> None:
    paths.sql("UPDATE {a} SET x = 11 WHERE id = 1", "INSERT INTO {a} VALUES (6, 'f', 60)")
    paths.open.on("eventual").refresh("v")
    ahead = paths.open.agreement("v")
    assert (ahead.position, counts(ahead), ahead.wrong) == ("ahead", {"ahead": 3}, 0)
    wrong = tampered(paths, "v", "DELETE FROM {path} WHERE id = 3", "UPDATE {path} SET x = 12 WHERE id = 1")
    assert counts(wrong) == {"ahead": 3, "lost": 1, "wrong_value": 1}
    paths.sql("DELETE FROM {b} WHERE id = 5")
    paths.refresh("v")
    behind = paths.open.agreement("v")
    assert behind.position == "behind"
    assert counts(behind) == {"behind": 2, "lost": 1, "wrong_value": 1}


def test_where_each_path_is_newer_of_another_table_nothing_is_put_in_a_class(paths: TestLake) -> None:
    paths.sql("INSERT INTO {a} VALUES (6, 'f', 60)", "INSERT INTO {b} VALUES (2, 200)")
    paths.refresh("v", until={"a": 1, "b": 0})
    paths.open.on("eventual").refresh("v", {"a": 0, "b": 1})
    found = paths.open.agreement("v")
    assert (found.position, counts(found)) == ("undecidable", {"undecidable": 3})


def test_a_row_too_many_is_wrong_also_where_the_log_tells_no_more(paths: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lake.operations.compare.deleted", lambda *_: None)
    assert counts(tampered(paths, "m", "INSERT INTO {path} (id, name) VALUES (9, 'z')")) == {"left_over": 1}


def test_a_strong_view_that_was_not_compared_whole_is_not_the_truth(paths: TestLake) -> None:
    with paths.as_if_published("v"):
        paths.sql("UPDATE {v} SET x = 12 WHERE id = 1")
    assert paths.open.agreement("v", trusted=False).wrong == 0
    assert paths.open.agreement("v").wrong == 1


def test_what_can_no_longer_be_read_is_undecidable(paths: TestLake) -> None:
    paths.sql("UPDATE {a} SET x = 11 WHERE id = 1")
    paths.open.on("eventual").refresh("v")
    for file in Path(paths.path("a")).glob("*.parquet"):
        file.unlink()
    found = paths.open.agreement("v")
    assert (found.position, counts(found)) == ("undecidable", {"undecidable": 2})
    assert "can no longer be read" in found.reason


def test_samples_show_both_rows_of_an_altered_one(paths: TestLake) -> None:
    found = tampered(paths, "v", "UPDATE {path} SET x = 99 WHERE id = 1")
    held, wanted = {"id": 1, "name": "a", "x": 99, "y": 100}, {"id": 1, "name": "a", "x": 10, "y": 100}
    assert found.classes[0].samples == ((held, wanted),)
