"""Whatever happens to a source table, the view is exact after the next refresh, or nothing is written and the error says what to do."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lake.views.registry as open_views
from lake import open_lake
from lake.delta.log import Log
from lake.errors import DefinitionChangedError, DefinitionError, ExpiredError, SourceError
from lake.views.inputs import Inputs
from tests.lakes import TestLake, multiset

pytestmark = pytest.mark.slow

A = "SELECT * FROM VALUES (1, 'x', 10), (1, 'x', 10), (2, 'y', 20), (NULL, 'n', 0), (3, 'z', 5) t(id, s, v)"
B = "SELECT * FROM VALUES (1, 100), (2, 200), (2, 201), (NULL, 0), (3, 300) t(id, w)"
JOIN = "SELECT a.id, a.s, a.v, b.w FROM a JOIN b ON a.id = b.id"


@pytest.fixture
def joined(lake: TestLake) -> TestLake:
    """Two tables with duplicates and NULL keys, and a join of them that has been built."""
    lake.table("a", A)
    lake.table("b", B)
    lake.view("j", JOIN)
    assert lake.refresh("j").mode == "build"
    return lake


def test_many_commits_in_one_interval_on_both_sides(joined: TestLake) -> None:
    joined.sql("UPDATE {a} SET id = 2 WHERE id = 3")
    joined.sql("DELETE FROM {a} WHERE id = 1")
    joined.sql("INSERT INTO {a} VALUES (1, 'x', 10), (1, 'x', 10), (NULL, 'n', 0)")
    joined.sql("UPDATE {b} SET w = w + 1 WHERE id = 2")
    joined.sql("UPDATE {b} SET w = w - 1 WHERE id = 2")
    joined.sql("DELETE FROM {b} WHERE id = 3")
    result = joined.refresh("j")
    assert result.mode == "incremental"
    joined.assert_exact("j")
    again = joined.refresh("j")
    assert (again.mode, again.rows_inserted, again.rows_deleted) == ("none", 0, 0)


def test_changes_that_undo_each_other_advance_the_snapshot_and_write_no_row(joined: TestLake) -> None:
    joined.sql("INSERT INTO {a} VALUES (2, 'new', 1)")
    joined.sql("DELETE FROM {a} WHERE s = 'new'")
    result = joined.refresh("j")
    assert (result.mode, result.rows_inserted, result.rows_deleted) == ("incremental", 0, 0)
    assert result.until["a"] == 2
    assert joined.refresh("j").mode == "none"
    joined.assert_exact("j")


def test_optimize_advances_the_snapshot(joined: TestLake) -> None:
    joined.sql("INSERT INTO {a} VALUES (2, 'more', 1)")
    joined.sql("OPTIMIZE {a}")
    joined.sql("OPTIMIZE {b}")
    joined.refresh("j")
    joined.sql("OPTIMIZE {a}")
    joined.refresh("j")
    assert joined.refresh("j").mode == "none"
    joined.assert_exact("j")


def test_restore_insert_overwrite_and_a_merge_that_changes_nothing(joined: TestLake) -> None:
    joined.sql("DELETE FROM {b} WHERE id = 2")
    joined.refresh("j")
    joined.sql("RESTORE TABLE {b} TO VERSION AS OF 0")
    joined.sql("INSERT OVERWRITE {a} SELECT id, s, v FROM {a} WHERE v > 0")
    joined.sql("MERGE INTO {a} t USING (SELECT DISTINCT id FROM {a}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v")
    joined.refresh("j")
    joined.assert_exact("j")


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("feed", ["true", "false"])
def test_with_and_without_feed_and_deletion_vectors(lake: TestLake, feed: str, vectors: str) -> None:
    properties = {"delta__enableChangeDataFeed": feed, "delta__enableDeletionVectors": vectors}
    lake.table("a", A, **properties)
    lake.table("b", B, **properties)
    lake.view("j", JOIN)
    lake.refresh("j")
    lake.sql("DELETE FROM {a} WHERE s = 'y'")
    lake.sql("UPDATE {b} SET id = 1 WHERE w = 300")
    lake.sql("INSERT INTO {a} VALUES (2, 'again', 7)")
    lake.sql("OPTIMIZE {a}")
    lake.sql("DELETE FROM {a} WHERE s = 'again'")
    assert lake.refresh("j").mode == "incremental"
    lake.assert_exact("j")
    assert lake.open.status("j")[0].way == ("change data feed or data files" if feed == "true" else "data files")


def test_feed_that_begins_too_late(lake: TestLake) -> None:
    lake.table("a", A, delta__enableChangeDataFeed="false")
    lake.table("b", B)
    lake.view("j", JOIN)
    lake.refresh("j")
    lake.sql("DELETE FROM {a} WHERE id = 2")
    lake.sql("ALTER TABLE {a} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    lake.sql("INSERT INTO {a} VALUES (3, 'late', 1)")
    lake.refresh("j")
    lake.assert_exact("j")


def test_added_column_in_the_middle_of_an_interval(joined: TestLake) -> None:
    joined.sql("INSERT INTO {a} VALUES (2, 'before', 1)")
    joined.sql("ALTER TABLE {a} ADD COLUMN extra string")
    joined.sql("INSERT INTO {a} VALUES (2, 'after', 1, 'e')")
    joined.sql("DELETE FROM {a} WHERE s = 'x'")
    joined.refresh("j")
    joined.assert_exact("j")


def test_a_column_that_is_not_read_may_come(lake: TestLake) -> None:
    """Spark leaves it out in a step of its own, where before there was none: by a query of all columns, and below a union."""
    lake.table("a", A)
    lake.table("b", B)
    lake.view("all", "SELECT id, s, v FROM a")
    lake.view("both", "SELECT id, v FROM a UNION ALL SELECT w, id FROM b")
    for view in lake.views:
        lake.refresh(view)
    lake.sql("ALTER TABLE {a} ADD COLUMN extra int", "INSERT INTO {a} VALUES (7, 'new', 1, 2)", "ALTER TABLE {b} ADD COLUMN extra int")
    for view in lake.views:
        assert lake.refresh(view).mode == "incremental"
        lake.assert_exact(view)


def test_a_column_widened_and_one_renamed_in_the_middle_of_an_interval(lake: TestLake) -> None:
    """No feed can be read across either: the data files are."""
    lake.table("a", A, delta__enableTypeWidening="true")
    lake.table("b", B, delta__enableChangeDataFeed="false")
    lake.view("j", "SELECT a.id, a.s, a.v, b.id AS other FROM a JOIN b ON a.id = b.id")
    lake.sql("ALTER TABLE {b} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true')")
    lake.view("k", "SELECT s, id FROM a")
    lake.refresh("j")
    lake.refresh("k")
    lake.sql("DELETE FROM {a} WHERE s = 'z'")
    lake.sql("ALTER TABLE {a} ALTER COLUMN v TYPE BIGINT")
    lake.sql("INSERT INTO {a} VALUES (2, 'new', 5000000000)")
    lake.sql("DELETE FROM {b} WHERE w = 201")
    lake.sql("ALTER TABLE {b} RENAME COLUMN w TO renamed")
    lake.sql("INSERT INTO {b} VALUES (1, 5), (2, 6)")
    assert lake.refresh("k").mode == "incremental"
    lake.assert_exact("k")
    with pytest.raises(DefinitionChangedError, match="lakejoin rebuild j"):  # its column v is wider now
        lake.refresh("j")
    lake.open.rebuild("j")
    lake.assert_exact("j")


DEFINED_ANEW = {
    "dropped and added again": ["DROP COLUMN w", "ADD COLUMN w int"],
    "names exchanged": ["RENAME COLUMN w TO other", "RENAME COLUMN unread TO w", "RENAME COLUMN other TO unread"],
    "column mapping given up": ["SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')"],
}
REPLACED = {
    "partitioned": "PARTITIONED BY (id) AS SELECT * FROM VALUES (1, 100), (2, 5), (NULL, 1) t(id, w)",
    "with column mapping": "TBLPROPERTIES ('delta.columnMapping.mode' = 'name') AS SELECT * FROM VALUES (1, 100), (2, 5), (2, 5) t(id, w)",
}


@pytest.mark.parametrize("how", [*DEFINED_ANEW, *REPLACED])
def test_a_source_defined_anew_is_no_ordinary_change(lake: TestLake, how: str) -> None:
    """Its old files can't be read by its new definition, or hold other rows by it, though none came or went."""
    mapping = {"delta__columnMapping__mode": "name"} if how in DEFINED_ANEW else {}
    lake.table("a", A)
    lake.table("b", f"SELECT *, w * 10 AS unread FROM ({B})", delta__enableChangeDataFeed="false", **mapping)
    lake.view("j", "SELECT a.id, a.s, a.v, CAST(b.w AS STRING) AS w FROM a JOIN b ON a.id = b.id", realtime=True)
    lake.view("strict", "SELECT a.s, b.id FROM a JOIN b ON a.id = b.id", refresh_mode="incremental")
    eventual = lake.open.on("eventual")
    for refresh in (lake.refresh, eventual.refresh):
        refresh("j")
    lake.refresh("strict")
    lake.sql("DELETE FROM {b} WHERE id = 3")
    for change in DEFINED_ANEW.get(how, []):
        lake.sql(f"ALTER TABLE {{b}} {change}")
    if how in REPLACED:
        lake.sql(f"CREATE OR REPLACE TABLE {{b}} USING delta {REPLACED[how]}")
    for refresh in (lake.refresh, eventual.refresh):
        result = refresh("j")
        assert (result.mode, "b was redefined" in result.reason) == ("recompute", True)
    lake.assert_exact("j")
    assert eventual.verify("j").exact
    with pytest.raises(DefinitionError, match=r"b was redefined.*lakejoin rebuild strict"):
        lake.refresh("strict")
    lake.open.rebuild("strict")
    lake.assert_exact("strict")
    lake.sql("INSERT INTO {b} (id, w) VALUES (1, 8), (2, 9)")
    lake.sql("DELETE FROM {b} WHERE id = 2")
    for refresh in (lake.refresh, eventual.refresh):
        assert refresh("j").mode == "incremental"
    lake.assert_exact("j")
    assert eventual.verify("j").exact


def test_quiet_table_whose_version_is_older_than_its_retention(lake: TestLake) -> None:
    """b was last written long ago: its version can no longer be travelled to, and is never read that way."""
    lake.table("a", A)
    lake.table("b", B, delta__deletedFileRetentionDuration="interval 0 seconds")
    lake.view("j", JOIN)
    lake.refresh("j")
    lake.sql("DELETE FROM {a} WHERE id = 1")
    lake.refresh("j")
    lake.assert_exact("j")
    lake.sql("UPDATE {b} SET w = w + 1")
    lake.refresh("j")
    lake.assert_exact("j")


def test_table_dropped_and_made_again_is_refused_until_rebuilt(joined: TestLake) -> None:
    before = multiset(joined.open.read("j"))
    shutil.rmtree(joined.path("b"))
    for rows in (B, "SELECT 2 AS id, 5 AS w", "SELECT 3 AS id, 6 AS w"):
        options = {"delta.enableChangeDataFeed": "true"}
        joined.spark.sql(rows).write.format("delta").options(**options).mode("append").save(joined.path("b"))
    with pytest.raises(SourceError, match=r"b .* was replaced.*lakejoin rebuild"):
        joined.refresh("j")
    joined.sql("ALTER TABLE {b} SET TBLPROPERTIES ('a.note' = 'its commit names the new table')")
    with pytest.raises(SourceError, match=r"b .* was replaced.*lakejoin rebuild"):
        joined.refresh("j")
    assert multiset(joined.open.read("j")) == before
    joined.open.rebuild("j")
    joined.assert_exact("j")


def put_back(joined: TestLake, *read: str) -> None:
    """Some statements change b, the view reads them, and a backup of b from before them is put back."""
    shutil.copytree(joined.path("b"), joined.path("backup"))
    joined.sql(*read)
    joined.refresh("j")
    shutil.rmtree(joined.path("b"))
    shutil.copytree(joined.path("backup"), joined.path("b"))
    joined.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def assert_rebuilt_it_goes_on(joined: TestLake) -> None:
    joined.open.rebuild("j")
    joined.assert_exact("j")
    joined.sql("INSERT INTO {b} VALUES (1, 8)")
    assert joined.refresh("j").mode == "incremental"
    joined.assert_exact("j")


@pytest.mark.parametrize("newer", [0, 1, 2, 4])
def test_a_backup_put_back_is_refused_until_rebuilt(joined: TestLake, newer: int) -> None:
    """It is the same table by its id; its commits after the backup are others, however many there are."""
    put_back(joined, "INSERT INTO {b} VALUES (1, 61)", "DELETE FROM {b} WHERE id = 2")
    for n in range(newer):
        joined.sql(f"INSERT INTO {{b}} VALUES (3, {n})")
    before = multiset(joined.open.read("j"))
    if newer == 2:  # as many versions as were read: the next commit shows it
        joined.refresh("j")
        joined.sql("INSERT INTO {b} VALUES (3, 7)")
    with pytest.raises(SourceError, match=r"b .* (was restored from a backup|has a different history).*lakejoin rebuild"):
        joined.refresh("j")
    assert multiset(joined.open.read("j")) == before
    assert_rebuilt_it_goes_on(joined)


@pytest.mark.parametrize("moves", ["other", "id", "none"])
def test_a_backup_put_back_with_as_many_commits_is_refused_whatever_moves(joined: TestLake, moves: str) -> None:
    """Nothing is mixed with what was read of the other history; a rebuild has the new one, and is gone on from."""
    put_back(joined, "DELETE FROM {b} WHERE id = 2")
    joined.sql("INSERT INTO {b} VALUES (3, 5)")
    if moves == "other":
        joined.sql("INSERT INTO {a} VALUES (2, 'q', 7)")
    elif moves == "id":
        joined.sql("CREATE OR REPLACE TABLE {b} USING delta AS SELECT 2 AS id, 77 AS w")
    if moves != "none":
        with pytest.raises(SourceError, match=r"b .* has a different history.*lakejoin rebuild"):
            joined.refresh("j")
    assert_rebuilt_it_goes_on(joined)


def test_a_refresh_that_another_one_overtook_has_nothing_to_do(joined: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has looked for the newest versions before the other one, and finds what that one published: newer than all it knows."""
    original = open_views.capture

    def overtaken(*arguments: Any) -> Inputs:
        inputs = original(*arguments)
        monkeypatch.setattr(open_views, "capture", original)
        joined.sql("INSERT INTO {b} VALUES (2, 9)")
        assert open_lake(joined.config, spark=joined.spark).refresh("j").mode == "incremental"
        return inputs

    monkeypatch.setattr(open_views, "capture", overtaken)
    assert joined.refresh("j").mode == "none"
    joined.assert_exact("j")


def test_a_session_that_passes_over_missing_files_does_not_make_views_of_what_is_left(lake: TestLake) -> None:
    lake.table("a", A)
    lake.view("v", "SELECT id, v FROM a")
    next((lake.folder / "a").glob("*.parquet")).unlink()
    lake.spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(ExpiredError, match="a file that no longer exists"):
            lake.refresh("v")
    finally:
        lake.spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_create_or_replace_within_the_interval_is_an_ordinary_change(joined: TestLake) -> None:
    replacement = "CREATE OR REPLACE TABLE {b} USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true) AS SELECT 2 AS id, 77 AS w"
    joined.sql(replacement)
    joined.sql("INSERT INTO {b} VALUES (3, 78)")
    joined.refresh("j")
    joined.assert_exact("j")


def test_commits_that_are_gone_are_an_error_that_names_them(joined: TestLake) -> None:
    for n in range(3):
        joined.sql(f"INSERT INTO {{a}} VALUES (2, 'n{n}', {n})")
    log = joined.folder / "a" / "_delta_log"
    joined.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    joined.spark.sql(f"SELECT count(*) FROM delta.`{joined.path('a')}`").collect()
    Log(joined.spark, joined.path("a")).java.checkpoint()
    for number in (0, 1):
        for file in (*log.glob(f"{number:020}.json"), *log.glob(f".{number:020}.json.crc"), *log.glob(f"{number:020}.crc")):
            file.unlink()
    joined.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    before = multiset(joined.open.read("j"))
    with pytest.raises(ExpiredError, match=r"a .*versions 1 to 3 can no longer be read.*lakejoin rebuild"):
        joined.refresh("j")
    assert multiset(joined.open.read("j")) == before
    joined.open.rebuild("j")
    joined.assert_exact("j")


def test_a_source_that_commits_during_a_refresh_stays_at_the_version_that_was_planned(
    joined: TestLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined.sql("INSERT INTO {a} VALUES (2, 'planned', 1)")
    import lake.refresh.decide as refreshing

    original = refreshing.plan

    def plan_and_commit(*args: object, **kwargs: object) -> object:
        decided = original(*args, **kwargs)  # type: ignore[arg-type]
        monkeypatch.setattr(refreshing, "plan", original)
        joined.sql("INSERT INTO {b} VALUES (2, 999)")
        joined.sql("DELETE FROM {a} WHERE id = 1")
        return decided

    monkeypatch.setattr(refreshing, "plan", plan_and_commit)
    result = joined.refresh("j")
    assert result.until["b"] == 0
    assert joined.open.verify("j").exact
    joined.refresh("j")
    joined.assert_exact("j")


def test_by_catalog_name(spark: SparkSession, lake: TestLake) -> None:
    spark.sql("CREATE SCHEMA IF NOT EXISTS shop")
    for name in ("shop.orders", "shop.named"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql("CREATE TABLE shop.orders (id int, v int) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    spark.sql("INSERT INTO shop.orders VALUES (1, 1), (1, 1), (2, 2)")
    from lake import open_lake

    view = {"named": {"query": "SELECT id, v FROM orders WHERE v > 0"}}
    opened = open_lake({"target": "spark_catalog.shop", "tables": {"orders": {"name": "shop.orders"}}, "views": view}, spark=spark)
    opened.refresh("named")
    spark.sql("UPDATE shop.orders SET v = 5 WHERE id = 2")
    assert opened.refresh("named").mode == "incremental"
    assert opened.verify("named").exact
    assert multiset(opened.read("named")) == {(1, 1): 2, (2, 5): 1}


def test_until_a_version_and_until_a_time(joined: TestLake) -> None:
    joined.sql("INSERT INTO {a} VALUES (2, 'one', 1)")
    joined.sql("INSERT INTO {a} VALUES (2, 'two', 1)")
    assert joined.refresh("j", until={"a": 1}).until["a"] == 1
    assert joined.open.verify("j").exact
    assert joined.refresh("j", until={"a": 0}).mode == "none"
    with pytest.raises(SourceError, match="a has no version 99: its newest is 2"):
        joined.refresh("j", until={"a": 99})
    assert joined.refresh("j", until="2100-01-01T00:00:00").until["a"] == 2
    joined.assert_exact("j")


def test_not_null_that_is_dropped_is_no_other_query(lake: TestLake) -> None:
    for name in ("a", "b"):
        lake.spark.sql(f"CREATE TABLE delta.`{lake.path(name)}` (id INT NOT NULL, s STRING) USING delta")
        lake.tables[name] = {"path": name}
        lake.sql(f"INSERT INTO {{{name}}} VALUES (1, 'x'), (2, 'y')")
    lake.view("j", "SELECT a.id, a.s, b.s AS t FROM a JOIN b ON a.id = b.id")
    lake.view("c", "SELECT coalesce(id, 0) AS id, s FROM a WHERE id NOT IN (SELECT id FROM b WHERE s = 'y')")
    lake.open.refresh_all()
    lake.sql("ALTER TABLE {a} ALTER COLUMN id DROP NOT NULL", "INSERT INTO {a} VALUES (NULL, 'n'), (2, 'z')")
    lake.sql("ALTER TABLE {b} ALTER COLUMN id DROP NOT NULL", "INSERT INTO {b} VALUES (NULL, 'x')")
    assert [result.mode for result in lake.open.refresh_all()] == ["incremental", "incremental"]
    for view in lake.views:
        lake.assert_exact(view)


def test_a_type_that_goes_and_comes_back_is_another_definition(lake: TestLake) -> None:
    """What was written in between, and compacted, is of the other type."""
    lake.table("a", "SELECT id, CAST(id AS INT) AS w FROM range(4)", delta__enableChangeDataFeed="false")
    lake.view("v", "SELECT id, w FROM a")
    lake.refresh("v")

    def over(rows: str) -> None:
        lake.spark.sql(rows).write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(lake.path("a"))

    over("SELECT id, concat('t', id) AS w FROM range(3)")
    lake.sql("INSERT INTO {a} VALUES (9, 'more')", "OPTIMIZE {a}")
    over("SELECT id, CAST(id AS INT) AS w FROM range(2, 6)")
    assert "was redefined" in lake.refresh("v").reason
    lake.assert_exact("v")


def test_a_commit_that_says_not_when_it_was_made_is_as_old_as_its_file(lake: TestLake) -> None:
    lake.table("a", "SELECT * FROM VALUES (1, 'x') t(id, s)")
    lake.view("v", "SELECT id, s FROM a")
    lake.refresh("v")
    lake.sql("INSERT INTO {a} VALUES (3, 'z')")
    file = Path(lake.path("a"), "_delta_log", f"{1:020}.json")
    text = "".join(f"{line}\n" for line in file.read_text().splitlines() if not line.startswith('{"commitInfo"'))
    for other in [*file.parent.glob(f".{file.stem}.*"), *file.parent.glob(f"{file.stem}.crc")]:
        other.unlink()
    file.write_text(text)
    lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    (status,) = lake.open.status("v")
    assert status.expires_in is not None
    assert status.expires_in > 6 * 86_400
    lake.refresh("v")
    lake.assert_exact("v")


def test_refreshes_on_a_thread_of_ones_own(lake: TestLake) -> None:
    """Which has no session of its own, as Delta asks for."""
    lake.table("a", "SELECT id, 'x' AS s FROM range(5)", delta__enableDeletionVectors="true")
    lake.view("v", "SELECT id, s FROM a")
    with ThreadPoolExecutor(1) as threads:
        threads.submit(lake.refresh, "v").result()
        lake.sql("DELETE FROM {a} WHERE id = 1", "OPTIMIZE {a}", "RESTORE TABLE {a} TO VERSION AS OF 1")
        assert threads.submit(lake.refresh, "v").result().mode == "incremental"
    lake.assert_exact("v")


def test_as_of_a_time_before_a_table_was_there(lake: TestLake) -> None:
    lake.table("a", "SELECT 1 AS id")
    lake.view("v", "SELECT id FROM a")
    with pytest.raises(ExpiredError, match=r"a as of 2001-01-01 .* can no longer be read"):
        lake.refresh("v", until="2001-01-01T00:00:00")
