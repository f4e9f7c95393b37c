"""Rows deleted by position, against Delta's own DELETE of the same rows; files made one, against the rows that they held."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from lake.delta import listing
from lake.delta.tables import Table
from lake.delta.transaction import FILE, POSITION, Transaction, with_positions
from tests.lakes import TestLake, multiset

STEPS = ("id % 10 = 3", "id BETWEEN 200 AND 299", "id % 10 IN (3, 4) OR id = 250", "id < 100", "true")
"""Some rows of each of three files; a whole file; rows of which some are gone already; a whole file under a vector; all that is left."""


@pytest.mark.parametrize(("mapping", "most_names"), [("none", 1000), ("name", 1000), ("none", 1)])
def test_rows_go_by_position_as_delta_deletes_them(lake: TestLake, monkeypatch: pytest.MonkeyPatch, mapping: str, most_names: int) -> None:
    monkeypatch.setattr(listing, "MOST_NAMES", most_names)
    options = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": mapping}
    for name in ("own", "deltas"):
        rows = lake.spark.range(0, 300, 1, 3).selectExpr("id", "id % 7 AS v")
        rows.write.format("delta").options(**options).save(lake.path(name))
        lake.tables[name] = {"path": name}
    log = Table("own", lake.path("own"), None).log(lake.spark)
    for number, step in enumerate(STEPS):
        head = log.head()
        before = head.rows().count()
        doomed = with_positions(head.rows()).where(step).select(FILE, POSITION)
        places = [tuple(row) for row in doomed.collect()]
        doomed = lake.spark.createDataFrame(places, "f string, p long").toDF(FILE, POSITION)
        transaction = Transaction(head)
        assert transaction.delete(doomed, local=number % 2 == 0) == len(places)
        transaction.commit("test", number, "{}", {"deleted": len(places)})
        lake.sql(f"DELETE FROM {{deltas}} WHERE {step}")
        left = log.head()
        expected = lake.spark.read.format("delta").load(lake.path("deltas"))
        assert multiset(left.rows()) == multiset(expected)
        assert left.rows().count() == before - len(places) == left.count
        assert left.files == len(expected.select(F.input_file_name()).distinct().collect())
        if mapping == "none" and left.files:
            assert DeltaTable(lake.path("own")).version() == left.version.number  # another reader opens what was written


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_rewritten_files_hold_the_same_rows(lake: TestLake, mapping: str) -> None:
    """Nulls, equal rows, a name with a dot, and deletion vectors in both the files that are rewritten and the one that stays."""
    columns = "id", "IF(id % 5 = 0, NULL, id % 7) AS `a.b`", "array(id, NULL) AS c", "DATE'0031-01-01' AS d"
    feed = {"delta.enableChangeDataFeed": str(mapping == "none").lower()}  # Delta writes no table with both at once
    options = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": mapping, **feed}
    rows = lake.spark.range(0, 400, 1, 4).selectExpr(*columns)
    rows.union(rows.where("id % 3 = 0")).write.format("delta").options(**options).save(lake.path("t"))
    lake.tables["t"] = {"path": "t"}
    lake.sql("DELETE FROM {t} WHERE id % 10 IN (3, 6)")
    log = Table("t", lake.path("t"), None).log(lake.spark)
    before = log.head()
    held, files = multiset(before.rows()), list(before.data_files())
    stays = max(files, key=lambda file: file.bytes).path
    transaction = Transaction(before)
    transaction.rewrite({file.path for file in files} - {stays})
    transaction.commit_rewritten('{"said": "again"}')
    after = log.head()
    assert multiset(after.rows()) == held
    assert (after.files, after.count) == (2, sum(held.values()))
    assert stays in {file.path for file in after.data_files()}
    [commit] = log.commits(before.version.number, after.version.number)
    assert (commit.operation, commit.user_metadata, commit.changes_data) == ("OPTIMIZE", '{"said": "again"}', False)
    assert {file.path for file in commit.rearranged if not file.added} == {file.path for file in files} - {stays}
    if mapping == "none":
        fed = lake.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", after.version.number)
        assert fed.load(lake.path("t")).isEmpty()
    lake.sql("DELETE FROM {t} WHERE id > 200")  # in the file that was written, whose positions are new
    assert multiset(log.head().rows()) == multiset(before.rows().where("id <= 200"))
    if mapping == "none":
        assert DeltaTable(lake.path("t")).version() == log.head().version.number


def test_a_rewrite_fails_where_its_rows_changed_meanwhile_or_an_application_committed(lake: TestLake) -> None:
    lake.spark.range(0, 30, 1, 3).write.format("delta").option("delta.enableDeletionVectors", "true").save(lake.path("t"))
    lake.tables["t"] = {"path": "t"}
    log = Table("t", lake.path("t"), None).log(lake.spark)
    for meanwhile in ("deleted", "committed"):
        head = log.head()
        transaction, other = Transaction(head), Transaction(head)
        transaction.newest("app")
        transaction.rewrite({file.path for file in head.data_files()})
        if meanwhile == "deleted":
            lake.sql("DELETE FROM {t} WHERE id = 5")
        else:
            other.commit("app", 7, "{}", {})
        kept = log.head().version.number
        with pytest.raises((Py4JJavaError, PySparkException)) as raised:
            transaction.commit_rewritten("{}")
        assert "oncurrent" in str(raised.value) or "CONCURRENT" in str(raised.value)
        assert log.head().version.number == kept
    assert log.head().count == 29
