"""Whether two multisets of rows are the same, by sums of hashes: what those must not take for the same."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lake.core.snapshots import Snapshot, Version
from lake.errors import ExpiredError, QueryError
from lake.operations import verify
from lake.operations.verify import Share
from lake.spark.sameness import same_rows
from tests.lakes import TestLake, multiset


def rows(spark: SparkSession, values: str) -> DataFrame:
    return spark.sql(f"SELECT * FROM VALUES {values} AS t(a, b)")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(1, NULL)", "(NULL, 1)"),
        ("(1, 2), (3, 4)", "(1, 4), (3, 2)"),
        ("(1, 2), (1, 2)", "(1, 2)"),
        ("(1, 2), (1, 2), (3, 4)", "(1, 2), (3, 4), (3, 4)"),
        ("('a', 'bc')", "('ab', 'c')"),
        ("('', 'x')", "(NULL, 'x')"),
        ("(0D, 1)", "(-0D, 1)"),
        ("(1.5D, 1)", "(1.25D, 1)"),
        ("(X'00', 1)", "(X'0000', 1)"),
        ("(DATE'2026-01-01', 1)", "(DATE'2026-01-02', 1)"),
        ("(CAST(NULL AS INT), CAST(NULL AS INT))", "(CAST(NULL AS INT), 0)"),
    ],
)
def test_other_rows_are_told_apart(spark: SparkSession, one: str, other: str) -> None:
    assert same_rows(rows(spark, one), rows(spark, other)) is None


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        ("(1, NULL), (2, 3), (1, NULL)", "(2, 3), (1, NULL), (1, NULL)", 3),
        ("(double('NaN'), 'x'), (-0D, NULL)", "(-0D, NULL), (double('NaN'), 'x')", 2),
    ],
)
def test_the_same_rows_in_another_order_are_the_same(spark: SparkSession, one: str, other: str, count: int) -> None:
    assert same_rows(rows(spark, one), rows(spark, other).repartition(2)) == count


def test_rows_with_nested_values_are_compared_in_the_same_way(spark: SparkSession) -> None:
    assert same_rows(rows(spark, "(array(1, NULL), 1)"), rows(spark, "(array(1, NULL), 1)")) == 1
    assert same_rows(rows(spark, "(array(1, NULL), 1)"), rows(spark, "(array(NULL, 1), 1)")) is None


def test_each_row_is_in_one_share_whatever_its_key(spark: SparkSession) -> None:
    frame = rows(spark, "(1, NULL), (NULL, 'x'), (NULL, 'x'), (2, 'y'), (3, 'z'), (4, NULL)")
    parts = [multiset(Share(part, 3).of_rows(frame, ["a"])) for part in (1, 2, 3)]
    assert sum(parts[1:], parts[0]) == multiset(frame)


def test_whatever_spark_fails_with_is_an_error_of_that_view_alone(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table("a", "SELECT * FROM VALUES (1, 'x'), (2, 'y') t(id, s)", key=["id"])
    lake.view("v", "SELECT id, s FROM a")
    lake.refresh("v")

    def failing(*_: object) -> DataFrame:
        return lake.spark.sql("SELECT raise_error('broken') AS id, 'x' AS s")

    monkeypatch.setattr(verify, "from_scratch", failing)
    with pytest.raises(QueryError, match=r"Verifying view 'v' failed: \[USER_RAISED_EXCEPTION\]"):
        lake.open.verify("v")


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (PySparkException("[FAILED_READ_FILE.FILE_NOT_EXIST] part-0.parquet"), ExpiredError),
        (PySparkException("java.io.FileNotFoundException: part-0.parquet"), ExpiredError),
        (PySparkException("[DIVIDE_BY_ZERO] Division by zero"), PySparkException),
        (QueryError("already worded"), QueryError),
    ],
)
def test_only_a_missing_file_means_that_it_cannot_be_known(error: Exception, wanted: type[Exception]) -> None:
    assert type(verify.unreadable("v", Snapshot({"a": Version("x", 0)}), error)) is wanted
