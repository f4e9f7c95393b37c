"""Refreshes of many changes, of which only keys and numbers are joined (row_edits.keyed_apart), give what those of few give; so do those
that recompute the query and join its rows with the stored ones by key (row_edits.compared).

"Many" is made to be more than two rows here, every commit a large one, and no table small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import partial
from typing import Any

import pytest

from lake.delta import sources
from lake.errors import KeyViolationError
from lake.refresh import compute, publish, row_edits, run
from lake.relations.reading import Reading
from tests.lakes import TestLake, multiset, read_as_large

pytestmark = pytest.mark.slow
VIEWS = {
    "joined": "SELECT f.id, f.v, d.name FROM f JOIN d ON f.g = d.g",
    "padded": "SELECT f.id, f.v, d.name FROM f LEFT JOIN d ON f.g = d.g",
    "grouped": "SELECT f.g, count(*) AS n, sum(f.v) AS v, max(f.v) AS m FROM f JOIN d ON f.g = d.g GROUP BY f.g",
    "mapped": "SELECT id, g, map('v', v, 'g', g) AS m, cast(v AS double) / 3 AS x FROM f WHERE v > 1",
    "by_null": "SELECT f.g AS count, count(*) AS k0, sum(f.v) AS w FROM f GROUP BY f.g",
    "by_float": "SELECT if(f.v = 2, -0.0D, f.v / 4) AS x, max(if(f.v = 3, 0.0D, -0.0D)) AS zero, count(*) AS n FROM f GROUP BY 1",
}


@pytest.fixture
def many(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> TestLake:
    return _built(lake, monkeypatch, refresh_mode="incremental")


@pytest.fixture
def anew(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> TestLake:
    monkeypatch.setattr(compute, "SMALL_TABLE", 0)
    return _built(lake, monkeypatch, recompute_above=0)


def _built(lake: TestLake, monkeypatch: pytest.MonkeyPatch, **options: Any) -> TestLake:
    monkeypatch.setattr(run, "Reading", partial(Reading, local_limit=2))
    monkeypatch.setattr(sources, "_ONE_TASK", 0)
    read_as_large(monkeypatch)
    lake.table("f", "SELECT id, id % 5 AS g, id % 4 AS v FROM range(40)", key=["id"])
    lake.table("d", "SELECT id AS g, concat('n', id) AS name FROM range(4)", key=["g"])
    for name, query in VIEWS.items():
        lake.view(name, query, **options)
        lake.refresh(name)
    return lake


def noted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[bool]:
    """Whether each call of a function of row_edits that a refresh makes gave edits."""
    found, own = list[bool](), getattr(row_edits, name)

    def note(*arguments: Any) -> Any:
        edited = own(*arguments)
        found.append(edited is not None)
        return edited

    for module in (row_edits, compute):
        monkeypatch.setattr(module, name, note)
    return found


HISTORY = [
    ["UPDATE {f} SET v = v + 1 WHERE id % 3 > 0"],
    ["UPDATE {f} SET v = v WHERE id > 5"],  # written as they were: all, and a part of them
    ["UPDATE {f} SET v = if(id % 2 = 0, v + 1, v)"],
    ["UPDATE {f} SET id = 39 - id"],
    ["DELETE FROM {f} WHERE id > 30", "INSERT INTO {f} SELECT id, id % 5, id % 4 FROM range(31, 40)"],
    ["UPDATE {f} SET g = pmod(g + 1, 5)"],
    ["UPDATE {f} SET g = NULL WHERE v = 2"],
    ["UPDATE {f} SET v = v + 1", "UPDATE {f} SET v = v + 1 WHERE id > 7"],
    ["UPDATE {f} SET v = v + 1", "UPDATE {f} SET v = v - 1"],
    ["UPDATE {f} SET v = v + 1, g = pmod(g + 1, 5)", "UPDATE {d} SET name = concat(name, 'x'), g = 4 - g"],
    ["UPDATE {f} SET v = v + 1", "UPDATE {d} SET name = concat(name, 'x') WHERE g = 2"],
    ["UPDATE {f} SET v = if(id = 8, v, v + 1), id = if(id = 9, 41, id)", "UPDATE {d} SET g = 7 WHERE g = 3"],
    ["UPDATE {d} SET name = concat(name, 'x')", "DELETE FROM {d} WHERE g = 1", "INSERT INTO {d} VALUES (NULL, 'n')"],
    [
        "MERGE INTO {f} t USING (SELECT id, id % 5 AS g, id % 4 + id % 2 AS v FROM range(20, 60)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ],
    ["UPDATE {f} SET id = id + 20 WHERE id >= 20"],
    ["DELETE FROM {f} WHERE id % 3 > 0"],
]


def test_views_are_exact_and_what_changed_is_counted(many: TestLake) -> None:
    follow(many)


def test_so_they_are_computed_anew(anew: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    found = noted(monkeypatch, "compared")
    modes = follow(anew, ("joined", "mapped", "by_null", "by_float"))
    assert modes.count("recompute") == len(found) > len(HISTORY)
    assert all(found)


def follow(many: TestLake, names: Collection[str] = VIEWS) -> list[str]:
    """Every history of changes, each view refreshed after each; the modes of the refreshes."""
    modes = []
    before = {name: _by_key(multiset(many.open.read(name))) for name in names}
    for statements in HISTORY:
        many.sql(*statements)
        for name in names:
            result = many.refresh(name)
            held = multiset(many.open.read(name))
            assert held == many.truth(name), (name, statements)
            old, new = before[name], _by_key(held)
            updated = sum(old[key] != new[key] for key in old.keys() & new.keys())
            inserted, deleted = len(new.keys() - old.keys()), len(old.keys() - new.keys())
            shown = (result.rows_inserted, result.rows_updated, result.rows_deleted)
            assert shown == (inserted + updated, updated, deleted + updated), (name, statements)
            before[name] = new
            modes.append(result.mode)
    for name in names:
        assert many.open.verify(name).exact
    return modes


def _by_key(rows: Counter[Any]) -> dict[Any, Any]:
    return {row[0]: row[1:] for row in rows}


def test_a_key_that_comes_twice_is_refused_as_with_few(many: TestLake) -> None:
    held = multiset(many.open.read("joined"))
    many.sql("INSERT INTO {f} SELECT id, id % 5, 7 FROM range(35, 45)")
    with pytest.raises(KeyViolationError, match="declared primary key"):
        many.refresh("joined")
    assert multiset(many.open.read("joined")) == held


@pytest.mark.parametrize(
    ("statements", "apart"),
    [
        (["UPDATE {f} SET v = v + 1"], [True]),
        (["UPDATE {f} SET v = if(id = 7, v, v + 1)"], [False, True]),  # a row written as it was
        (["UPDATE {f} SET v = v + 1", "UPDATE {d} SET name = concat(name, 'x')"], [True]),  # two tables: consolidated first
    ],
)
def test_rows_are_brought_together_only_where_they_must_be(
    many: TestLake, monkeypatch: pytest.MonkeyPatch, statements: list[str], apart: list[bool]
) -> None:
    found = noted(monkeypatch, "keyed_apart")
    many.sql(*statements)
    many.refresh("joined")
    assert found == apart
    many.assert_exact("joined")


@pytest.mark.parametrize(
    "statement", ["INSERT INTO {f} SELECT id, id % 5, 7 FROM range(35, 45)", "INSERT INTO {f} SELECT 50, 1, id FROM range(9)"]
)
def test_a_key_that_comes_twice_anew_is_refused_too(anew: TestLake, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    held, found = multiset(anew.open.read("joined")), noted(monkeypatch, "compared")
    anew.sql(statement)
    with pytest.raises(KeyViolationError, match="declared primary key"):
        anew.refresh("joined")
    assert found == [False]
    assert multiset(anew.open.read("joined")) == held


def test_rows_are_found_anew_where_the_table_was_optimised_meanwhile(anew: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    anew.sql("UPDATE {f} SET v = v + 1 WHERE id % 3 > 0")
    anew.refresh("joined")
    found, calls, commit = noted(monkeypatch, "compared"), list[object](), publish._commit

    def optimise_first(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 1:
            anew.sql("OPTIMIZE {joined} FULL")
        commit(*arguments)

    monkeypatch.setattr(publish, "_commit", optimise_first)
    anew.sql("UPDATE {f} SET v = v + 1, g = pmod(g + 1, 5)")
    anew.refresh("joined")
    assert (found, len(calls)) == ([True], 2)
    anew.assert_exact("joined")


def test_a_view_that_is_emptied_and_filled_again_anew(anew: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    found = noted(monkeypatch, "compared")
    anew.sql("DELETE FROM {f}")
    assert anew.refresh("joined").mode == "recompute"
    anew.assert_exact("joined")
    anew.sql("INSERT INTO {f} SELECT id, id % 5, id % 4 FROM range(60)")
    assert anew.refresh("joined").rows_inserted == 48
    anew.assert_exact("joined")
    assert found == [True]  # of an empty table there is nothing to be brought together with


def test_no_row_on_either_side_is_no_difference(anew: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    for adaptive in ("true", "false"):  # the adaptive plan leaves a side without rows out, and with it what would have been counted
        monkeypatch.setattr(compute, "SMALL_TABLE", -1)
        found = noted(monkeypatch, "compared")
        session = anew.spark
        session.conf.set("spark.sql.adaptive.enabled", adaptive)
        try:
            anew._open = None
            anew.sql("DELETE FROM {f}")
            anew.refresh("joined")
            anew.sql("INSERT INTO {d} VALUES (11, 'n')")
            result = anew.open.rebuild("joined")
            anew.sql("DELETE FROM {d} WHERE g = 11", "INSERT INTO {f} SELECT id, id % 5, id % 4 FROM range(6)")
            anew.refresh("joined")
        finally:
            session.conf.set("spark.sql.adaptive.enabled", "false")
        assert (result.mode, result.rows_inserted, result.rows_deleted, found[1]) == ("recompute", 0, 0, True)
        anew.assert_exact("joined")
