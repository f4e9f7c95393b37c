"""The rows that are held of a small table's files, whatever happens to it, against Delta's own readers of each version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame

from lake.catalyst import Catalyst
from lake.core.snapshots import Snapshot, Version
from lake.delta import sources
from lake.delta.sources import PinnedSources
from lake.delta.tables import Table
from lake.delta.transaction import FILE, POSITION, with_positions
from lake.spark.jvm.gateway import jvm_of
from tests.lakes import TestLake, multiset

MOST = 1000
OWN = sources.is_small
ROWS = """SELECT id % 40 AS id, IF(id % 9 = 0, NULL, concat('row ', id % 40)) AS s,
    IF(id % 40 < 3, double('-0.0'), double(id % 5 - 2)) AS d,
    ARRAY(id % 3, NULL) AS l, id % 2 AS p FROM range(120)"""
HISTORY = (
    "DELETE FROM {t} WHERE id % 7 = 1",
    "INSERT INTO {t} SELECT * FROM {t} WHERE id < 5",
    "UPDATE {t} SET d = 0.0 WHERE id = 2",  # it was -0.0: the same to Spark's =, another row to a view
    "UPDATE {t} SET d = double('NaN'), s = NULL WHERE id BETWEEN 10 AND 12",
    "MERGE INTO {t} t USING (SELECT 5L AS id) n ON t.id = n.id WHEN MATCHED THEN UPDATE SET p = 1 - p",
    "OPTIMIZE {t}",
    "DELETE FROM {t} WHERE id < 20",
    "RESTORE TABLE {t} TO VERSION AS OF 3",
    "DELETE FROM {t}",
    "INSERT INTO {t} SELECT * FROM {t} VERSION AS OF 2",
)


def held(lake: TestLake, rows: DataFrame) -> DataFrame | None:
    """The rows of a frame over a small table, from the rows that are held of its files."""
    found = Catalyst(lake.spark).held(rows, MOST)
    return None if found is None else found[0]


def read(lake: TestLake, query: str) -> DataFrame:
    """A query by plain Spark; {t} stands for the table."""
    return lake.spark.sql(query.format(t=f"delta.`{lake.path('t')}`"))


def tasks(lake: TestLake) -> list[str]:
    """The last tasks that have run in the driver; no more than a thousand are kept."""
    return str(jvm_of(lake.spark).own_plans.driverTasks()).splitlines()


def shown(rows: DataFrame) -> dict[str, int]:
    """The rows with their numbers, by Spark's JSON of them, which tells -0.0 and 0.0 apart."""
    return {str(key[0]): number for key, number in multiset(rows.selectExpr("to_json(struct(*)) AS j")).items()}


@pytest.fixture(autouse=True)
def nothing_held(lake: TestLake) -> Iterator[None]:
    """No rows of other tests, and none left for them."""
    plans = jvm_of(lake.spark).own_plans
    before = plans.holdAtMost(0)
    plans.holdAtMost(before)
    yield
    plans.holdAtMost(before)


@pytest.mark.slow
@pytest.mark.parametrize(("vectors", "partition"), [("true", None), ("false", "p")])
def test_each_version_and_what_is_between_two_of_them(
    lake: TestLake, monkeypatch: pytest.MonkeyPatch, vectors: str, partition: str | None
) -> None:
    writer = lake.spark.sql(ROWS).repartition(3).write.format("delta").option("delta.enableDeletionVectors", vectors)
    (writer.partitionBy(partition) if partition else writer).save(lake.path("t"))
    lake.tables["t"] = {"path": "t"}
    for statement in HISTORY:
        lake.sql(statement)
    table = Table("t", lake.path("t"), None)
    log = table.log(lake.spark)
    pins = [log.at(number) for number in range(len(HISTORY) + 1)]
    plain = [shown(lake.spark.read.format("delta").option("versionAsOf", number).load(lake.path("t"))) for number in range(len(pins))]
    for pin, expected in reversed([*zip(pins, plain, strict=True)]):  # the newest first: what its vectors delete is there in older ones
        rows = held(lake, pin.rows_among({}).selectExpr("id", "s", "d", "l", "p"))
        assert rows is not None
        assert shown(rows) == expected, pin.version
    assert len({str(p) for p in plain}) > len(plain) / 2, "a history that changes little shows little"
    for since, until in [(0, 4), (2, 10), (3, 8), (4, 6)]:
        keys = plain[since].keys() | plain[until].keys()
        expected = {key: plain[until].get(key, 0) - plain[since].get(key, 0) for key in keys}
        for way in (OWN, lambda *_: False):
            monkeypatch.setattr(sources, "is_small", way)
            read_from = PinnedSources({"t": table}, {"t": pins[until]}, Snapshot({"t": Version(pins[since].version.table_id, since)}))
            changes = read_from.changes("t", ["id", "s", "d", "l", "p"])
            assert changes is not None
            rows = changes.selectExpr("to_json(struct(c0 id, c1 s, c2 d, c3 l, c4 p)) AS j", "w").collect()
            assert {str(row[0]): row[1] for row in rows} == {key: weight for key, weight in expected.items() if weight}, (since, until, way)


def test_files_are_read_once_and_rows_keep_their_places(lake: TestLake) -> None:
    lake.table("t", "SELECT id, id % 3 AS v FROM range(30)", delta__enableDeletionVectors="true")
    lake.sql("DELETE FROM {t} WHERE id = 4")
    log = Table("t", lake.path("t"), None).log(lake.spark)
    first = with_positions(log.head().rows_among({}))
    assert held(lake, first) is not None
    before = tasks(lake)
    again = held(lake, first)
    assert again is not None
    assert tasks(lake) == before, "nothing came since"
    assert multiset(again) == multiset(first)
    lake.sql("DELETE FROM {t} WHERE id = 7")
    lake.sql("INSERT INTO {t} VALUES (99, 1)")
    before = tasks(lake)
    now = held(lake, with_positions(log.head().rows_among({})))
    assert now is not None
    assert len(set(tasks(lake)) - set(before)) == 1, "the one file that came"
    assert multiset(now.drop(FILE, POSITION)) == multiset(read(lake, "SELECT * FROM {t}"))
    assert {row["id"]: row[POSITION] for row in now.collect() if row["id"] < 30} == {
        row["id"]: row[POSITION] for row in first.collect() if row["id"] != 7
    }


def test_a_table_made_again_or_given_other_columns_is_read_again(lake: TestLake) -> None:
    lake.spark.sql("SELECT id, id AS v FROM range(5)").write.format("delta").option("delta.columnMapping.mode", "name").save(lake.path("t"))
    lake.tables["t"] = {"path": "t"}
    log = Table("t", lake.path("t"), None).log(lake.spark)
    assert held(lake, log.head().rows_among({})) is not None
    lake.sql("ALTER TABLE {t} RENAME COLUMN v TO old")
    lake.sql("ALTER TABLE {t} ADD COLUMN v BIGINT")  # the old files have no such column, though they had one of this name
    rows = held(lake, log.head().rows_among({}).select("id", "v"))
    assert rows is not None
    assert multiset(rows) == multiset(read(lake, "SELECT id, CAST(NULL AS BIGINT) FROM {t}"))


def test_rows_are_let_go_where_they_take_too_much(lake: TestLake) -> None:
    plans = jvm_of(lake.spark).own_plans
    lake.table("t", "SELECT id, concat('some text ', id) AS s FROM range(100)")
    lake.table("u", "SELECT id, concat('some text ', id) AS s FROM range(100)")
    frames = [Table(name, lake.path(name), None).log(lake.spark).head().rows_among({}) for name in ("t", "u")]
    assert held(lake, frames[0]) is not None
    one = plans.heldBytes()
    assert one > 100 * 20
    plans.holdAtMost(one + one // 2)
    assert held(lake, frames[1]) is not None
    assert 0 < plans.heldBytes() <= one + one // 2
    before = tasks(lake)
    assert held(lake, frames[1]) is not None
    assert tasks(lake) == before, "the newest stay"
    again = held(lake, frames[0])
    assert again is not None
    assert len(set(tasks(lake)) - set(before)) == 1, "the older ones went"
    assert multiset(again) == multiset(frames[0])
    plans.holdAtMost(0)
    assert held(lake, frames[0]) is not None
    assert plans.heldBytes() == 0


def test_other_frames_are_computed_as_ever(lake: TestLake) -> None:
    lake.table("t", "SELECT id, CAST('a' AS STRING) AS s FROM range(20)")
    rows = Table("t", lake.path("t"), None).log(lake.spark).head().rows_among({})
    for frame in (rows.where("id > 3"), rows.selectExpr("id + 1 AS id"), rows.unionAll(rows), read(lake, "SELECT 1 AS id")):
        found = held(lake, frame)
        assert found is not None
        assert multiset(found) == multiset(frame)
    assert Catalyst(lake.spark).held(rows, 19) is None, "more rows than may be brought to the driver"


def test_columns_of_other_names_that_look_alike(lake: TestLake) -> None:
    rows = """SELECT id, named_struct('file_path', id) AS _metadata, named_struct('x', id + 1) AS s, id + 2 AS `s.0`, id + 3 AS `1:s.0`
        FROM range(5)"""
    lake.spark.sql(rows).write.format("delta").option("delta.columnMapping.mode", "name").save(lake.path("t"))
    lake.tables["t"] = {"path": "t"}
    table = Table("t", lake.path("t"), None).log(lake.spark).head().rows_among({})
    for columns in (["*"], ["s.x AS c"], ["`s.0` AS c"], ["`1:s.0` AS c"], ["_metadata.file_path AS c"], ["id AS c"]):
        found = held(lake, table.selectExpr(*columns))
        assert found is not None
        assert multiset(found) == multiset(read(lake, "SELECT * FROM {t}").selectExpr(*columns)), columns


KINDS: dict[str, dict[str, str]] = {
    "with deletion vectors": {},
    "without": {"delta.enableDeletionVectors": "false"},
    "by name": {"delta.columnMapping.mode": "name"},
    "by id": {"delta.columnMapping.mode": "id"},
    "widened": {"delta.enableTypeWidening": "true"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_read_without_a_plan_as_a_plan_reads_them(lake: TestLake, kind: str) -> None:
    """In a folder whose name has to be escaped; nested types; a column that old files don't have, one that is widened, deleted rows."""
    place = lake.path("a b%20c ä")
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in {"delta.enableDeletionVectors": "true", **KINDS[kind]}.items())
    lake.spark.sql(f"CREATE TABLE delta.`{place}` USING delta TBLPROPERTIES ({properties}) AS {ROWS.replace('id % 2 AS p', SMALL)}")
    if kind == "widened":
        lake.spark.sql(f"ALTER TABLE delta.`{place}` ALTER COLUMN p TYPE INT")
    lake.spark.sql(f"ALTER TABLE delta.`{place}` ADD COLUMN (more MAP<STRING, INT>)")
    columns = "id, s, d, l, p, `a.b`, day, at, money, more"
    lake.spark.sql(f"INSERT INTO delta.`{place}` SELECT {columns.replace('more', 'map(s, 1)')} FROM delta.`{place}` WHERE s IS NOT NULL")
    lake.spark.sql(f"DELETE FROM delta.`{place}` WHERE id % 7 = 1")
    rows = Table("t", place, None).log(lake.spark).head().rows_among({})
    frames = [rows, rows.select("p", "more", rows["`a.b`"]["x"].alias("x"), "at")]
    frames += [with_positions(rows).selectExpr("id", POSITION, f"{FILE} AS file")] if kind != "without" else []
    for frame in frames:
        before = tasks(lake)
        found = held(lake, frame)
        assert found is not None
        assert len(set(tasks(lake)) - set(before)) == 1
        assert shown(found) == shown(frame)


SMALL = """CAST(id % 2 AS SMALLINT) AS p, named_struct('x', id, 'y', ARRAY(CAST(id AS STRING))) AS `a.b`, DATE'0031-01-01' AS day,
    TIMESTAMP'1600-02-29 01:02:03.456789' AS at, CAST(id AS DECIMAL(38, 5)) AS money"""
