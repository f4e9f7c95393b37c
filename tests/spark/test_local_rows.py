"""Weighted rows added up and paired on the driver are what Spark's own operators make of the same rows."""

from __future__ import annotations

import math
import struct
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lake.core.sql import quoted
from lake.spark import local_rows, steps, zset
from lake.spark.jvm.gateway import jvm_of

NAME = "a.b `c`"
VALUES = """SELECT * FROM VALUES
    (1, 'x', 0.0D, 1.50, DATE '2026-01-01', TIMESTAMP '2026-01-01 00:00:01', X'00', true, 1L),
    (1, 'x', 0.0D, 1.50, DATE '2026-01-01', TIMESTAMP '2026-01-01 00:00:01', X'00', true, 2L),
    (1, 'x', -0.0D, 1.50, DATE '2026-01-01', TIMESTAMP '2026-01-01 00:00:01', X'00', true, -1L),
    (1, 'X', double('NaN'), NULL, NULL, NULL, X'', false, 3L),
    (1, 'X', double('NaN'), NULL, NULL, NULL, X'', false, -3L),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, -2L),
    (NULL, '', NULL, 12345678.25, NULL, NULL, NULL, NULL, 1L)
    AS t(id, v, d, m, day, at, b, yes, w)"""


@pytest.fixture
def weighted(spark: SparkSession) -> DataFrame:
    """Weighted rows of all types that are added up on the driver, with duplicates, NULL, NaN and both zeros."""
    return spark.sql(VALUES).withColumn("big", F.expr("CAST(id AS DECIMAL(30, 2)) * 1e18BD")).withColumnRenamed("v", NAME)


def on_driver(frame: DataFrame) -> DataFrame:
    """The frame as rows on the driver."""
    jvm = jvm_of(frame.sparkSession)
    return DataFrame(jvm.own_plans.collected(frame.sparkSession._jsparkSession, frame._jdf, 1000), frame.sparkSession)


def is_on_driver(frame: DataFrame) -> bool:
    return "LocalRelation" in str(frame._jdf.queryExecution().analyzed().getClass().getName())


def counted(frame: DataFrame) -> Counter[Any]:
    """Rows with floats by their bits."""
    return Counter(tuple(struct.pack("d", v) if isinstance(v, float) and not math.isnan(v) else str(v) for v in r) for r in frame.collect())


def by_spark(frame: DataFrame) -> Counter[Any]:
    """The weights of equal rows by Python's own addition, by the bits of the values."""
    found: Counter[Any] = Counter()
    for row, times in counted(frame).items():
        found[row[:-1]] += int(row[-1]) * times
    return Counter({(*row, str(weight)): 1 for row, weight in found.items() if weight})


def test_rows_are_added_up_where_they_are_the_same_bit_by_bit(weighted: DataFrame) -> None:
    rows = weighted.select(*[quoted(c) for c in weighted.columns if c != "w"], "w")
    found = zset.consolidate(on_driver(rows))
    assert is_on_driver(found)
    assert found.columns == rows.columns
    assert counted(found) == by_spark(rows) == counted(zset._consolidated(rows))
    assert sum(counted(found).values()) == 4  # both zeros, the NULLs, the empty string; the NaNs cancel


def test_differences_and_sides(weighted: DataFrame) -> None:
    rows = on_driver(weighted)
    shuffled = rows.select(*reversed([quoted(c) for c in rows.columns]))
    assert zset.difference(rows, shuffled).isEmpty()
    assert is_on_driver(zset.difference(rows, shuffled))
    for sign in (1, -1):
        mine, plain = zset.side(rows, sign), zset.side(weighted.repartition(2), sign)
        assert is_on_driver(mine)
        assert not is_on_driver(plain)
        assert counted(mine) == counted(plain)
    assert zset.side(rows, 1).count() == 7


def test_rows_without_a_weight_count_once(spark: SparkSession) -> None:
    new = on_driver(spark.sql("SELECT id % 3 AS id, 'x' AS v FROM range(9)"))
    old = on_driver(spark.sql("SELECT id % 3 AS id, 'x' AS v, id AS w FROM range(1, 3)"))
    assert {(r.id, r.w) for r in zset.difference(new, old).collect()} == {(0, 3), (1, 2), (2, 1)}


def test_a_negative_weight_is_never_dropped(spark: SparkSession) -> None:
    rows = on_driver(spark.sql("SELECT * FROM VALUES (1, 2L), (2, -1L) AS t(id, w)"))
    with pytest.raises(Exception, match="LAKEJOIN_INTERNAL: negative weight among the rows of a Join"):
        zset.to_rows(rows, "a Join").collect()
    assert zset.to_rows(rows.where("id = 1"), "a Join").collect() == [Row(id=1), Row(id=1)]


@pytest.mark.parametrize(
    "value", ["array(1)", "map(1, 2)", "named_struct('a', 1)", "parse_json('1')", "'a' COLLATE UTF8_LCASE", "INTERVAL '1' MONTH"]
)
def test_other_types_are_left_to_spark(spark: SparkSession, value: str) -> None:
    rows = on_driver(spark.sql(f"SELECT {value} AS v, id AS w FROM range(1, 4)"))
    found = zset.consolidate(rows)
    assert not is_on_driver(found)
    assert [r.w for r in found.select("w").collect()] == [6]


def test_frames_of_other_rows_are_left_to_spark(spark: SparkSession) -> None:
    few, many = on_driver(spark.sql("SELECT 1 AS id, 1L AS w")), spark.range(10).selectExpr("CAST(id AS INT) AS id", "1L AS w")
    assert not is_on_driver(zset.difference(many, few))
    assert zset.difference(many, few).count() == 9
    narrower = on_driver(spark.sql("SELECT 1L AS id, 1L AS w"))  # the types differ: Spark widens
    assert not is_on_driver(zset.difference(few, narrower))
    assert zset.difference(few, narrower).isEmpty()


def test_filtered_and_computed_rows_on_the_driver_stay_there(spark: SparkSession) -> None:
    rows = on_driver(spark.sql("SELECT id, 1L AS w FROM range(6)"))
    found = zset.consolidate(steps.over(rows, steps.where("id > 1"), steps.select(["id % 2 AS odd", "w"])))
    assert is_on_driver(found)
    assert {(r.odd, r.w) for r in found.collect()} == {(0, 2), (1, 2)}


def test_keys_are_equal_where_spark_says_so(spark: SparkSession) -> None:
    """-0.0 and 0.0 are rows apart, and one key: keys of floats are left to Spark."""
    rows = on_driver(spark.sql("SELECT * FROM VALUES (0.0D, 1, -1L), (-0.0D, 1, 1L) AS t(d, id, w)"))
    assert zset.consolidate(rows).count() == 2
    names = ("added", "removed", "row")
    assert local_rows.by_keys(rows, ["d"], ["d", "id"], "w", names) is None
    found = local_rows.by_keys(rows, ["id"], ["d", "id"], "w", names)
    assert found is not None
    [row] = found.collect()
    assert (row.k0, row.added, row.removed, str(row.row.d)) == (1, 1, 1, "-0.0")
    assert local_rows.found(rows, rows, ["d"], ["w"], ["id"], most=False) is None
    assert local_rows.found(rows, zset.weighted(rows.drop("w")), ["d", "id"], ["w"], ["id"], most=True) is not None


def test_few_rows_with_large_weights_are_repeated_by_spark(spark: SparkSession) -> None:
    rows = on_driver(spark.sql("SELECT 'x' AS v, 200000L AS w"))
    assert local_rows.repeated(rows, "w", 1, every=True) is None
    assert zset.side(rows, 1).count() == zset.to_rows(rows, "a Join").count() == 200_000
