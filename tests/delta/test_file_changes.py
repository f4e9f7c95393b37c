"""What came and went with a table's files, over every interval of a history, against the difference of the two versions' rows."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from lake.delta.file_changes import file_changes, rows, rows_held
from lake.delta.tables import Table
from lake.spark import zset
from tests.lakes import TestLake, multiset

MOST = 1000
HISTORY = (
    "DELETE FROM {a} WHERE v = 3",
    "INSERT INTO {a} SELECT id + 100, v, p FROM {a} WHERE v = 2",
    "DELETE FROM {a} WHERE v = 2",
    "UPDATE {a} SET v = 9 WHERE id % 5 = 0",
    "OPTIMIZE {a}",
    "DELETE FROM {a} WHERE v = 1",
    "RESTORE TABLE {a} TO VERSION AS OF 2",  # before the compaction: its files stand twice among those that came
    "DELETE FROM {a} WHERE id % 11 = 0",
    "RESTORE TABLE {a} TO VERSION AS OF 1",
    "MERGE INTO {a} t USING (SELECT 5L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "DELETE FROM {a} WHERE v = 0",
    "INSERT OVERWRITE {a} SELECT id, v + 1, p FROM {a}",
)


@pytest.mark.slow
@pytest.mark.parametrize(("partition", "mapping"), [(None, "none"), ("p", "name")])
def test_rows_moved_are_the_difference_of_two_versions(lake: TestLake, partition: str | None, mapping: str) -> None:
    options = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": mapping}
    made = lake.spark.range(0, 60, 1, 3).selectExpr("id", "id % 7 AS v", "concat('p ', id % 2) AS p")
    writer = made.write.format("delta").options(**options)
    (writer.partitionBy(partition) if partition else writer).save(lake.path("a"))
    lake.tables["a"] = {"path": "a"}
    for change in HISTORY:
        lake.sql(change)
    log = Table("a", lake.path("a"), None).log(lake.spark)
    versions = [log.at(n) for n in range(log.head().version.number + 1)]
    held = [multiset(version.rows()) for version in versions]
    for since, until in [(s, u) for s in (0, 2, 5) for u in range(s + 1, len(versions))]:
        files = file_changes(versions[until], since)
        found = rows(versions[until], files, ["id", "v", "p"])
        assert files.rows == (0 if files.removed else found.count())
        changes = Counter({tuple(row)[:3]: row[3] for row in zset.consolidate(found).collect()})
        expected = {row: held[until][row] - held[since][row] for row in held[until] | held[since] if held[until][row] != held[since][row]}
        assert dict(changes) == expected, (since, until)
        of_held = rows_held(versions[until], files, ["id", "v", "p"], MOST)
        assert of_held is not None
        assert {tuple(row)[:3]: row[3] for row in of_held.collect()} == expected, (since, until)


def test_a_delete_reads_each_file_once_and_the_feed_is_left_to_what_it_is_cheaper_for(lake: TestLake) -> None:
    lake.table("a", "SELECT id, id % 7 AS v FROM range(0, 1000, 1, 1)", delta__enableDeletionVectors="true")
    for change in ("DELETE FROM {a} WHERE v = 1", "DELETE FROM {a} WHERE v = 2", "DELETE FROM {a} WHERE v = 3"):
        lake.sql(change)
    head = Table("a", lake.path("a"), None).log(lake.spark).head()
    found = file_changes(head, 0)
    assert (len(found.added), len(found.removed), len(found.new_vectors)) == (0, 0, 1)
    assert 4 * found.bytes < found.feed_bytes  # that reads the file five times: once, then twice for each vector over another
    lake.sql("UPDATE {a} SET v = 9 WHERE id = 4")
    found = file_changes(Table("a", lake.path("a"), None).log(lake.spark).head(), head.version.number)
    assert found.feed_bytes < found.bytes


def test_columns_of_the_feeds_own_names(lake: TestLake) -> None:
    rows_made = "SELECT id, id % 3 AS _change_type, id % 2 AS _commit_version FROM range(30)"
    lake.table("a", rows_made, delta__enableChangeDataFeed="false", delta__enableDeletionVectors="true")
    lake.view("v", "SELECT id, _change_type AS kind, _commit_version AS v FROM a WHERE id < 20")
    lake.refresh("v")
    for change in ("DELETE FROM {a} WHERE id % 5 = 0", "UPDATE {a} SET _change_type = 7 WHERE id = 6", "DELETE FROM {a} WHERE id = 7"):
        lake.sql(change)
    assert lake.refresh("v").mode == "incremental"
    lake.assert_exact("v")


@pytest.mark.parametrize("feed", ["true", "false"])
def test_a_file_that_came_twice_counts_twice(lake: TestLake, feed: str) -> None:
    """RESTORE adds again what OPTIMIZE, which changes no data, took away."""
    lake.table("a", "SELECT * FROM VALUES (1, 'x'), (1, 'x'), (NULL, 'n') t(id, s)", delta__enableChangeDataFeed=feed)
    lake.sql("INSERT INTO {a} VALUES (2, 'y')")
    lake.view("v", "SELECT id, s FROM a")
    lake.refresh("v")
    lake.sql("INSERT INTO {a} VALUES (3, 'z')", "OPTIMIZE {a}", "RESTORE TABLE {a} TO VERSION AS OF 2")
    assert (lake.refresh("v").mode, lake.open.read("v").count()) == ("incremental", 5)
    lake.assert_exact("v")
    lake.sql("OPTIMIZE {a}", "RESTORE TABLE {a} TO VERSION AS OF 2", "OPTIMIZE {a}", "RESTORE TABLE {a} TO VERSION AS OF 2")
    assert lake.refresh("v").rows_deleted == 0
    lake.assert_exact("v")


@pytest.mark.parametrize(("partition", "feed"), [(None, "false"), ("s", "true")])
def test_files_that_go_without_a_word_but_their_path(lake: TestLake, partition: str | None, feed: str) -> None:
    """As other writers remove them: the protocol lets them leave out the rest."""
    made = lake.spark.sql("SELECT /*+ COALESCE(1) */ id, concat('s', id % 2) AS s FROM range(6)")
    writer = made.write.format("delta").option("delta.enableChangeDataFeed", feed)
    (writer.partitionBy(partition) if partition else writer).save(lake.path("a"))
    lake.tables["a"] = {"path": "a"}
    lake.view("v", "SELECT id, s FROM a")
    lake.refresh("v")
    lake.sql("INSERT INTO {a} VALUES (9, 's1')", "DELETE FROM {a} WHERE s = 's1'")
    for version in (1, 2):
        said_anew(lake, "a", version, "remove", ("size", "partitionValues", "extendedFileMetadata", "stats", "tags"))
    assert lake.refresh("v").mode == "incremental"
    lake.assert_exact("v")


def said_anew(lake: TestLake, table: str, version: int, kind: str, without: tuple[str, ...]) -> None:
    """Write a commit again, its actions of a kind without some of what they say."""
    log = Path(lake.path(table), "_delta_log")
    lines = [json.loads(line) for line in (log / f"{version:020}.json").read_text().splitlines()]
    for line in lines:
        for name in without:
            line.get(kind, {}).pop(name, None)
    for file in [*log.glob(f".{version:020}.*"), *log.glob(f"{version:020}.crc")]:
        file.unlink()
    (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, lines)) + "\n")
    lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
