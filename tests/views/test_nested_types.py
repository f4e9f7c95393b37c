"""Structs, arrays and maps in a view: NULL is allowed at every level of its table, and nested metadata stays with the sources."""

from __future__ import annotations

import pytest

from lake.spark.types import allows_null
from tests.lakes import TestLake

pytestmark = pytest.mark.slow

NOT_NULL = {
    "list_of_structs": """SELECT cust, collect_list(named_struct('product', product, 'n', n)) AS l
        FROM (SELECT cust, product, count(*) AS n FROM o GROUP BY cust, product ORDER BY product) GROUP BY cust""",
    "struct_of_literals": """SELECT cust, named_struct('one', 1, 'two', coalesce(product, '-')) AS st, count(*) AS n
        FROM o GROUP BY cust, product""",
    "struct_in_a_struct": """SELECT cust, named_struct('inner', named_struct('n', count(*)), 'l', array(count(*))) AS st
        FROM o GROUP BY cust""",
    "map_of_counts": "SELECT cust, map('n', count(*), 'total', sum(qty)) AS m FROM o GROUP BY cust",
    "unmatched_struct": """SELECT c.id, g.st FROM c LEFT JOIN
        (SELECT cust, named_struct('n', count(*)) AS st FROM o GROUP BY cust) g ON c.id = g.cust""",
    "unmatched_array": """SELECT c.id, g.l, g.m FROM c LEFT JOIN
        (SELECT cust, array(count(*)) AS l, map('n', count(*)) AS m FROM o GROUP BY cust) g ON c.id = g.cust""",
    "unmatched_full": """SELECT c.id, g.st, named_struct('id', coalesce(c.id, -1)) AS own FROM c FULL JOIN
        (SELECT cust, named_struct('a', array(named_struct('n', count(*)))) AS st FROM o GROUP BY cust) g ON c.id = g.cust""",
    "grouped_by_a_struct": """SELECT named_struct('c', coalesce(cust, 0)) AS k, count(*) AS n
        FROM o GROUP BY named_struct('c', coalesce(cust, 0))""",
}


@pytest.mark.parametrize("query", NOT_NULL.values(), ids=NOT_NULL)
def test_nested_fields_that_are_never_null_are_stored_and_may_become_null(lake: TestLake, query: str) -> None:
    lake.table("o", "SELECT * FROM VALUES (1, 'a', 1), (1, 'b', 2), (2, 'a', 3), (2, 'a', 3), (NULL, NULL, 4) t(cust, product, qty)")
    lake.table("c", "SELECT * FROM VALUES (1), (2), (3), (NULL) t(id)")
    lake.view("v", query)
    assert lake.refresh("v").mode == "build"
    assert all(allows_null(field.dataType) for field in lake.spark.read.format("delta").load(f"{lake.path('views')}/v").schema.fields)
    lake.assert_exact("v")
    lake.sql("DELETE FROM {o} WHERE cust = 2", "INSERT INTO {o} VALUES (3, 'c', 9)", "UPDATE {c} SET id = 7 WHERE id = 1")
    lake.refresh("v")
    lake.assert_exact("v")
    lake.open.rebuild("v")
    lake.assert_exact("v")


def test_nested_fields_of_two_mapped_tables_meet_in_one_view(lake: TestLake) -> None:
    """Each source numbers its nested columns from one: the numbers collided in the view's table."""
    mapped = {"delta__columnMapping__mode": "name", "delta__enableTypeWidening": "true", "delta__enableChangeDataFeed": "false"}
    for name, first in (("x", 1), ("y", 10)):
        lake.table(name, f"SELECT CAST({first} AS int) AS id, named_struct('a', CAST({first} AS int), 'b', array('p')) AS st", **mapped)
    lake.sql("ALTER TABLE {x} ALTER COLUMN st.a TYPE bigint", "INSERT INTO {x} VALUES (2, named_struct('a', 5000000000, 'b', NULL))")
    lake.view("both", "SELECT id, CAST(st AS struct<a: bigint, b: array<string>>) AS st FROM x UNION ALL SELECT id, st FROM y")
    lake.view("joined", "SELECT x.id, x.st AS one, y.st AS other FROM x LEFT JOIN y ON x.id = y.id - 9")
    for view in ("both", "joined"):
        assert lake.refresh(view).mode == "build"
    lake.sql("INSERT INTO {y} VALUES (11, named_struct('a', 3, 'b', array('q', NULL)))", "DELETE FROM {x} WHERE id = 1")
    for view in ("both", "joined"):
        assert lake.refresh(view).mode == "incremental"
        lake.assert_exact(view)
        lake.open.rebuild(view)
        lake.assert_exact(view)
