"""When a refresh falls back to a full recompute: it is reported, it is exact, and it can be forbidden."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame

from lake.catalyst import Catalyst
from lake.core import cost
from lake.errors import KeyViolationError
from tests.lakes import TestLake

pytestmark = pytest.mark.slow

MANY = "SELECT id, id % 700 AS g, id % 13 AS v FROM range(60000)"
QUERY = "SELECT f.id, f.v, d.name FROM f JOIN d ON f.g = d.g"


@pytest.fixture
def facts(lake: TestLake) -> TestLake:
    lake.table("f", MANY, key=["id"])
    lake.table("d", "SELECT id AS g, concat('n', id) AS name FROM range(600)", key=["g"])
    return lake


def published(lake: TestLake) -> tuple[str, str]:
    """How the view was refreshed last, and why it was recomputed, as its table says."""
    newest = list(lake.open.history("v"))[-1]
    assert newest.to_json()["reason"] == newest.stamp.reason
    return newest.stamp.mode, newest.stamp.reason


@pytest.mark.parametrize(
    ("options", "some", "reason"),
    [
        ({}, "id % 4 > 0", "90,000 changes of 60,600 rows are more than 100%"),
        ({}, "id % 2 = 0", ""),
        ({"recompute_above": 0.5}, "id % 2 = 0", "60,000 changes of 60,600 rows are more than 50%"),
        ({"recompute_above": 1.5}, "id % 4 > 0", ""),
        ({"refresh_mode": "incremental"}, "id % 4 > 0", ""),
    ],
)
def test_many_changes_are_recomputed_unless_that_is_forbidden(facts: TestLake, options: dict[str, Any], some: str, reason: str) -> None:
    facts.view("v", QUERY, **options)
    facts.refresh("v")
    facts.sql(f"UPDATE {{f}} SET v = v + 1, g = g + 1 WHERE {some}")
    result = facts.refresh("v")
    assert result.mode == ("recompute" if reason else "incremental")
    assert reason in result.reason
    assert published(facts) == (result.mode, result.reason)
    facts.assert_exact("v")
    facts.open.rebuild("v")
    assert published(facts) == ("recompute", "a rebuild was asked for")


@pytest.mark.parametrize("options", [{}, {"refresh_mode": "incremental"}])
def test_a_refresh_more_expensive_than_a_recompute_by_estimate_falls_back(
    facts: TestLake, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(cost, "SMALL", 1)
    facts.view("v", QUERY, **options)
    facts.refresh("v")
    facts.sql("DELETE FROM {f} WHERE id = 5")
    facts.sql("UPDATE {d} SET name = 'other' WHERE g = 7")
    result = facts.refresh("v")
    assert (result.mode, "by estimate" in result.reason) == (("incremental", False) if options else ("recompute", True))
    assert result.rows_deleted == 1 + 86  # f has 86 rows of g = 7
    facts.assert_exact("v")
    facts.sql("OPTIMIZE {f}")
    assert facts.refresh("v").mode == "incremental"


def test_lookups_count_as_they_come(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table("f", MANY, key=["id"])
    lake.table("d", "SELECT id AS g, concat('n', id) AS name FROM range(0, 600, 1, 60)", key=["g"])
    monkeypatch.setattr(cost, "SMALL", 1)
    monkeypatch.setattr(cost, "of_start", lambda operators, moved: 0)
    monkeypatch.setattr(cost, "of_lookup", lambda files: files * 100)
    monkeypatch.setattr("lake.core.cost.SMALL_TABLE", 0)  # no table is kept whole
    lake.view("v", QUERY)
    lake.refresh("v")
    lake.sql("UPDATE {d} SET name = 'other' WHERE g = 7")  # in one file of 60, whose key is in all of f
    result = lake.refresh("v")
    assert result.mode == "recompute"
    assert "by estimate: reading tables for lookups costs" in result.reason
    lake.assert_exact("v")


@pytest.mark.parametrize(("share", "mode"), [(1, "recompute"), (500, "incremental")])
def test_lookups_as_spread_as_the_changes_are_refused_before_a_row_is_read(
    lake: TestLake, monkeypatch: pytest.MonkeyPatch, share: int, mode: str
) -> None:
    lake.table("f", "SELECT id, id % 700 AS g, uuid() AS v FROM range(0, 60000, 1, 20)", key=["id"])
    lake.table("d", "SELECT id AS g, uuid() AS name FROM range(0, 60000, 1, 20)", key=["g"])
    lake.view("v", QUERY)
    lake.refresh("v")
    monkeypatch.setattr(cost, "SMALL", 1)
    monkeypatch.setattr(cost, "of_start", lambda operators, moved: 0)
    monkeypatch.setattr(cost, "of_changes", lambda operators, rows: 0)
    monkeypatch.setattr(cost, "of_lookup", lambda files: files * 100)
    lake.sql(f"UPDATE {{f}} SET v = 'other' WHERE id % 3000 = 5 AND id < {60_000 // share}")
    result = lake.refresh("v")
    assert (result.mode, "as spread as the changes" in result.reason) == (mode, mode == "recompute")
    lake.assert_exact("v")


def test_the_estimate_of_the_docstring() -> None:
    mb = 1 << 20
    recomputed = cost.of_recompute(300 * mb, 100 << 10)
    spent = cost.of_start(1, 0) + cost.of_changes(1, 100_000)
    assert (recomputed // mb, cost.of_start(1, 0) // mb, cost.of_changes(1, 100_000) / mb) == (301, 36, pytest.approx(24 + 98, abs=0.5))
    assert spent + cost.of_lookup(430 * mb) < recomputed < spent + cost.of_lookup(434 * mb)
    for budget in (0, 30, 40, 100, 130, 300):  # the last number of changes at which a recompute is not cheaper
        most = cost.most_changes(1, budget * mb)
        assert most == 0 or cost.of_start(1, 0) + cost.of_changes(1, most) <= budget * mb
        assert cost.of_start(1, 0) + cost.of_changes(1, most + 1) > budget * mb


def test_what_has_no_key_to_go_by_is_recomputed_once_where_it_is_most_of_the_query(facts: TestLake) -> None:
    facts.view("v", "SELECT d.name, count(*) AS n FROM d LEFT JOIN f ON f.id < d.g GROUP BY d.name HAVING count(*) > 590")
    facts.refresh("v")
    facts.sql("DELETE FROM {f} WHERE id = 595")
    result = facts.refresh("v")
    assert (result.mode, result.reason) == ("recompute", "Join was recomputed: its condition has no equality between the two sides")
    assert result.rows_deleted
    facts.assert_exact("v")


def test_what_has_no_key_to_go_by_is_recomputed_by_itself_where_it_is_small(facts: TestLake) -> None:
    facts.view("v", "SELECT f.id, f.v FROM f WHERE f.g < (SELECT g FROM d ORDER BY g LIMIT 1 OFFSET 1000) + 10")
    facts.refresh("v")
    facts.sql("INSERT INTO {d} VALUES (601, 'n601')")
    result = facts.refresh("v")
    assert result.reason == "Limit was recomputed: a LIMIT looks at all rows"
    facts.assert_exact("v")


def test_a_broken_key_by_which_a_window_has_no_ties_is_named(lake: TestLake) -> None:
    lake.table("t", "SELECT * FROM VALUES (1, 'x', 1), (2, 'x', 2), (3, 'y', 3) t(id, g, v)", key=["id"])
    numbered = "SELECT g, v, row_number() OVER (PARTITION BY g ORDER BY id) AS n FROM t"
    lake.view("v", f"SELECT g, max(struct(n, v)) AS m FROM ({numbered}) GROUP BY g HAVING count(*) > 1")
    assert lake.open.explain("v").incremental
    lake.refresh("v")
    lake.sql("INSERT INTO {t} VALUES (4, 'x', 4)")
    assert lake.refresh("v").mode == "incremental"
    lake.assert_exact("v")
    lake.sql("INSERT INTO {t} VALUES (4, 'x', 5)")
    with pytest.raises(KeyViolationError, match=r"primary key \(id\) of t"):
        lake.open.rebuild("v")


def test_a_key_is_looked_at_once_for_all_views_and_again_in_each_version(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table("t", "SELECT id, id % 3 AS g FROM range(9)", key=["id"])
    for view in ("v", "w"):
        lake.view(view, "SELECT id, g FROM t")
    looked_at, own = [], Catalyst.collected

    def collected(self: Catalyst, frame: DataFrame, limit: int) -> tuple[DataFrame, int] | None:
        looked_at.extend([frame.columns] if limit == 0 else [])
        return own(self, frame, limit)

    monkeypatch.setattr(Catalyst, "collected", collected)
    for view in ("v", "w", "w"):
        lake.open.rebuild(view)
    assert looked_at == [["id"]]
    lake.sql("INSERT INTO {t} VALUES (9, 0)")
    lake.open.rebuild("w")
    assert looked_at == [["id"], ["id"]]
    lake.sql("INSERT INTO {t} VALUES (9, 1)")
    for view in ("v", "w", "w"):
        with pytest.raises(KeyViolationError, match=r"primary key \(id\) of t"):
            lake.open.rebuild(view)
