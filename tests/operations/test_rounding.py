"""What counts as rounding in a view's sums of floating-point numbers, and that nothing else hides there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lake.core.results import Rounding
from lake.operations.rounding import Tolerance, settled
from lake.spark import sameness
from tests.lakes import TestLake, multiset

ULP = 2.0**-52
"""Of 1.0, and of each number up to 2."""


def rows(spark: SparkSession, values: str) -> DataFrame:
    return spark.sql(f"SELECT g, n, DOUBLE(x) AS x, FLOAT(y) AS y FROM VALUES {values} AS t(g, n, x, y)")


def judged(spark: SparkSession, wanted: str, held: str, ulps: int = 8) -> tuple[int, Rounding]:
    """How many rows still differ, and what was settled."""
    tallied = sameness.tallied(t=rows(spark, wanted), h=rows(spark, held)).where("t != h")
    left, rounding = settled(tallied, {"h": "t"}, Tolerance(["x", "y"], ulps))
    return left.where("t != h").count(), rounding


@pytest.mark.parametrize(
    ("wanted", "held", "expected"),
    [
        ("(1, 2, 1, 1)", f"(1, 2, 1 + {ULP}D, 1)", Rounding(1, 1)),
        ("(1, 2, -1, 1)", f"(1, 2, -1 - 8 * {ULP}D, 1)", Rounding(1, 8)),
        ("(1, 2, 1e300D, 1)", f"(1, 2, 1e300D * (1 + {ULP}D), 1)", Rounding(1, 1)),
        ("(1, 2, 0D, 1)", "(1, 2, -0D, 1)", Rounding(1, 1)),
        ("(1, 2, 4.9e-324D, 1)", "(1, 2, -4.9e-324D, 1)", Rounding(1, 2)),
        ("(1, 2, 1, 1)", "(1, 2, 1, 1 + 1.1920929e-7D)", Rounding(1, 1)),
        (
            "(1, 2, 1, NULL), (2, 2, double('NaN'), 1)",
            f"(1, 2, 1 + {ULP}D, NULL), (2, 2, double('NaN'), 1 + 1.1920929e-7D)",
            Rounding(2, 1),
        ),
        ("(1, 2, 1, 1), (1, 2, 1, 1)", f"(1, 2, 1 + {ULP}D, 1), (1, 2, 1 + 2 * {ULP}D, 1)", Rounding(2, 2)),
        ("(NULL, NULL, 1, 1), (NULL, NULL, 5, 1)", f"(NULL, NULL, 1 + {ULP}D, 1), (NULL, NULL, 5, 1)", Rounding(1, 1)),
    ],
)
def test_a_few_ulps_are_rounding(spark: SparkSession, wanted: str, held: str, expected: Rounding) -> None:
    assert judged(spark, wanted, held) == (0, expected)


@pytest.mark.parametrize(
    ("wanted", "held", "left"),
    [
        ("(1, 2, 1, 1)", f"(1, 2, 1 + 9 * {ULP}D, 1)", 2),
        ("(1, 2, 2, 1)", "(1, 2, -2, 1)", 2),
        ("(1, 2, 1, 1)", "(1, 2, 1, 1 + 2 * 1.1920929e-7D)", 2),
        ("(1, 2, 1, 1)", f"(1, 3, 1 + {ULP}D, 1)", 2),
        ("(1, 2, 1, 1)", f"(2, 2, 1 + {ULP}D, 1)", 2),
        ("(1, 2, 1, 1)", "(1, 2, NULL, 1)", 2),
        ("(1, 2, NULL, 1)", "(1, 2, 0, 1)", 2),
        ("(1, 2, 1, 1)", "(1, 2, double('NaN'), 1)", 2),
        ("(1, 2, 1.7976931348623157e308D, 1)", "(1, 2, double('Infinity'), 1)", 2),
        ("(1, 2, 1, 1)", f"(1, 2, 1, 1), (1, 2, 1 + {ULP}D, 1)", 1),
        ("(1, 2, 1, 1), (1, 2, 1, 1)", f"(1, 2, 1 + {ULP}D, 1)", 2),
        ("(NULL, 2, 1, 1)", f"(1, 2, 1 + {ULP}D, 1)", 2),
    ],
)
def test_nothing_else_is_rounding(spark: SparkSession, wanted: str, held: str, left: int) -> None:
    assert judged(spark, wanted, held) == (left, Rounding())


def test_one_wrong_row_is_found_among_rounded_ones(spark: SparkSession) -> None:
    wanted, held = "(1, 2, 1, 1), (2, 2, 1, 1), (3, 2, 1, 1)", f"(1, 2, 1 + {ULP}D, 1), (2, 2, 1.5, 1), (3, 2, 1 + 3 * {ULP}D, 1)"
    assert judged(spark, wanted, held) == (2, Rounding(2, 3))


VIEW = """SELECT t.g, count(*) AS n, sum(x) AS total, avg(x) AS mean, max(x) AS most, d.label
FROM t LEFT JOIN d ON t.g = d.g GROUP BY t.g, d.label"""
WRONG = {
    2: {"total": "total * (1 + 1e-11D)"},
    3: {"total": "NULL"},
    4: {"mean": "double('NaN')"},
    5: {"n": "n + 1", "total": f"total * (1 + {ULP}D)"},
    6: {"most": f"most * (1 + {ULP}D)"},
    7: {"label": "NULL", "total": f"total * (1 + {ULP}D)"},
    8: {"g": "99", "total": f"total * (1 + {ULP}D)"},
    9: {"total": "mean"},
}


@pytest.fixture(scope="module")
def built(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TestLake:
    """The sums of `t` have no rounding of their own, whichever row comes first: each number is a multiple of 1/64."""
    lake = TestLake(spark, tmp_path_factory.mktemp("rounded"))
    lake.table("t", "SELECT id % 12 AS g, IF(id % 7 = 0, NULL, (id + 3) / 64) AS x FROM range(80) UNION ALL SELECT NULL, 0.1D")
    lake.table("d", "SELECT * FROM VALUES (0, 'a'), (7, 'b'), (NULL, 'c') AS v(g, label)", key=["g"])
    lake.view("v", VIEW)
    lake.refresh("v")
    return lake


def written(lake: TestLake, *texts: str) -> None:
    with lake.as_if_published("v"):
        lake.sql(*texts)


def test_sums_that_are_rounded_otherwise_are_exact_with_a_note_and_nothing_else_is(built: TestLake) -> None:
    written(built, f"UPDATE {{v}} SET total = total * (1 + {ULP}D), mean = mean * (1 + {ULP}D) WHERE g IN (10, 11)")
    found = built.open.verify("v")
    assert (found.exact, found.rounding.rows, bool(found)) == (True, 2, False)
    assert 1 <= found.rounding.ulps <= 2
    assert "exact: 13 rows at d@0, t@0; equal but for rounding: 2 rows, at most" in found.summary
    assert found.to_json()["rounding"] == {"rows": 2, "ulps": found.rounding.ulps}

    built.others = {"quality": {"ulps": 0}}
    built._open = None
    assert len(built.open.verify("v")) == 4
    built.others, built._open = {}, None

    columns = dict.fromkeys(column for values in WRONG.values() for column in values)
    changes = {c: " ".join(f"WHEN {g} THEN {values[c]}" for g, values in WRONG.items() if c in values) for c in columns}
    wrong = ", ".join(f"{c} = CASE g {when} ELSE {c} END" for c, when in changes.items())
    written(built, "DELETE FROM {v} WHERE g = 0", "INSERT INTO {v} SELECT * FROM {v} WHERE g = 1", f"UPDATE {{v}} SET {wrong}")
    found = built.open.verify("v")
    assert (found.missing, found.surplus, found.rounding.rows) == (1 + len(WRONG), 1 + len(WRONG), 2)


QUERIES = {
    "SELECT g, sum(x) AS s, count(x) AS n, avg(i) AS a, max(x) AS m FROM t GROUP BY g": {"s"},
    "SELECT g, round(stddev(x), 2) AS s, sum(i) AS n, sum(i) + 0.5D AS h FROM t GROUP BY g": {"s"},
    "SELECT g, CAST(avg(x) AS DECIMAL(20, 4)) AS d, avg(x) > 1 AS b, CAST(sum(x) AS FLOAT) AS f FROM t GROUP BY g": {"f"},
    "SELECT t.g, t.x, t.x / s.total AS share FROM t JOIN (SELECT g, sum(x) AS total FROM t GROUP BY g) s ON t.g = s.g": {"share"},
    "SELECT t.g, t.x, sum(x) OVER (PARTITION BY g) AS s, max(x) OVER (PARTITION BY g) AS m FROM t": {"s"},
    "SELECT g, x FROM t UNION ALL SELECT g, sum(x) FROM t GROUP BY g": {"x"},
    "SELECT g, sum(x) AS s FROM t GROUP BY ROLLUP (g)": {"s"},
    "SELECT i, max(s) AS most, count(*) AS n FROM (SELECT i, g, sum(x) AS s FROM t GROUP BY i, g) GROUP BY i": {"most"},
    "SELECT g, x - (SELECT avg(x) FROM t) AS off, x FROM t": {"off"},
    "SELECT g, explode(array(s, 1D)) AS e FROM (SELECT g, sum(x) AS s FROM t GROUP BY g)": {"e"},
    "SELECT g, x FROM t WHERE x > (SELECT avg(x) FROM t)": set(),
    "SELECT g, IF(sum(x) > 1, max(x), 0D) AS c, IF(g > 0, avg(x), 0D) AS a FROM t GROUP BY g": {"a"},
    "SELECT DISTINCT g, x FROM t": set(),
}


def test_explain_names_the_columns_that_are_rounded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    lake = TestLake(spark, tmp_path_factory.mktemp("named"))
    lake.table("t", "SELECT id % 2 AS g, CAST(id AS INT) AS i, id / 2 AS x FROM range(4)")
    for i, query in enumerate(QUERIES):
        lake.view(f"v{i}", query)
    found = {query: set(lake.open.explain(f"v{i}").rounded) for i, query in enumerate(QUERIES)}
    assert found == QUERIES
    assert "but for rounding (sums of floating-point numbers): s" in str(lake.open.explain("v0"))


def test_the_sign_of_a_zero_may_differ_only_where_a_maximum_may_have_either(spark: SparkSession, tmp_path: Path) -> None:
    """Group 1 has zeros of both signs, of which Spark takes the first one; 2 and 3 have one. `plain` is no maximum."""
    lake = TestLake(spark, tmp_path)
    lake.table("t", "SELECT * FROM VALUES (1, -0D), (1, 0D), (2, -0D), (3, 0D), (4, 1D) AS v(g, x)")
    lake.view("v", "SELECT g, max(x) AS most, least(g * 0D, 0D) AS plain FROM t GROUP BY g")
    lake.refresh("v")
    assert (1, ("float", "-0.0"), ("float", "0.0")) in lake.truth("v"), "Spark's own answer is no other one: nothing is tested"
    assert (1, ("float", "0.0"), ("float", "0.0")) in multiset(lake.open.read("v"))
    assert lake.open.verify("v").exact
    with lake.as_if_published("v"):
        lake.sql("UPDATE {v} SET most = IF(g IN (2, 3), -most, most), plain = IF(g = 4, -plain, plain)")
    assert len(lake.open.verify("v")) == 6, "not only what may have either zero was allowed"
