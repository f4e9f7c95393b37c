"""What Spark calls deterministic, and is no function of its input, or depends on the order of rows."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from lake.errors import DefinitionError
from tests.lakes import SPARK
from tests.relations.laws import Rows, View

KEY = "'0000111122223333'"
VECTOR = "unhex('000102030405060708090a0b')"


@pytest.mark.parametrize("arguments", [f"s, {KEY}", f"s, {KEY}, 'CBC'", f"s, {KEY}, 'GCM', 'DEFAULT', iv", f"s, {KEY}, mode"])
def test_encryption_with_a_random_vector_is_refused(spark: SparkSession, arguments: str) -> None:
    query = f"SELECT n, base64(aes_encrypt({arguments})) AS e FROM t"
    with pytest.raises(DefinitionError, match="it uses aes_encrypt without a literal initialization vector"):
        View(spark, {"t": "n int, s string, iv binary, mode string"}, query)


@pytest.mark.parametrize("arguments", [f"s, {KEY}, 'ecb'", f"s, {KEY}, 'GCM', 'DEFAULT', {VECTOR}"])
def test_encryption_without_a_random_vector_is_a_function_of_its_input(spark: SparkSession, arguments: str) -> None:
    view = View(spark, {"t": "n int, s string"}, f"SELECT n, base64(aes_encrypt({arguments})) AS e FROM t")
    view.assert_law({"t": [(1, "x"), (2, "y")]}, {"t": [(2, "x"), (2, "y"), (3, None)]})


@pytest.mark.skipif(SPARK < (4, 2), reason="Spark 4.2 has them")
@pytest.mark.parametrize("function", ["vector_sum", "vector_avg"])
def test_sums_of_vectors_depend_on_the_order_of_rows(spark: SparkSession, function: str) -> None:
    schemas = {"d": "p int, name string", "e": "p int, v array<float>"}
    summed = f"SELECT p, {function}(v) AS m FROM e GROUP BY p"
    view = View(spark, schemas, f"SELECT d.name, g.m FROM d JOIN ({summed}) g ON d.p = g.p")
    assert function in view.definition.relation.order_dependent


@pytest.mark.parametrize(
    ("aggregates", "named"),
    [
        ("sum(v)", ""),
        ("min(v), avg(v), count(*), bool_or(v > 1)", ""),
        ("first(v)", "first"),
        ("sum(double(v))", "sum of floating-point numbers"),
    ],
)
@pytest.mark.parametrize("having", ["", "HAVING count(*) > 1"])
def test_first_in_sparks_rewrite_of_several_distincts_is_no_order_dependence(
    spark: SparkSession, aggregates: str, named: str, having: str
) -> None:
    query = f"SELECT s, count(DISTINCT v) AS a, count(DISTINCT id) AS b, struct({aggregates}) AS n FROM t GROUP BY s {having}"
    found = View(spark, {"t": "id int, s string, v int"}, query).definition.relation.order_dependent
    assert found.startswith(named) if named else found == ""


def test_first_of_the_users_over_an_expand_and_an_aggregate_depends_on_the_order_of_rows(spark: SparkSession) -> None:
    """The same shape as Spark's rewrite, with several rows of each group."""
    groups = "SELECT s, v, grouping_id() AS g, sum(id) AS n FROM t GROUP BY GROUPING SETS ((s, v), (s))"
    for level, one_row in ((0, False), (1, True)):
        view = View(
            spark, {"t": "id int, s string, v int"}, f"SELECT s, first(n) FILTER (WHERE g = {level}) AS f FROM ({groups}) GROUP BY s"
        )
        assert (view.definition.relation.order_dependent == "") == one_row


ZEROS = {
    "groups": "SELECT k, max(d) AS m, min(d) AS l, max(float(d)) FILTER (WHERE d < 5) AS f FROM t GROUP BY k",
    "window": "SELECT k, d, max(d) OVER (PARTITION BY k) AS m FROM t",
    "joined": "SELECT t.d, g.m FROM t JOIN (SELECT k, min(d) AS m FROM t GROUP BY k) g ON g.k = t.k",
    "all rows": "SELECT max(d) AS m FROM t WHERE k = 3 OR d = 1",
}


@pytest.mark.parametrize("name", ZEROS)
def test_the_zero_among_extremes_of_doubles_does_not_depend_on_the_order_of_rows(spark: SparkSession, name: str) -> None:
    view = View(spark, {"t": "k int, d double"}, ZEROS[name])
    assert not view.definition.relation.order_dependent
    one: Rows = [(1, -0.0), (1, -0.0), (1, -1.0), (2, 5.0), (2, float("nan")), (3, 0.0), (None, None)]
    other: Rows = [(1, -0.0), (2, 5.0), (2, -0.0), (2, 6.0), (3, 0.0), (3, None), (4, -0.0)]
    view.assert_law({"t": one}, {"t": other})  # each group has zeros of one sign: that sign
    for rows in ([*one, (3, -0.0)], [*other, (4, 0.0)]):
        both, turned = (view.snapshot({"t": found}) for found in (rows, rows[::-1]))
        assert both == turned
        assert "'-0.0'" not in str([row for row in both if row[0] == rows[-1][0] and name == "groups"]), "not the canonical zero"
        for since, until in (({"t": one}, {"t": rows}), ({"t": rows}, {"t": other})):
            before, after = view.snapshot(since), view.snapshot(until)
            assert view.changes(since, until) == {row: after[row] - before[row] for row in {*before, *after} if after[row] != before[row]}
    assert not view.inexact


def test_extremes_of_nested_doubles_depend_on_the_order_of_rows(spark: SparkSession) -> None:
    query = "SELECT k, max(struct(d, k)) AS m FROM t GROUP BY k"
    assert "-0.0 and 0.0" in View(spark, {"t": "k int, d double"}, query).definition.relation.order_dependent
