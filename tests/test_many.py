"""Refreshes of many changes, of which only keys and numbers are brought together (edits.keyed_apart), give what those of few give.

"Many" is made to be more than two rows here, and every commit a large one.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest

from lake import edits, refresh, tables
from lake.errors import KeyViolationError
from lake.relations.reading import Reading
from tests.lakes import TestLake, multiset

pytestmark = pytest.mark.slow
VIEWS = {
    "joined": "SELECT f.id, f.v, d.name FROM f JOIN d ON f.g = d.g",
    "padded": "SELECT f.id, f.v, d.name FROM f LEFT JOIN d ON f.g = d.g",
    "grouped": "SELECT f.g, count(*) AS n, sum(f.v) AS v, max(f.v) AS m FROM f JOIN d ON f.g = d.g GROUP BY f.g",
    "mapped": "SELECT id, g, map('v', v, 'g', g) AS m, cast(v AS double) / 3 AS x FROM f WHERE v > 1",
}


@pytest.fixture
def many(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> TestLake:
    monkeypatch.setattr(refresh, "Reading", partial(Reading, local_limit=2))
    monkeypatch.setattr(tables, "_ONE_TASK", 0)
    lake.table("f", "SELECT id, id % 5 AS g, id % 4 AS v FROM range(40)", key=["id"])
    lake.table("d", "SELECT id AS g, concat('n', id) AS name FROM range(4)", key=["g"])
    for name, query in VIEWS.items():
        lake.view(name, query, refresh_mode="incremental")
        lake.refresh(name)
    return lake


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
    before = {name: _by_key(multiset(many.open.read(name))) for name in VIEWS}
    for statements in HISTORY:
        many.sql(*statements)
        for name in VIEWS:
            result = many.refresh(name)
            held = multiset(many.open.read(name))
            assert held == many.truth(name), (name, statements)
            old, new = before[name], _by_key(held)
            updated = sum(old[key] != new[key] for key in old.keys() & new.keys())
            inserted, deleted = len(new.keys() - old.keys()), len(old.keys() - new.keys())
            shown = (result.rows_inserted, result.rows_updated, result.rows_deleted)
            assert shown == (inserted + updated, updated, deleted + updated), (name, statements)
            before[name] = new
    for name in VIEWS:
        assert many.open.verify(name).exact


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
    found, own = list[bool](), edits.keyed_apart

    def noted(*arguments: Any) -> Any:
        edited = own(*arguments)
        found.append(edited is not None)
        return edited

    monkeypatch.setattr(edits, "keyed_apart", noted)
    monkeypatch.setattr(refresh, "keyed_apart", noted)
    many.sql(*statements)
    many.refresh("joined")
    assert found == apart
    many.assert_exact("joined")
