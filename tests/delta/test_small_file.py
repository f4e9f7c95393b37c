"""Few rows written on the driver, against Delta's own write of the same rows: statistics, files, history, and what is left to Delta."""

from __future__ import annotations

import json
import re
import threading
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from lake.delta.log import Log
from lake.delta.tables import Table
from lake.delta.transaction import Transaction
from lake.spark.jvm.gateway import jvm_of
from lake.spark.session import own_session
from tests.lakes import TestLake, multiset

TYPES = (
    "id BIGINT, `a.b` INT, s SMALLINT, b TINYINT, flag BOOLEAN, f FLOAT, d DOUBLE, t STRING, bytes BINARY, day DATE, at TIMESTAMP, "
    "plain TIMESTAMP_NTZ, money DECIMAL(38, 18), n DECIMAL(5, 2)"
)
_DOUBLED = (
    "(1, NULL, 3, -1, true, FLOAT('NaN'), -0.0D, repeat('\U0001f600x', 40), X'00ff', DATE'0031-01-01', "
    "TIMESTAMP'1600-02-29 01:02:03.456789', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', 12345678901234567890.123456789012345678, -999.99)"
)
ROWS = (
    _DOUBLED,
    _DOUBLED,
    "(-9223372036854775808, 7, NULL, NULL, NULL, FLOAT('-Infinity'), NULL, '', NULL, NULL, NULL, NULL, NULL, NULL)",
    "(NULL, 2147483647, -32768, 127, false, 1.5, double('Infinity'), 'ä', X'', DATE'2026-11-30', TIMESTAMP'2026-11-30 00:00:00', "
    "TIMESTAMP_NTZ'0001-01-01 00:00:00', -0.000000000000000001, 0)",
)
FEATURES = {"delta.enableDeletionVectors": "true"}
KINDS: dict[str, dict[str, str]] = {
    "plain": {},
    "columns mapped by name": {"delta.columnMapping.mode": "name"},
    "columns mapped by id": {"delta.columnMapping.mode": "id"},
    "statistics of some columns": {"delta.dataSkippingStatsColumns": "id,t,money"},
    "statistics of none": {"delta.dataSkippingNumIndexedCols": "0"},
    "rows with ids": {"delta.enableRowTracking": "true"},
    "a feed": {"delta.enableChangeDataFeed": "true"},
}


def _table(lake: TestLake, name: str, types: str, properties: dict[str, str]) -> Log:
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in {**FEATURES, **properties}.items())
    lake.spark.sql(f"CREATE TABLE delta.`{lake.path(name)}` ({types}) USING delta TBLPROPERTIES ({listed})")
    return Table(name, lake.path(name), None).log(lake.spark)


def _rows(lake: TestLake, types: str, *rows: str) -> DataFrame:
    names = [part.strip().split()[0] for part in types.replace("38, 18", "38").replace("5, 2", "5").split(",")]
    frame = lake.spark.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS t({', '.join(names)})")
    cast = frame.selectExpr(*[f"CAST({n} AS {f.dataType.simpleString()}) AS {n}" for n, f in zip(names, _schema(lake, types), strict=True)])
    return DataFrame(jvm_of(lake.spark).own_plans.collected(lake.spark._jsparkSession, cast._jdf, 100), lake.spark)


def _schema(lake: TestLake, types: str) -> Any:
    return lake.spark.createDataFrame([], types).schema.fields


def _write(log: Log, rows: DataFrame, own: bool, monkeypatch: pytest.MonkeyPatch, number: int = 1) -> bool:
    """Insert rows; whether they were written here."""
    small, found = log.jvm.own_small_file, []

    class Noticed:
        def written(self, *arguments: Any) -> Any:
            made = small.written(*arguments) if own else None
            found.append(made is not None)
            return made

    with monkeypatch.context() as patched:
        patched.setattr(log.jvm, "own_small_file", Noticed())
        transaction = Transaction(log.head())
        transaction.insert(rows)
        transaction.commit("test", number, "{}", {"inserted": 4})
    return found[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_and_its_statistics_are_those_of_delta(lake: TestLake, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    rows, told = _rows(lake, TYPES, *ROWS), {}
    for name, own in (("own", True), ("deltas", False)):
        log = _table(lake, name, TYPES, KINDS[kind])
        assert _write(log, rows if own else rows.coalesce(1), own, monkeypatch) is own
        head = log.head()
        assert multiset(head.rows()) == multiset(rows)
        commit = [json.loads(line) for line in (lake.folder / name / "_delta_log" / f"{1:020}.json").read_text().splitlines()]
        (added,) = [action["add"] for action in commit if "add" in action]
        file = pq.ParquetFile(lake.folder / name / added["path"])
        metrics = next(action["commitInfo"]["operationMetrics"] for action in commit if "commitInfo" in action)
        stats = _unmapped(json.loads(added.pop("stats")), head) if "stats" in added else None
        shape = [(field.name if "mapped" not in kind else "", str(field.type)) for field in file.schema_arrow]
        features = {k: v for k, v in file.metadata.metadata.items() if k != b"org.apache.spark.sql.parquet.row.metadata"}
        ignored = ("path", "size", "modificationTime")
        told[name] = (stats, shape, features, metrics.keys(), {k: v for k, v in added.items() if k not in ignored}, head.count)
        assert metrics["numOutputRows"] == "4"
        assert pq.ParquetFile(lake.folder / name / added["path"]).metadata.row_group(0).column(0).compression == "SNAPPY"
        assert re.fullmatch(r"(\w\w/)?part-00000-[0-9a-f-]{36}-c000\.snappy\.parquet", added["path"])
    assert told["own"] == told["deltas"]
    assert (told["own"][0] is not None) == (kind != "statistics of none") or told["own"][0] == {"numRecords": 4, "tightBounds": True}


def _unmapped(stats: dict[str, Any], head: Any) -> dict[str, Any]:
    """Statistics by the columns' names in the table: those in its files are random under column mapping."""
    names = {f.metadata.get("delta.columnMapping.physicalName", f.name): f.name for f in head.schema.fields}
    return {kind: {names[c]: v for c, v in of.items()} if isinstance(of, dict) else of for kind, of in stats.items()}


def test_statistics_are_those_of_the_present_rows_columns_and_settings(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of one write must not be used for another table, or for this one after it changed."""
    log = _table(lake, "t", "id BIGINT, at TIMESTAMP", {"delta.columnMapping.mode": "name"})
    first = _rows(lake, "id BIGINT, at TIMESTAMP", "(1, TIMESTAMP'2026-01-01 00:00:00')")
    assert _write(log, first, True, monkeypatch)
    lake.sql(f"ALTER TABLE delta.`{lake.path('t')}` RENAME COLUMN id TO key")
    lake.sql(f"ALTER TABLE delta.`{lake.path('t')}` ADD COLUMN more INT")
    second = _rows(lake, "key BIGINT, at TIMESTAMP, more INT", "(5, TIMESTAMP'2026-02-01 00:00:00', 9)", "(4, NULL, 8)")
    assert _write(log, second, True, monkeypatch, 2)
    head = log.head()
    assert multiset(head.rows()) == multiset(first.selectExpr("id AS key", "at", "CAST(NULL AS INT) AS more").union(second))
    found = sorted((_unmapped(json.loads(file.stats), head) for file in _adds(log)), key=lambda stats: stats["numRecords"])
    assert [stats["minValues"]["key"] for stats in found] == [1, 4]
    assert found[1]["maxValues"] == {"key": 5, "at": "2026-02-01T00:00:00.000Z", "more": 9}
    assert found[1]["nullCount"] == {"key": 0, "at": 1, "more": 0}


def test_statistics_are_those_of_the_tables_protocol(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two tables of the same columns and properties one may have deletion vectors: its statistics say that bounds are tight."""
    rows, found = _rows(lake, "id BIGINT", "(1)"), []
    able = "TBLPROPERTIES ('delta.feature.deletionVectors' = 'supported')"
    for name, more in {"t": "", "u": able}.items():
        lake.spark.sql(f"CREATE TABLE delta.`{lake.path(name)}` (id BIGINT) USING delta {more}")
        log = Table(name, lake.path(name), None).log(lake.spark)
        assert _write(log, rows, True, monkeypatch)
        assert not log.head().properties
        found.append("tightBounds" in json.loads(_adds(log)[0].stats))
    assert found == [False, True]


def _adds(log: Log) -> list[Any]:
    class File:
        def __init__(self, java: Any) -> None:
            self.stats = java.stats()

    files = log.head().snapshot.allFiles().collectAsList()
    return [File(files.get(i)) for i in range(files.size())]


LEFT = {
    "partitions": ("id BIGINT, p INT", "USING delta PARTITIONED BY (p)", "(1, 2)"),
    "a column that can't be NULL": ("id BIGINT, p INT NOT NULL", "USING delta", "(1, 2)"),
    "a constraint": ("id BIGINT, p INT", "USING delta TBLPROPERTIES ('delta.constraints.few' = 'p < 5')", "(1, 2)"),
    "a generated column": ("id BIGINT, p INT GENERATED ALWAYS AS (CAST(id + 1 AS INT))", "USING delta", "(1, 2)"),
    "another writer of Parquet": ("id BIGINT, p INT", "USING delta TBLPROPERTIES ('delta.parquet.format.version' = '2.12.0')", "(1, 2)"),
    "a nested type": ("id BIGINT, p ARRAY<INT>", "USING delta", "(1, array(2))"),
}


@pytest.mark.parametrize("kind", LEFT)
def test_what_is_left_to_delta(lake: TestLake, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    types, table, row = LEFT[kind]
    lake.spark.sql(f"CREATE TABLE delta.`{lake.path('t')}` ({types}) {table}")
    log = Table("t", lake.path("t"), None).log(lake.spark)
    frame = _rows(lake, types.removesuffix(" NOT NULL").split(" GENERATED")[0], row)
    assert not _write(log, frame, True, monkeypatch)
    assert multiset(log.head().rows()) == multiset(frame)


def test_rows_that_are_many_or_not_on_the_driver_are_left_to_delta(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    log = _table(lake, "t", "id BIGINT", {})
    assert not _write(log, lake.spark.range(5).toDF("id"), True, monkeypatch)
    lake.spark.conf.set("spark.sql.files.maxRecordsPerFile", "1")
    try:
        assert not _write(log, _rows(lake, "id BIGINT", "(1)", "(2)"), True, monkeypatch, 2)
    finally:
        lake.spark.conf.unset("spark.sql.files.maxRecordsPerFile")
    assert log.head().count == 7


def test_files_written_at_once_have_their_own_statistics(lake: TestLake) -> None:
    """Two tables of the same columns and properties: what computes their statistics is kept for both, and holds a writer of JSON."""
    rows = {name: _rows(lake, "id BIGINT, s STRING", f"({number}, repeat('{number}', 20))") for number, name in enumerate(("t", "u"))}
    for name in rows:
        _table(lake, name, "id BIGINT, s STRING", {})
    # each in a session of its own, as views have: what a commit says is a setting of the session
    logs = {name: Table(name, lake.path(name), None).log(own_session(lake.spark)) for name in rows}

    def write(name: str, number: int) -> None:
        transaction = Transaction(logs[name].head())
        transaction.insert(rows[name])
        transaction.commit("test", number, "{}", {"inserted": 1})

    def write_some(name: str) -> None:
        for number in range(12):
            write(name, number)

    threads = [threading.Thread(target=write_some, args=[name]) for name in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, name in enumerate(rows):
        found = [json.loads(file.stats) for file in _adds(logs[name])]
        expected = {"id": number, "s": str(number) * 20}
        assert [(each["numRecords"], each["minValues"], each["maxValues"]) for each in found] == [(1, expected, expected)] * 12


def test_an_error_is_that_of_delta_and_nothing_is_left(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that Parquet refuses: a day before 1582 where the old calendar is asked for strictly."""
    log = _table(lake, "t", "day DATE", {})
    frame = _rows(lake, "day DATE", "(DATE'0031-01-01')")
    lake.spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "EXCEPTION")
    try:
        with pytest.raises(Exception, match="WRITE_ANCIENT_DATETIME"):
            _write(log, frame, True, monkeypatch)
    finally:
        lake.spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInWrite")
    assert log.head().count == 0


def test_statistics_are_kept_from_one_refresh_to_the_next(lake: TestLake) -> None:
    """A refresh sets what its commit says (the stamp) in the session: it is no setting of statistics."""
    lake.table("a", "SELECT id, id % 3 AS g FROM range(50)")
    lake.view("v", "SELECT g, count(*) AS n FROM a GROUP BY g")
    lake.refresh("v")
    small, kept = jvm_of(lake.spark).own_small_file, []
    for number in range(3):
        lake.sql(f"INSERT INTO {{a}} VALUES ({100 + number}, {number})")
        assert lake.refresh("v").mode == "incremental"
        kept.append(small.kept())
    assert kept == [kept[0]] * 3
    assert kept[0] > 0
