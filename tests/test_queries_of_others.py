"""Queries as other systems' suites have them, which once were refused or wrong here: each over one history, compared after every step."""

from __future__ import annotations

import pytest

from tests.lakes import TestLake, multiset

QUERIES = {
    "key_without_a_name": "SELECT upper(s), count(*) FROM a GROUP BY upper(s)",
    "distinct_without_a_name": "SELECT DISTINCT concat(s, '`.`', v) FROM a",
    "groups_fully_joined": """SELECT x.v, n, y.id, m FROM (SELECT v, count(*) AS n FROM a GROUP BY v) x
        FULL JOIN (SELECT id, count(*) AS m FROM b GROUP BY id) y ON x.v = y.id""",
    "three_groups_fully_joined": """SELECT x.v, y.id, z.k, m FROM (SELECT DISTINCT v FROM a) x FULL JOIN (SELECT DISTINCT id FROM b) y
        ON x.v = y.id FULL JOIN (SELECT s AS k, max(v) AS m FROM a GROUP BY s) z ON z.k = CAST(y.id AS STRING)""",
    "cte": "WITH cte AS (SELECT id, s FROM a WHERE v > 1) SELECT * FROM cte",  # a CTE named as the view
    "cte_named_as_its_table": "WITH a AS (SELECT id, s FROM a), c AS (SELECT id FROM a) SELECT a.s, c.id FROM a LEFT JOIN c ON a.id = c.id",
    "cte_named_as_another_view": "WITH cte AS (SELECT 1 AS one) SELECT id, one FROM a, cte",
    "group_of_no_type": "SELECT count(*) AS n FROM a GROUP BY s, NULL",
    "group_of_intervals": "SELECT count(*) AS n FROM a GROUP BY make_ym_interval(0, id)",
    "window_of_intervals": "SELECT id, v, sum(v) OVER (PARTITION BY make_ym_interval(0, id) ORDER BY v, s ROWS 1 PRECEDING) AS r FROM a",
    "first_rows_by_a_scalar": "SELECT id, v FROM a ORDER BY v - (SELECT max(w) FROM b) DESC NULLS LAST, id, s LIMIT 2",
    "among_first_rows_by_a_scalar": "SELECT s FROM a WHERE id IN (SELECT id FROM b ORDER BY w - (SELECT min(v) FROM a), id, s LIMIT 2)",
    "collated_groups": "SELECT n FROM (SELECT s COLLATE UTF8_LCASE AS c, count(*) AS n FROM a GROUP BY 1)",
}
COLLATED_LEAST = """SELECT c COLLATE UTF8_BINARY AS c, n
    FROM (SELECT min(s COLLATE UTF8_LCASE) AS c, count(*) AS n FROM a WHERE id = 1 GROUP BY id)"""
LATERAL = """SELECT x.id, l.w FROM (SELECT DISTINCT id FROM a) x
    {kind} LATERAL (SELECT {columns} FROM b WHERE b.id = x.id ORDER BY {by} LIMIT {n}) l"""
STEPS = (
    ("INSERT INTO {a} VALUES (1, 'a', 1), (NULL, NULL, 3)", "INSERT INTO {b} VALUES (1, 12, 'z'), (NULL, 1, NULL)"),
    ("DELETE FROM {a} WHERE s = 'A'", "UPDATE {b} SET id = 2 WHERE w = 12", "UPDATE {a} SET v = NULL WHERE id = 2"),
    ("DELETE FROM {b} WHERE id IS NULL", "DELETE FROM {a} WHERE v IS NULL", "INSERT INTO {b} VALUES (2, 12, 'a'), (1, 12, 'b')"),
    ("DELETE FROM {b}", "UPDATE {a} SET s = upper(s), v = v + 1"),
    ("INSERT INTO {b} VALUES (1, 3, 'p'), (1, 4, 'o'), (NULL, 4, 'o')", "INSERT INTO {a} VALUES (NULL, NULL, NULL), (1, 'A', 2)"),
)


@pytest.fixture
def tables(lake: TestLake) -> TestLake:
    lake.table("a", "SELECT * FROM VALUES (1, 'A', 10), (1, 'A', 10), (2, 'b', 2), (NULL, 'n', NULL), (3, NULL, NULL) AS t(id, s, v)")
    lake.table("b", "SELECT * FROM VALUES (1, 10, 'x'), (1, 11, 'x'), (2, 2, 'y'), (NULL, 5, NULL), (10, 7, 'k') AS t(id, w, s)")
    return lake


@pytest.mark.slow
def test_queries_of_others_stay_exact(tables: TestLake) -> None:
    for name, query in QUERIES.items():
        tables.view(name, query)
        tables.refresh(name)
    for step in STEPS:
        tables.sql(*step)
        wrong = []
        for name in QUERIES:
            tables.refresh(name)
            if multiset(tables.open.read(name)) != tables.truth(name):
                wrong.append(name)
        assert wrong == [], step
    assert [name for name in QUERIES if not tables.open.verify(name).exact] == []


@pytest.mark.parametrize(("kind", "columns", "by", "n"), [("JOIN", "w", "s, w DESC", 1), ("JOIN", "w + 0 AS w", "s DESC, w", 2)])
def test_the_first_rows_of_a_lateral_subquery_follow_an_order_that_it_does_not_select(
    tables: TestLake, kind: str, columns: str, by: str, n: int
) -> None:
    """Spark itself forgets the order: the truth is the same query with the order's columns selected."""
    tables.view("v", LATERAL.format(kind=kind, columns=columns, by=by, n=n))
    tables.views["truth"] = {"query": LATERAL.format(kind=kind, columns=f"{columns}, b.s", by=by, n=n)}
    tables.refresh("v")
    for step in STEPS:
        tables.sql(*step)
        tables.refresh("v")
        assert multiset(tables.open.read("v")) == tables.truth("truth"), step


def test_any_rows_of_a_lateral_subquery_are_as_many_as_asked_for(tables: TestLake) -> None:
    tables.view("v", "SELECT x.id, l.w FROM (SELECT DISTINCT id FROM a) x, LATERAL (SELECT w FROM b WHERE b.id = x.id LIMIT 1) l")
    tables.refresh("v")
    tables.sql(*STEPS[0])
    tables.refresh("v")
    assert sorted(row.id for row in tables.open.read("v").collect()) == [1, 2]


def test_the_least_of_strings_that_a_collation_takes_for_equal_is_one_of_them(tables: TestLake) -> None:
    """Spark takes the one that it meets first, so that a build and the query need not have the same: but never one that is gone."""
    tables.view("v", COLLATED_LEAST)
    tables.refresh("v")
    for step in STEPS:
        tables.sql(*step)
        tables.refresh("v")
        strings = [row.s for row in tables.spark.read.format("delta").load(tables.path("a")).where("id = 1").collect()]
        least = min(string.lower() for string in strings)
        [row] = tables.open.read("v").collect()
        assert row.n == len(strings), step
        assert row.c in [string for string in strings if string.lower() == least], step
