"""Files are left out of a lookup only where none of the keys can be in them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lake.delta import listing
from lake.delta.tables import Table
from lake.spark.key_ranges import Ranges, ranges_of
from tests.lakes import TestLake, multiset

LONG = "x" * 40
FILES = {
    "numbers": ("CAST(id AS int)", ["1", "2, 3", "900", "CAST(NULL AS int)", "NULL, 7"]),
    "bigs": ("CAST(id AS bigint)", ["-9007199254740993", "9007199254740993", "0"]),
    "decimals": ("CAST(id AS decimal(20,2))", ["-1.50", "1.25, 99999999999999.99", "NULL"]),
    "strings": ("CAST(id AS string)", ["'a'", f"'{LONG}a', '{LONG}z'", "'é', '\\uD83D\\uDE00'", "''", "NULL"]),
    "dates": ("CAST(id AS date)", ["'1969-12-31'", "'2024-02-29'", "'0001-01-01', NULL"]),
    "times": ("CAST(id AS timestamp)", ["'2024-02-29 00:00:00.123456'", "'1969-01-01'"]),
    "doubles": ("CAST(id AS double)", ["1.5", "'NaN'", "-0.0"]),
}


@pytest.mark.parametrize("mapping", ["none", "name"])
@pytest.mark.parametrize("name", FILES)
def test_no_file_with_a_key_in_it_is_left_out(spark: SparkSession, tmp_path: Path, name: str, mapping: str) -> None:
    cast, files = FILES[name]
    table, column = f"delta.`{tmp_path}/t`", "a.k" if mapping == "name" else "k"
    kind = cast.removeprefix("CAST(id AS ").removesuffix(")")
    spark.sql(f"CREATE TABLE {table} (`{column}` {kind}, file int) USING delta TBLPROPERTIES (delta.columnMapping.mode = '{mapping}')")
    for n, values in enumerate(files):
        spark.sql(f"INSERT INTO {table} SELECT {cast}, {n} FROM VALUES {', '.join(f'({v})' for v in values.split(', '))} t(id)")
    pinned = Table("t", f"{tmp_path}/t", None).log(spark).head()
    everything = pinned.rows().toDF("k", "file")
    for file in range(len(files)):
        keys = everything.where(f"file = {file}").selectExpr("k AS key")
        ranges = ranges_of(keys, local=True)[0]
        expected = multiset(everything.join(keys, on=everything["k"].eqNullSafe(keys["key"]), how="left_semi"))
        found = pinned.rows_among({column: ranges} if ranges is not None else {}).toDF("k", "file")
        assert expected <= multiset(found)
        if name not in ("times", "doubles"):
            assert found.select("file").distinct().count() < len(files)


@pytest.mark.parametrize("kind", ["int", "string", "date", "decimal(5,1)"])
def test_partitions_without_keys_are_left_out(lake: TestLake, spark: SparkSession, kind: str) -> None:
    values = {
        "int": "1, 20, 300",
        "string": "'a', 'b', ''",
        "date": "'2024-01-01', '2024-01-02', '2024-01-03'",
        "decimal(5,1)": "1.5, 2.5, -3",
    }[kind]
    rows = spark.sql(f"SELECT CAST(p AS {kind}) AS p, v FROM (SELECT explode(array({values}, NULL)) AS p, 7 AS v)")
    rows.write.format("delta").partitionBy("p").save(lake.path("t"))
    pinned = Table("t", lake.path("t"), None).log(spark).head()
    for row in pinned.rows().collect():
        keys = pinned.rows().where(F.col("p").eqNullSafe(F.lit(row.p))).select("p")
        found = pinned.rows_among({"p": ranges_of(keys, local=True)[0]})  # type: ignore[dict-item]
        assert multiset(keys) == multiset(found.select("p"))


def test_bounds_without_values_and_empty_keys_leave_files_out(lake: TestLake, spark: SparkSession) -> None:
    lake.table("t", "SELECT id FROM range(10)")
    lake.sql("INSERT INTO {t} SELECT id FROM range(100, 110)")
    pinned = Table("t", lake.path("t"), None).log(spark).head()
    data_type = pinned.schema["id"].dataType
    found = {row[0] for row in pinned.rows_among({"id": Ranges(data_type, ((95, 101),), False)}).collect()}
    assert {100, 101} <= found <= set(range(100, 110))
    assert pinned.rows_among({"id": Ranges(data_type, (), False, ())}).count() == 0
    assert pinned.rows_among({"id": Ranges(data_type, (), True, ())}).count() == 0


def test_a_column_that_spark_pads_is_looked_up_though_its_files_hold_less(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lake.core.cost.SMALL_TABLE", 0)
    feed = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    for name, rows in (("a", ["('ab', 1), ('cd', 2)"]), ("b", ["('ab', 10)", "('cd', 20)"])):
        lake.spark.sql(f"CREATE TABLE delta.`{lake.path(name)}` (c CHAR(5), v INT) USING delta {feed}")
        lake.tables[name] = {"path": name}
        for values in rows:  # not by SQL, which pads as it writes
            lake.spark.sql(f"SELECT * FROM VALUES {values} t(c, v)").write.format("delta").mode("append").save(lake.path(name))
    lake.view("joined", "SELECT a.c, a.v, b.v AS w FROM a JOIN b ON a.c = b.c")
    lake.view("padded", "SELECT a.c, a.v, b.v AS w FROM a LEFT JOIN b ON a.c = b.c")
    lake.view("grouped", "SELECT c, count(DISTINCT v) AS n FROM b GROUP BY c")
    for change in ("INSERT INTO {a} VALUES ('ab', 3)", "UPDATE {b} SET v = v + 1 WHERE c = 'cd'", "DELETE FROM {a} WHERE c = 'ab'"):
        for view in lake.views:
            lake.refresh(view)
        lake.sql(change)
        for view in lake.views:
            assert lake.refresh(view).mode in ("incremental", "none")
            lake.assert_exact(view)


def calls_of(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> int:
    """How many calls over py4j an action makes."""
    client = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    counted, send, own = [0], client.send_command, threading.current_thread()

    def counting(*arguments: object, **named: object) -> object:
        counted[0] += threading.current_thread() is own
        return send(*arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(client, "send_command", counting)
        action()
    return counted[0]


def test_calls_to_the_jvm_do_not_grow_with_the_number_of_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for files in (2, 45):
        spark.range(90).repartition(files).write.format("delta").save(f"{tmp_path}/{files}")
    pins = {files: Table("t", f"{tmp_path}/{files}", None).log(spark).head() for files in (2, 45)}
    assert {files: pinned.files for files, pinned in pins.items()} == {2: 2, 45: 45}
    for action in (
        lambda pinned: pinned.rows_among({}),
        lambda pinned: pinned.listing.files_named({file.path for file in pinned.data_files()}),
        lambda pinned: pinned.listing.files_at({file.path for file in pinned.data_files()}),
    ):
        few, many = (calls_of(spark, monkeypatch, lambda p=pinned, act=action: act(p)) for pinned in pins.values())
        assert many <= few + 10


def test_many_files_are_read_in_batches(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark.range(90).repartition(9).write.format("delta").save(f"{tmp_path}/t")
    log = Table("t", f"{tmp_path}/t", None).log(spark)
    expected = {file.key: file for file in log.head().data_files()}
    monkeypatch.setattr(listing, "MOST_FILES", 8)
    monkeypatch.setattr(listing, "_BATCH", 4)
    sizes, as_json = [], listing.Listing._as_json

    def counted(self: listing.Listing, files: object) -> list[dict[str, object]]:
        records = as_json(self, files)
        sizes.append(len(records))
        return records

    monkeypatch.setattr(listing.Listing, "_as_json", counted)
    assert {file.key: file for file in log.head().data_files()} == expected
    assert sizes == [4, 4, 1, 0]
