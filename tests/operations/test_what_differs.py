"""Rows that differ, paired by key: counted exactly as the multisets differ, by column, for all types, with few of them on the driver."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, SparkSession

from lake.core.pairs import Paired
from lake.core.results import Differences
from lake.core.snapshots import Snapshot
from lake.operations.rounding import NONE, Tolerance
from lake.operations.verify import Judgement, Share, Sides, compared


def differences(wanted: DataFrame, held: DataFrame, key: tuple[str, ...] = ("k",), allowed: Tolerance = NONE) -> Differences:
    return compared(Sides("v", Snapshot({}), wanted, held, key), Share(), Judgement(lambda: allowed, lambda: None))


def rows(spark: SparkSession, values: str, kind: str = "INT") -> DataFrame:
    return spark.sql(f"SELECT CAST(k AS {kind}) AS k, x, s FROM VALUES {values} AS t(k, x, s)")


def counted(paired: Paired | None) -> tuple[int, int, int, Mapping[str, int]]:
    assert paired is not None
    return paired.missing, paired.surplus, paired.different, paired.by_column


@pytest.mark.parametrize(
    ("wanted", "held", "counts"),
    [
        ("(1, 10, 'a'), (2, 20, 'b'), (4, 40, 'd')", "(1, 10, 'a'), (2, 21, 'z'), (5, 50, 'e')", (1, 1, 1, {"x": 1, "s": 1})),
        ("(NULL, 1, 'a'), (1, 1, NULL)", "(NULL, 2, 'a'), (1, 1, 'a')", (0, 0, 2, {"x": 1, "s": 1})),
        ("(1, 1, 'a'), (1, 1, 'a'), (1, 2, 'a')", "(1, 3, 'b'), (2, 9, 'c')", (2, 1, 1, {"x": 1, "s": 1})),
        ("(1, 1, 'a')", "(1, 1, 'a'), (1, 1, 'a'), (1, 1, 'a')", (0, 2, 0, {})),
        ("(1, 1, 'a')", "(1, 2, 'a'), (1, 2, 'a'), (1, 3, 'a')", (0, 2, 1, {"x": 1})),
    ],
    ids=["each kind", "NULL keys and values", "duplicates of the query", "duplicates of the view", "a key that is broken"],
)
def test_rows_of_one_key_are_paired(spark: SparkSession, wanted: str, held: str, counts: tuple[int, int, int, Mapping[str, int]]) -> None:
    found = differences(rows(spark, wanted), rows(spark, held))
    assert counted(found.paired) == counts
    assert (found.missing, found.surplus) == (counts[0] + counts[2], counts[1] + counts[2])


def test_keys_are_the_same_bit_by_bit(spark: SparkSession) -> None:
    """NaN is the key NaN; -0.0 is another key than 0.0."""
    sides = [
        rows(spark, values, "DOUBLE") for values in ("(double('NaN'), 1, 'a'), (-0D, 1, 'a')", "(double('NaN'), 2, 'a'), (0D, 1, 'a')")
    ]
    assert counted(differences(*sides).paired) == (1, 1, 1, {"x": 1})


VALUES = {
    "a.b": ("1", "3"),
    "a`b": ("'x'", "'X'"),
    "with space": ("X'00'", "X'0000'"),
    "struct": ("named_struct('p', 1, 'q.r', array(1, NULL))", "named_struct('p', 1, 'q.r', array(1, 0))"),
    "array": ("array(1D, double('NaN'))", "array(double('NaN'), 1D)"),
    "map": ("map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)"),
    "variant": ("parse_json('{\"a\": 1}')", 'parse_json(\'{"a": "1"}\')'),
    "zero": ("0D", "-0D"),
    "nan": ("double('NaN')", "CAST(NULL AS DOUBLE)"),
    "decimal": ("CAST(1.10 AS DECIMAL(38, 2))", "CAST(1.25 AS DECIMAL(38, 2))"),
}
"""By column, a value and another one."""


def each_type(spark: SparkSession, other: int) -> DataFrame:
    """A row for each column, which has the other value (`other`: 1) in that column only."""

    def row(number: int) -> str:
        quoted = {name: f"`{name.replace('`', '``')}`" for name in VALUES}
        values = [f"{both[other if place == number else 0]} AS {quoted[name]}" for place, (name, both) in enumerate(VALUES.items())]
        return f"SELECT named_struct('n', {number}, 'z', -0D) AS `k.``1`, {', '.join(values)}"

    return spark.sql(" UNION ALL ".join(map(row, range(len(VALUES)))))


def test_columns_of_all_types_and_names_are_told_apart(spark: SparkSession) -> None:
    found = differences(each_type(spark, 0), each_type(spark, 1), ("k.`1",)).paired
    assert counted(found) == (0, 0, len(VALUES), dict.fromkeys(VALUES, 1))
    assert found is not None
    assert {type(pair.differs.get("decimal")) for pair in found.samples} <= {Decimal, type(None)}
    for pair in found.samples:
        assert pair.query is not None
        assert pair.view is not None
        assert (len(pair.differs), list(pair.query), pair.query["k.`1"]) == (1, ["k.`1", *VALUES], pair.view["k.`1"])


def test_the_size_of_a_difference_is_the_views_value_minus_the_querys(spark: SparkSession) -> None:
    found = differences(rows(spark, "(1, 10, 'a'), (2, 5, 'b')"), rows(spark, "(1, 98, 'z'), (3, 5, 'b')")).paired
    assert found is not None
    assert [pair.text(["k"]) for pair in found.samples] == [
        "different: k=1: x 10 in the query, 98 in the view (+88); s 'a' in the query, 'z' in the view",
        "missing: k=2: x=5, s='b'",
        "surplus: k=3: x=5, s='b'",
    ]


def test_a_column_that_is_only_rounded_otherwise_is_not_named(spark: SparkSession) -> None:
    sides = (rows(spark, values) for values in ("(1, 1D, 'a'), (2, 1D, 'a')", "(1, 1D + 2.2e-16D, 'b'), (2, 1.5D, 'b')"))
    assert counted(differences(*sides, allowed=Tolerance(["x"], 8)).paired) == (0, 0, 2, {"x": 1, "s": 2})


def test_rows_of_a_view_without_a_key_are_not_paired(spark: SparkSession) -> None:
    found = differences(rows(spark, "(1, 1, 'a')"), rows(spark, "(1, 2, 'a')"), ())
    assert (found.paired, found.missing, found.surplus, len(found.samples)) == (None, 1, 1, 2)


def test_many_rows_are_counted_and_few_are_read(spark: SparkSession) -> None:
    wanted = spark.sql("SELECT id AS k, id % 7 AS x, 'a' AS s FROM range(0, 3000)")
    held = spark.sql("SELECT id AS k, id % 7 + 1 AS x, IF(id % 2 = 0, 'a', 'b') AS s FROM range(1000, 4000)")
    found = differences(wanted, held)
    assert counted(found.paired) == (1000, 1000, 2000, {"x": 2000, "s": 1000})
    assert found.paired is not None
    assert sorted(pair.kind for pair in found.paired.samples) == ["different"] * 5 + ["missing"] * 5 + ["surplus"] * 5


def test_where_nothing_differs_each_side_is_read_once_and_nothing_else_runs(spark: SparkSession) -> None:
    same, other = (rows(spark, f"(1, {x}, 'a'), (NULL, 2, 'b')") for x in (1, 9))
    assert _jobs(spark, "same", same, same) == 2
    assert _jobs(spark, "other", same, other) > 2, "jobs are not counted"


def _jobs(spark: SparkSession, group: str, wanted: DataFrame, held: DataFrame) -> int:
    """How many Spark jobs a comparison runs, in a thread of its own, whose jobs have a group of their own."""

    def work() -> None:
        spark.sparkContext.setJobGroup(group, group)
        differences(wanted, held)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
