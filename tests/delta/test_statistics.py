"""Delta collects statistics of the columns that lookups need, whatever stands before them in the table."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType, _parse_datatype_string

from lake.delta.statistics import statistics_columns
from tests.lakes import TestLake

NUMBERS = ", ".join(f"c{i} INT" for i in range(40))
FIELDS = ", ".join(f"f{i}: INT" for i in range(40))
WIDE = {
    "a key after 40 columns": f"{NUMBERS}, id INT",
    "a boolean before it": f"flag BOOLEAN, {NUMBERS}, id INT",
    "a binary before it": f"b BINARY, {NUMBERS}, id INT",
    "nested types before it": f"a ARRAY<INT>, m MAP<STRING, INT>, s STRUCT<x: INT>, {NUMBERS}, id INT",
    "a variant before it": f"v VARIANT, {NUMBERS}, id INT",
    "a struct of many fields before it": f"s STRUCT<{FIELDS}>, id INT",
    "a struct in a struct before it": f"s STRUCT<t: STRUCT<{FIELDS}>>, id INT",
    "names with commas and spaces": f"`a b, c` INT, {NUMBERS}, id INT",  # with backticks, Delta itself fails to write
}


@pytest.mark.parametrize("kind", WIDE)
def test_a_view_of_a_wide_table_is_built_and_refreshed(lake: TestLake, kind: str) -> None:
    path = lake.path("w")
    properties = "delta.enableChangeDataFeed = true, delta.columnMapping.mode = 'name'"
    lake.spark.sql(f"CREATE TABLE delta.`{path}` ({WIDE[kind]}) USING delta TBLPROPERTIES ({properties})")
    lake.tables["w"] = {"path": "w", "primary_key": ["id"]}
    lake.view("v", "SELECT * FROM w")
    lake.spark.sql(f"INSERT INTO delta.`{path}` (id) VALUES (1), (2), (3)")
    assert lake.refresh("v").mode == "build"
    lake.spark.sql(f"UPDATE delta.`{path}` SET id = 9 WHERE id = 2")
    assert lake.refresh("v").mode == "incremental"
    lake.assert_exact("v")
    statistics = lake.spark.sql(f"SHOW TBLPROPERTIES {lake.of_view('v')} ('delta.dataSkippingStatsColumns')").head()
    assert statistics is not None
    assert statistics["value"].startswith("`id`")


def test_a_binary_key_after_many_columns_has_no_statistics_and_is_built(lake: TestLake) -> None:
    path = lake.path("w")
    lake.spark.sql(f"CREATE TABLE delta.`{path}` ({NUMBERS}, id BINARY) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    lake.tables["w"] = {"path": "w", "primary_key": ["id"]}
    lake.view("v", "SELECT * FROM w")
    lake.spark.sql(f"INSERT INTO delta.`{path}` (id) VALUES (X'01'), (X'02')")
    assert lake.refresh("v").mode == "build"
    lake.spark.sql(f"DELETE FROM delta.`{path}` WHERE id = X'01'")
    assert lake.refresh("v").mode == "incremental"
    lake.assert_exact("v")


def parsed(columns: str) -> StructType:
    found = _parse_datatype_string(columns)
    assert isinstance(found, StructType)
    return found


def test_the_default_is_left_where_it_has_the_key(lake: TestLake) -> None:
    assert statistics_columns(parsed(f"id INT, {NUMBERS}"), ["id"]) == ""
    within = ", ".join(f"f{i}: INT" for i in range(31))
    assert statistics_columns(parsed(f"s STRUCT<{within}>, id INT"), ["id"]) == ""
    assert statistics_columns(parsed(f"s STRUCT<{within}, g: INT>, id INT"), ["id"]) == "`id`"
    assert statistics_columns(parsed(f"{NUMBERS}, b BINARY"), ["b"]) == ""
