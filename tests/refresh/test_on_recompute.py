"""A recompute that publishes all rows instead of the difference (`on_recompute`): the view and the views on it are exact."""

from __future__ import annotations

from typing import Any

import pytest

from lake.core import cost
from lake.errors import BlockedError
from tests.lakes import TestLake

pytestmark = pytest.mark.slow

A = "SELECT IF(id % 9 = 0, NULL, id % 20) AS id, concat('s ', id % 5) AS s, id % 7 AS v FROM range(60)"  # duplicates and NULLs
B = "SELECT id, id % 4 AS w FROM range(20)"
QUERY = "SELECT a.id, a.s, a.v, b.w FROM a JOIN b ON a.id = b.id"
ABOVE = "SELECT w, count(*) AS n, sum(v) AS v FROM j GROUP BY w"
MANY = ("UPDATE {a} SET v = v + 1", "INSERT INTO {a} SELECT * FROM {a} WHERE s <> 's 1'")


@pytest.fixture(autouse=True)
def dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each refresh is dearer than a recompute by estimate, though the tables are small."""
    monkeypatch.setattr(cost, "SMALL", 1)


def built(lake: TestLake, query: str, **options: Any) -> TestLake:
    lake.table("a", A)
    lake.table("b", B, key=["id"])
    lake.view("j", query, **options)
    lake.refresh("j")
    return lake


@pytest.mark.parametrize("query", [QUERY, "SELECT b.id, b.w, count(a.v) AS n FROM b LEFT JOIN a ON a.id = b.id GROUP BY b.id, b.w"])
def test_all_rows_are_published_and_later_refreshes_go_on_from_them(lake: TestLake, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    built(lake, query, on_recompute="replace")
    for statement in MANY if query == QUERY else MANY[:1]:
        before = lake.of_view("j")
        held = lake.spark.sql(f"SELECT * FROM {before}").count()
        lake.sql(statement, "UPDATE {b} SET w = w + 1")
        result = lake.refresh("j")
        assert (result.mode, "on_recompute" in result.reason) == ("recompute", True)
        assert (result.rows_deleted, result.rows_inserted) == (held, lake.spark.sql(f"SELECT * FROM {before}").count())
        lake.assert_exact("j")
    monkeypatch.setattr(cost, "SMALL", 64 << 20)
    lake.sql("DELETE FROM {a} WHERE id = 3", "UPDATE {b} SET w = 9 WHERE id = 4")
    assert lake.refresh("j").mode == "incremental"
    lake.assert_exact("j")
    assert lake.refresh("j").mode == "none"


@pytest.mark.parametrize(("option", "replaced"), [("auto", False), ("replace", True)])
def test_views_on_the_view_follow(lake: TestLake, option: str, replaced: bool) -> None:
    built(lake, QUERY, on_recompute=option)
    lake.view("above", ABOVE)
    lake.refresh("above")
    lake.sql("UPDATE {a} SET v = v + 1", "DELETE FROM {b} WHERE id = 7")
    result = lake.refresh("j")
    assert ("on_recompute" in result.reason) == replaced
    lake.refresh("above")
    lake.assert_exact("j")
    assert lake.open.verify("above").exact


def test_auto_replaces_where_no_view_reads_it_and_a_rebuild_never_does(lake: TestLake) -> None:
    built(lake, QUERY, on_recompute="auto")
    lake.sql("UPDATE {a} SET v = v + 1")
    assert "on_recompute" in lake.refresh("j").reason
    lake.assert_exact("j")
    lake.sql("UPDATE {a} SET v = v + 1 WHERE id = 5")
    result = lake.open.rebuild("j")
    assert result.rows_inserted < 10, "the difference alone"
    lake.assert_exact("j")


def test_what_blocks_a_publish_and_a_broken_key_leave_the_view_as_it_was(lake: TestLake) -> None:
    rule = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "v", "max_value": 50}, "on_failure": "block"}
    built(lake, QUERY, on_recompute="replace", expectations=[rule])
    before = sorted(map(str, lake.spark.sql(f"SELECT * FROM {lake.of_view('j')}").collect()))
    lake.sql("UPDATE {a} SET v = v + 100")
    with pytest.raises(BlockedError):
        lake.refresh("j")
    assert sorted(map(str, lake.spark.sql(f"SELECT * FROM {lake.of_view('j')}").collect())) == before
    lake.sql("UPDATE {a} SET v = v - 99")
    assert "on_recompute" in lake.refresh("j").reason
    lake.assert_exact("j")
