"""The key of a view: derived, with no hidden copy of a column that the query has, or declared with `key:`, and then checked."""

from __future__ import annotations

import pytest

from lake.errors import ConfigError, DefinitionChangedError, KeyViolationError, TargetError
from tests.lakes import TestLake, multiset

DERIVED = {
    "SELECT t.ca_id AS account_id, v FROM t": ("account_id",),
    "SELECT u.id AS account_id, t.v FROM t JOIN u ON t.ca_id = u.id": ("account_id",),
    "SELECT u.id, s.n FROM t JOIN u ON t.ca_id = u.id JOIN (SELECT ca_id AS n, v FROM t) s ON s.n = t.ca_id": ("id",),
    "SELECT ca_id AS account_id, row_number() OVER (PARTITION BY ca_id ORDER BY v) AS n FROM t": ("account_id",),
    "SELECT account_id, max(v) AS v FROM (SELECT ca_id AS account_id, v FROM t) GROUP BY account_id HAVING v > 1": ("account_id",),
    "SELECT e.y, t.v FROM d JOIN (SELECT x AS y FROM d) e ON d.x = e.y JOIN t ON t.ca_id = 1": (
        "__lakejoin_key_0",
        "y",
        "__lakejoin_key_1",
    ),
    "SELECT t.v FROM t LEFT JOIN u ON t.ca_id = u.id": ("__lakejoin_key_0",),
    "SELECT t.v, (SELECT u.id FROM u WHERE u.v = t.ca_id) AS i FROM t": ("__lakejoin_key_0",),
}


@pytest.fixture
def keys(lake: TestLake) -> TestLake:
    lake.table("t", "SELECT * FROM VALUES (1, 10), (2, 20), (3, 20) AS t(ca_id, v)", key=["ca_id"])
    lake.table("u", "SELECT * FROM VALUES (1, 10), (2, 20), (4, 20) AS u(id, v)", key=["id"])
    lake.table("d", "SELECT * FROM VALUES (1.0D, 10), (0.0D, 20) AS d(x, v)", key=["x"])
    return lake


@pytest.mark.parametrize("query", DERIVED)
def test_a_derived_key_has_no_hidden_copy_of_a_column_of_the_query(keys: TestLake, query: str) -> None:
    keys.view("v", query)
    with keys.open.opened("v") as state:
        assert keys.open.prepare("v", state)[0].key_names == DERIVED[query]


@pytest.mark.slow
@pytest.mark.parametrize("query", DERIVED)
def test_a_view_with_such_a_key_is_exact(keys: TestLake, query: str) -> None:
    keys.view("v", query)
    keys.refresh("v")
    keys.sql("UPDATE {t} SET ca_id = 4 WHERE ca_id = 1", "INSERT INTO {t} VALUES (NULL, 5), (1, 6)", "DELETE FROM {u} WHERE id = 2")
    assert keys.refresh("v").mode == "incremental"
    keys.assert_exact("v")
    keys.sql("UPDATE {t} SET ca_id = 2 WHERE ca_id = 4", "DELETE FROM {t} WHERE v = 20", "INSERT INTO {u} VALUES (2, 1)")
    keys.refresh("v")
    keys.assert_exact("v")


UNION = "SELECT ca_id AS id, v FROM t UNION ALL SELECT id + 10, v FROM u"


def test_a_view_without_a_derived_key_is_given_one(keys: TestLake) -> None:
    """Its rows are updated under the key, and it is checked on each way that rows come in."""
    keys.view("v", UNION, key="ID")
    keys.refresh("v")
    keys.sql("UPDATE {t} SET v = 7 WHERE ca_id = 2", "DELETE FROM {u} WHERE id = 1", "INSERT INTO {t} VALUES (NULL, 1), (11, 5)")
    result = keys.refresh("v")
    assert (result.mode, result.rows_updated) == ("incremental", 2)
    keys.assert_exact("v")
    keys.sql("INSERT INTO {t} VALUES (12, 5)")  # which u has, too
    with pytest.raises(KeyViolationError, match=r"The key \(id\) of view 'v', declared by `views\.v\.key`, has .* one row for: {'id': 12}"):
        keys.refresh("v")
    with pytest.raises(KeyViolationError, match=r"declared by `views\.v\.key`"):
        keys.open.rebuild("v")
    keys.sql("DELETE FROM {t} WHERE ca_id = 12")
    keys.refresh("v")
    keys.assert_exact("v")


def test_a_build_with_two_rows_of_the_key_is_refused_and_writes_nothing(keys: TestLake) -> None:
    keys.view("v", "SELECT v, ca_id FROM t", key=["v"])
    with pytest.raises(KeyViolationError, match=r"The key \(v\) of view 'v', declared by `views\.v\.key`, has .* one row for: {'v': 20}"):
        keys.refresh("v")
    keys.sql("DELETE FROM {t} WHERE ca_id = 3")
    assert keys.refresh("v").mode == "build"
    keys.sql("UPDATE {t} SET ca_id = 9 WHERE v = 20")
    assert keys.refresh("v").rows_updated == 1
    keys.assert_exact("v")
    keys.view("v", "SELECT v, ca_id FROM t", key=["ca_id"])
    with pytest.raises(DefinitionChangedError, match="key was 'v', now 'ca_id'"):
        keys.refresh("v")


def test_a_declared_key_of_a_grouped_view_and_of_a_window_is_exact(keys: TestLake) -> None:
    keys.view("g", "SELECT v, count(*) AS n, max(ca_id) AS most FROM t GROUP BY v", key=["most"])
    keys.view("w", "SELECT ca_id AS id, row_number() OVER (PARTITION BY v ORDER BY ca_id) AS n FROM t", key=["id"])
    for view in ("g", "w"):
        keys.refresh(view)
    keys.sql("UPDATE {t} SET v = 10 WHERE ca_id = 3", "INSERT INTO {t} VALUES (5, 20), (6, NULL)", "DELETE FROM {t} WHERE ca_id = 1")
    for view in ("g", "w"):
        assert keys.refresh(view).mode == "incremental"
        keys.assert_exact(view)


def test_a_key_that_the_query_does_not_have_is_refused(keys: TestLake) -> None:
    keys.view("v", "SELECT v, map(1, ca_id) AS m FROM t", key=["nope"])
    with pytest.raises(ConfigError, match=r"`views\.v\.key`: the query has no column 'nope'\. It has: v, m\."):
        keys.refresh("v")
    keys.view("v", "SELECT v, map(1, ca_id) AS m FROM t", key=["m"])
    with pytest.raises(ConfigError, match=r"column 'm' has type map<int,int>, whose values can't be compared"):
        keys.refresh("v")


def test_two_identical_columns_are_one_in_a_composite_key(lake: TestLake) -> None:
    """Each row of t may match several of u, and the other way round."""
    lake.table("t", "SELECT * FROM VALUES (1, 1), (1, 2), (2, 1) AS t(a, d)", key=["a", "d"])
    lake.table("u", "SELECT * FROM VALUES (1, 7), (1, 8), (3, 7) AS u(b, c)", key=["b", "c"])
    lake.view("v", "SELECT t.a, t.d, u.c FROM t JOIN u ON t.a = u.b")
    lake.refresh("v")
    lake.sql("UPDATE {u} SET b = 2 WHERE c = 8", "DELETE FROM {t} WHERE d = 2", "INSERT INTO {t} VALUES (3, 5), (3, 6)")
    assert lake.refresh("v").mode == "incremental"
    lake.assert_exact("v")


@pytest.mark.slow
def test_a_key_that_is_declared_later_is_checked_by_the_rebuild(keys: TestLake) -> None:
    keys.view("v", UNION)
    keys.sql("INSERT INTO {t} VALUES (12, 5)")  # which u has, too
    keys.refresh("v")
    keys.view("v", UNION, key=["id"])
    with pytest.raises(KeyViolationError, match=r"declared by `views\.v\.key`"):
        keys.open.rebuild("v")
    keys.sql("DELETE FROM {t} WHERE ca_id = 12")
    assert "declared key changed" in keys.open.rebuild("v").reason
    keys.assert_exact("v")
    keys.sql("INSERT INTO {v} VALUES (12, 5)")  # by somebody else: a rebuild mends it
    with pytest.raises(TargetError, match="written by someone else"):
        keys.refresh("v")
    keys.open.rebuild("v")
    keys.assert_exact("v")
    keys.sql("UPDATE {t} SET v = 99 WHERE ca_id = 1")
    assert keys.refresh("v").mode == "incremental"
    keys.assert_exact("v")


def test_primary_keys_that_are_null_may_meet_in_a_full_join_only_one_at_a_time(keys: TestLake) -> None:
    joined = "SELECT t.ca_id AS a, u.id AS b, t.v, u.v AS w FROM t FULL JOIN u ON t.ca_id = u.id"
    keys.sql("INSERT INTO {t} VALUES (NULL, 5)")
    keys.view("v", joined)
    keys.refresh("v")
    keys.sql("UPDATE {t} SET ca_id = 4 WHERE ca_id IS NULL", "INSERT INTO {u} VALUES (NULL, 7)")  # NULL moves to the other side
    assert keys.refresh("v").mode == "incremental"
    assert multiset(keys.open.read("v")) == keys.truth("v")
    keys.sql("INSERT INTO {t} VALUES (NULL, 1)")
    keys.view("w", joined)
    for view in ("v", "w"):
        with pytest.raises(KeyViolationError, match=r"\(a, b\) of view '[vw]'.*t, u.*{'a': None, 'b': None}.* not NULL"):
            keys.refresh(view)
    keys.sql("DELETE FROM {u} WHERE id IS NULL")
    for view in ("v", "w"):
        keys.refresh(view)
        assert multiset(keys.open.read(view)) == keys.truth(view)


def test_a_full_join_of_views_with_groups_of_nulls_is_exact(keys: TestLake) -> None:
    """NULL is a group like another one: two rows without a match have nothing but NULLs in both keys."""
    grouped = "SELECT {0} AS g, sum(v) AS s FROM {1} GROUP BY {0}"
    keys.sql("INSERT INTO {t} VALUES (NULL, 5)", "INSERT INTO {u} VALUES (NULL, 7)")
    keys.view("x", grouped.format("ca_id", "t"))
    keys.view("y", grouped.format("id", "u"))
    keys.view("v", "SELECT x.g, y.g AS h, x.s, y.s AS z FROM x FULL JOIN y ON x.g = y.g")
    for changes in ([], ["UPDATE {u} SET v = 8 WHERE id IS NULL", "DELETE FROM {t} WHERE ca_id = 2"]):
        keys.sql(*changes)
        for view in ("x", "y", "v"):
            keys.refresh(view)
        rows = multiset(keys.open.read("v"))
        assert {row: n for row, n in rows.items() if row[:2] == (None, None)} == {
            (None, None, 5, None): 1,
            (None, None, None, 8 if changes else 7): 1,
        }
        assert (2, 2, 20, 20) in rows or changes
