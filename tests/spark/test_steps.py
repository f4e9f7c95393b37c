"""Operators as SQL text give what PySpark's own give, for columns of any name, in one call to the JVM."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lake.core.sql import quoted
from lake.spark import steps, zset

NAME = "a.b `c` 'd' ${e}"


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    """Rows with duplicates and NULL; one column has an awkward name."""
    return spark.createDataFrame([(1, "x"), (1, "x"), (2, None), (None, "y")], "id INT, v STRING").withColumnRenamed("v", NAME)


def counted(frame: DataFrame) -> Counter[Any]:
    return Counter(tuple(row) for row in frame.collect())


def test_a_chain_of_operators(rows: DataFrame) -> None:
    found = steps.over(
        rows,
        steps.where("id IS NOT NULL"),
        steps.select(["id + 1 AS next", quoted(NAME)]),
        steps.group(["next % 2 AS odd", quoted(NAME)], ["count(*) AS n"]),
    )
    own = rows.where("id IS NOT NULL").select((F.col("id") + 1).alias("next"), F.col(quoted(NAME)))
    own = own.groupBy((F.col("next") % 2).alias("odd"), F.col(quoted(NAME))).agg(F.count("*").alias("n"))
    assert found.columns == own.columns == ["odd", NAME, "n"]
    assert counted(found) == counted(own) == Counter({(0, "x", 2): 1, (1, None, 1): 1})


def test_one_group_of_all_rows_is_there_without_rows(rows: DataFrame) -> None:
    assert counted(steps.over(rows, steps.where("false"), steps.group([], ["count(*) AS n", "sum(id) AS s"]))) == Counter({(0, None): 1})


def test_what_spark_refuses_is_an_error_of_its_own(rows: DataFrame) -> None:
    with pytest.raises(AnalysisException, match="nothing"):
        steps.over(rows, steps.select(["nothing"]))


@pytest.mark.parametrize("few", [True, False])
def test_a_join(rows: DataFrame, few: bool) -> None:
    right = steps.over(rows, steps.select(["id AS other", f"{quoted(NAME)} AS text"]))
    assert counted(steps.joined(rows, right, f"id <=> other AND {quoted(NAME)} = text", few)) == Counter(
        {(1, "x", 1, "x"): 4, (None, "y", None, "y"): 1}
    )


def test_weighted_rows_are_added_by_the_names_of_their_columns(rows: DataFrame) -> None:
    other = rows.select(F.lit(-2).cast("long").alias(zset.WEIGHT), quoted(NAME), "id").limit(1)
    found = steps.added([rows, other, other], "++-")
    assert found.columns == ["id", NAME, zset.WEIGHT]
    assert counted(found) == Counter({(1, "x", 1): 2, (2, None, 1): 1, (None, "y", 1): 1, (1, "x", -2): 1, (1, "x", 2): 1})
    assert counted(zset.consolidate(steps.added([rows, rows], "+-"))) == Counter()


def test_rows_of_other_columns_are_not_added(rows: DataFrame) -> None:
    with pytest.raises(Exception, match="other columns"):
        steps.added([rows.select("id"), rows], "++")
    with pytest.raises(Exception, match="no column"):
        steps.added([rows, rows.select("id")], "++")


def test_several_operators_are_one_call(rows: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    steps.over(rows)  # the class is loaded
    calls, send = list[str](), ClientServerConnection.send_command

    def sent(self: Any, command: str, *more: Any) -> Any:
        calls.append(command)
        return send(self, command, *more)

    monkeypatch.setattr(ClientServerConnection, "send_command", sent)
    steps.over(rows, steps.where("id > 0"), steps.select([f"id + {i} AS c{i}" for i in range(50)]), steps.group(["c0"], ["max(c1) AS c1"]))
    assert sum("over" in command for command in calls) == 1
    assert len([command for command in calls if not command.startswith("m\n")]) <= 2  # the session, and the steps
