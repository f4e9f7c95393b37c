"""What came and went with a table's files, over every interval of a history, against the difference of the two versions' rows."""

from __future__ import annotations

from collections import Counter

import pytest

from lake import weights
from lake.deltafiles import moved, rows
from lake.tables import Table
from tests.lakes import TestLake, multiset

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
        files = moved(versions[until], since)
        found = rows(versions[until], files, ["id", "v", "p"])
        assert files.rows == (0 if files.went else found.count())
        changes = Counter({tuple(row)[:3]: row[3] for row in weights.consolidate(found).collect()})
        assert dict(changes) == {
            row: held[until][row] - held[since][row] for row in held[until] | held[since] if held[until][row] != held[since][row]
        }, (since, until)


def test_a_delete_reads_each_file_once_and_the_feed_is_left_to_what_it_is_cheaper_for(lake: TestLake) -> None:
    lake.table("a", "SELECT id, id % 7 AS v FROM range(0, 1000, 1, 1)", delta__enableDeletionVectors="true")
    for change in ("DELETE FROM {a} WHERE v = 1", "DELETE FROM {a} WHERE v = 2", "DELETE FROM {a} WHERE v = 3"):
        lake.sql(change)
    head = Table("a", lake.path("a"), None).log(lake.spark).head()
    found = moved(head, 0)
    assert (len(found.came), len(found.went), len(found.marked)) == (0, 0, 1)
    assert 4 * found.bytes < found.feed_bytes  # that reads the file five times: once, then twice for each vector over another
    lake.sql("UPDATE {a} SET v = 9 WHERE id = 4")
    found = moved(Table("a", lake.path("a"), None).log(lake.spark).head(), head.version.number)
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
