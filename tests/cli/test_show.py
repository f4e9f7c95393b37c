"""`lakejoin show`: conditions and orders over the view's columns and nothing else, and the three ways in which rows are printed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from pyspark.sql.types import IntegerType
from typer.testing import CliRunner

from lake.catalyst.conditions import order_of_query, where
from lake.cli.app import app
from lake.cli.context import opener
from lake.core.variables import assigned
from lake.errors import QueryError
from tests.lakes import TestLake


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestLake]:
    lake = TestLake(spark, tmp_path_factory.mktemp("shown"))
    lake.table("a", """SELECT * FROM VALUES (1, 'x, "y"', 7), (2, NULL, 5), (3, 'z', NULL) t(id, s, n)""", key=["id"])
    lake.view("v", "WITH c AS (SELECT * FROM a) SELECT s, n, named_struct('p', id) AS part FROM c ORDER BY n DESC NULLS FIRST, upper(s)")
    lake.refresh("v")
    with assigned(opener, lambda *_: lake.open):
        yield lake


def show(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["show", "v", *arguments])


def numbers(*arguments: str) -> list[int | None]:
    answer = show("--json", *arguments)
    assert answer.exit_code == 0, answer.output
    return [row["n"] for row in json.loads(answer.stdout)]


def test_rows_come_in_the_order_of_the_query_or_in_the_given_one(lake: TestLake) -> None:
    assert numbers() == [None, 7, 5]
    assert numbers("--order-by", "n") == [None, 5, 7]
    assert numbers("--order-by", "s desc nulls last, n", "--limit", "1") == [None]
    assert numbers("--order-by", "`S` NULLS FIRST") == [5, 7, None]
    assert numbers("--at", "a=0") == [None, 7, 5]


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT x, y FROM t ORDER BY 2, X DESC LIMIT 5 OFFSET 1", ["y", "x"]),
        ("SELECT x, y FROM t ORDER BY y, x + 1", ["y"]),
        ("SELECT t.x, y FROM t ORDER BY t.x", []),
        ("SELECT x, y FROM t SORT BY x", []),
        ("SELECT x, y FROM (SELECT * FROM t ORDER BY x)", []),
        ("SELECT x, y FROM t", []),
        ("no query", []),
    ],
)
def test_the_order_of_a_query_is_used_as_far_as_it_is_one_of_columns(spark: Any, query: str, columns: list[str]) -> None:
    assert [order.column for order in order_of_query(spark, query, ["x", "y"])] == columns


def test_a_condition_chooses_rows(lake: TestLake) -> None:
    assert numbers("--where", "n > 5 AND s LIKE 'x%'") == [7]
    assert numbers("--where", "part.p IN (2, 3) AND coalesce(upper(s), '') <> 'Z' AND current_date > DATE'2020-01-01'") == [5]
    assert numbers("--where", "exists(array(n), i -> i > 5)") == [7]


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("n IN (SELECT id FROM a)", "subquery"),
        ("EXISTS (SELECT 1 FROM delta.`/etc`)", "subquery"),
        ("n = (SELECT max(n) FROM v)", "subquery"),
        ("length(s) > (SELECT count(*) FROM csv.`/etc/passwd`)", "subquery"),
        ("java_method('java.lang.System', 'exit', 3) IS NULL", "java_method"),
        ("REFLECT('java.util.UUID', 'randomUUID') = ''", "REFLECT"),
        ("main.default.f(n)", "main.default.f"),
        ("nowhere(n)", "nowhere is none"),
        ("input_file_name() <> ''", "input_file_name"),
        ("_metadata.file_path <> ''", "no column '_metadata'"),
        ("id > 1", "no column 'id'"),
        ("IDENTIFIER('s' || '') = 'z'", "can't be used"),
        ("IDENTIFIER('java_method')('java.lang.System', 'exit', 3) IS NULL", "can't be used"),
        ("count(*) > 1", "can't be used"),
        ("n + 1", "can't be used"),
        ("n >", "can't be used"),
        ("n > 1; DROP TABLE v", "can't be used"),
    ],
)
def test_a_condition_over_more_than_the_columns_is_refused(lake: TestLake, condition: str, said: str) -> None:
    answer = show("--where", condition)
    assert (answer.exit_code, said in answer.stderr) == (2, True), answer.stderr


def test_a_function_of_a_user_under_a_name_of_sparks_is_not_called(spark: Any) -> None:
    session = spark.newSession()
    session.udf.register("char_length", lambda text: 99, IntegerType())
    rows = list[Any]()
    with suppress(QueryError):  # where it hides Spark's own, it is refused
        rows = where(session.createDataFrame([("x",)], "s string"), "char_length(s) = 99").collect()
    assert rows == []


@pytest.mark.parametrize("order", ["id", "upper(s)", "n; DROP TABLE v", "n LIMIT 1", "4", "(SELECT 1)"])
def test_an_order_by_more_than_columns_is_refused(lake: TestLake, order: str) -> None:
    answer = show("--order-by", order)
    assert (answer.exit_code, "The order" in answer.stderr) == (2, True), answer.stderr


def test_rows_are_printed_as_csv_json_or_a_table(lake: TestLake) -> None:
    rows = list(csv.reader(io.StringIO(show("--format", "csv").stdout)))
    assert rows == [["s", "n", "part"], ["z", "", '{"p": 3}'], ['x, "y"', "7", '{"p": 1}'], ["", "5", '{"p": 2}']]
    assert show("--format", "json").stdout == show("--json").stdout
    assert "NULL" in show("--format", "table").stdout
    assert show("--json", "--format", "csv").exit_code == 2
