"""The real-time path over histories: once it has drained it is the strong view and the query from scratch."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import NumberFormatException

import lake.realtime.table_maintenance as maintenance
from lake import Lakehouse
from lake.core.constants import LEASE_FOLDER
from lake.core.stamp import Stamp
from lake.delta.actions import FileAction
from lake.delta.sidecar import Folder
from lake.errors import DefinitionError, TargetError
from lake.realtime.run import RealtimePath
from lake.relations import lookup_cache
from tests.lakes import TestLake, multiset

JOIN = "SELECT l.id, l.k, l.x, r.id AS rid, r.y FROM l JOIN r ON l.k = r.k"
OUTER = "SELECT l.id, l.k, l.x, r.y FROM l LEFT JOIN r ON l.k = r.k AND r.y > 0"
SUMS = "SELECT r.k, count(*) AS n, sum(l.x) AS s, max(r.y) AS m FROM l JOIN r ON l.k = r.k GROUP BY r.k"
ANTI = "SELECT l.id, l.x FROM l LEFT ANTI JOIN r ON l.k = r.k"
LEFT = "SELECT * FROM VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30), (4, NULL, 40), (4, NULL, 40), (5, 3, 50) t(id, k, x)"
RIGHT = "SELECT * FROM VALUES (1, 1, 5), (2, 1, -6), (3, 2, 7), (4, NULL, 8) t(id, k, y)"
TYPES = """SELECT 1 AS k, CAST(1 AS TINYINT) AS a, 1.10BD AS b, double('NaN') AS c, -0.0D AS d, DATE'0031-01-01' AS e,
           TIMESTAMP'1900-01-01 00:00:00.000001Z' AS f, X'00FF' AS g, 'ä' AS h, CAST(NULL AS STRING) AS i, true AS j"""
HISTORY = (
    ["INSERT INTO {l} VALUES (6, 1, 60), (7, 9, 70)"],
    ["UPDATE {l} SET k = 2 WHERE id = 1", "UPDATE {r} SET k = 2 WHERE id = 1"],  # both sides of a pair move together
    ["DELETE FROM {r} WHERE k = 2", "INSERT INTO {r} VALUES (3, 2, 7), (9, 9, 9)"],  # a row goes and comes back
    ["INSERT INTO {l} VALUES (8, 9, 80), (8, 9, 80)", "DELETE FROM {l} WHERE id = 8", "INSERT INTO {l} VALUES (8, 9, 81)"],
    ["UPDATE {r} SET y = -y", "UPDATE {l} SET x = x + 1 WHERE k = 9"],
    ["DELETE FROM {l} WHERE k IS NULL", "INSERT INTO {r} VALUES (NULL, 3, 0), (NULL, 3, 0)"],
    [],
    ["DELETE FROM {r}"],
    ["INSERT INTO {r} VALUES (1, 1, 5), (1, 2, 5), (1, 3, 5)"],
)


def made(lake: TestLake, query: str = JOIN, **realtime: Any) -> Lakehouse:
    """The lake with both tables and the view built; on the real-time path."""
    lake.table("l", LEFT)
    lake.table("r", RIGHT)
    lake.view("v", query, realtime=realtime or True)
    lake.refresh("v")
    return lake.open.on("eventual")


def drained(eventual: Lakehouse, view: str = "v", reset: bool = False) -> RealtimePath:
    """The view's path, run until it has processed what is there."""
    path = RealtimePath(eventual, view, threading.Event(), drain=True)
    path.run(reset)
    return path


def assert_right(lake: TestLake, eventual: Lakehouse, view: str = "v") -> None:
    """The real-time rows are the query's, by Python's own comparison and by verify."""
    assert multiset(lake.open.read(view, consistency="eventual")) == lake.truth(view)
    assert eventual.verify(view).exact


def assert_stopped_until_reset(lake: TestLake, *said: str) -> None:
    """The path fails with these words, and is right again after the strong view was rebuilt and the path reset."""
    eventual = lake.open.on("eventual")
    path = drained(eventual)
    assert path.exit_code == 2
    for words in said:
        assert words in path.metrics.error
    lake.open.rebuild("v")
    assert drained(eventual, reset=True).exit_code == 0
    assert_right(lake, eventual)


def test_after_each_drain_the_path_holds_what_the_query_gives_cached_or_not(lake: TestLake) -> None:
    """The same histories for five views; a cache of two keys has to forget, and one that is off changes no row."""
    made(lake, JOIN, cache={"left_size": 2, "right_size": 2})
    for name, query, enabled in (("j", JOIN, False), ("o", OUTER, True), ("s", SUMS, True), ("a", ANTI, True)):
        lake.view(name, query, realtime={"cache": {"enabled": enabled}})
        lake.refresh(name)
    eventual = lake.open.on("eventual")
    for first, last in ((0, 2), (2, 9)):
        for text in (text for statements in HISTORY[first:last] for text in statements):
            lake.sql(text)
        for view in lake.views:
            path = drained(eventual, view)
            assert (path.exit_code, path.metrics.error) == (0, "")
            assert multiset(eventual.read(view)) == lake.truth(view)
    assert all(eventual.verify(view).exact for view in lake.views)
    kept = {view: eventual.cache_of(view) for view in lake.views}
    assert {view for view, found in kept.items() if found is None} == {"j"}
    assert all(sum(found.misses.values()) for found in kept.values() if found is not None)


def test_it_begins_with_the_strong_paths_rows_and_both_go_on(lake: TestLake) -> None:
    eventual = made(lake)
    lake.sql("INSERT INTO {l} VALUES (6, 1, 60)")
    first = eventual.refresh("v")
    assert (first.mode, dict(first.until)) == ("copy", {"l": 0, "r": 0})
    assert multiset(eventual.read("v")) == multiset(lake.open.read("v"))
    drained(eventual)
    lake.sql("DELETE FROM {r} WHERE id = 2")
    lake.refresh("v")
    drained(eventual)
    assert multiset(eventual.read("v")) == multiset(lake.open.read("v")) == lake.truth("v")


def test_a_cached_key_costs_no_read_of_the_table(lake: TestLake) -> None:
    eventual = made(lake)
    drained(eventual)
    for i in range(3):
        lake.sql(f"INSERT INTO {{l}} VALUES ({10 + i}, 1, 1)")
        drained(eventual)
    found = eventual.cache_of("v")
    assert found is not None
    assert (found.misses["r"], found.hits["r"]) == (1, 2)
    lake.sql("UPDATE {r} SET y = 99 WHERE id = 1")  # the other side's change moves on what is kept
    lake.sql("INSERT INTO {l} VALUES (20, 1, 1)")
    drained(eventual)
    assert (found.misses["r"], found.hits["r"]) == (1, 3)
    assert_right(lake, eventual)
    said = [publication.stamp.lookups for publication in eventual.history("v")]
    # the changed row of r looks l up as well, for the first time
    assert said == [None, {"r": (0, 1)}, {"r": (1, 0)}, {"r": (1, 0)}, {"l": (0, 1), "r": (1, 0)}]


def test_keys_that_are_not_repeated_are_not_cached_until_they_are(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_cache, "_JUDGED_BY", 2)
    lake.table("l", LEFT)
    lake.table("r", "SELECT id, id AS k, id AS y FROM range(100)")
    lake.view("v", JOIN, realtime=True)
    lake.refresh("v")
    eventual = lake.open.on("eventual")
    kept = []
    for k in (10, 11, 11, 11, 12):
        lake.sql(f"INSERT INTO {{l}} VALUES ({k}, {k}, 1)")
        lake.sql(f"UPDATE {{r}} SET y = y + 1 WHERE id = {k}")
        drained(eventual)
        found = eventual.cache_of("v")
        assert found is not None
        kept.append(len(found))
        assert multiset(eventual.read("v")) == lake.truth("v")
    assert (kept[1], kept[4]) == (0, 0)
    assert kept[3] > 0


def test_rows_of_every_type_come_out_of_the_cache_as_they_went_in(lake: TestLake) -> None:
    lake.table("l", "SELECT 1 AS id, 1 AS k")
    lake.table("r", TYPES)
    lake.table("n", "SELECT 1 AS k, TIMESTAMP_NTZ'2024-03-31 02:30:00' AS t, array(1, NULL) AS s, decode(X'FF', 'ISO-8859-1') AS u")
    lake.view("v", "SELECT l.id, r.* FROM l JOIN r ON l.k = r.k")
    lake.view("w", "SELECT l.id, n.* FROM l JOIN n ON l.k = n.k")
    for view in lake.views:
        lake.refresh(view)
    eventual = lake.open.on("eventual")
    for i in range(2, 5):
        lake.sql(f"INSERT INTO {{l}} VALUES ({i}, 1)")
        for view in lake.views:
            assert drained(eventual, view).metrics.error == ""
            assert multiset(eventual.read(view)) == lake.truth(view)
    cached, other = eventual.cache_of("v"), eventual.cache_of("w")
    assert cached is not None
    assert other is not None
    assert cached.hits["r"] == 2
    assert not other.hits["n"]  # no way through Python and back for some of its types


def test_a_backlog_is_caught_up_in_steps_none_larger_than_the_buffer(lake: TestLake) -> None:
    eventual = made(lake, buffer_capacity=3)
    drained(eventual)
    for i in range(6):
        lake.sql(f"INSERT INTO {{l}} VALUES ({10 + i}, 1, 1), ({20 + i}, 2, 2)")
    batches: list[Counter[Any]] = []
    path = RealtimePath(eventual, "v", threading.Event(), drain=True, on_batch=lambda m, r: batches.append(multiset(eventual.read("v"))))
    path.run()
    assert len(batches) == 6
    assert_right(lake, eventual)


def test_a_view_that_would_be_recomputed_does_not_run_in_real_time(lake: TestLake) -> None:
    eventual = made(lake, "SELECT l.id, r.y FROM l LEFT JOIN r ON l.x < r.y")
    assert not eventual.explain("v").to_json()["realtime"]
    with pytest.raises(DefinitionError, match=r"can't run in real time.*no equality"):
        eventual.refresh("v")


def test_a_view_that_was_never_built_has_nothing_to_begin_with(lake: TestLake) -> None:
    lake.table("l", LEFT)
    lake.view("v", "SELECT id FROM l", realtime=True)
    with pytest.raises(TargetError, match="lakejoin refresh v"):
        lake.open.on("eventual").refresh("v")


def test_a_source_that_was_replaced_stops_it_until_it_is_reset(lake: TestLake) -> None:
    eventual = made(lake)
    drained(eventual)
    shutil.rmtree(lake.path("l"))
    lake.table("l", "SELECT 1 AS id, 1 AS k, 1 AS x")
    assert_stopped_until_reset(lake, "was replaced", "lakejoin realtime v --reset")


def test_an_edited_query_is_refused_until_it_is_reset(lake: TestLake) -> None:
    eventual = made(lake)
    drained(eventual)
    lake.view("v", JOIN + " WHERE l.x > 10", realtime=True)
    assert_stopped_until_reset(lake, "--reset")


def test_somebody_elses_write_to_the_table_stops_it(lake: TestLake) -> None:
    eventual = made(lake)
    drained(eventual)
    lake.sql("DELETE FROM delta.`" + lake.path("views/v__realtime") + "` WHERE id = 1")
    lake.sql("INSERT INTO {l} VALUES (6, 1, 60)")
    path = drained(eventual)
    assert path.exit_code == 2
    assert "lakejoin realtime v --reset" in path.metrics.error
    assert drained(eventual, reset=True).exit_code == 0
    drained(eventual)
    assert_right(lake, eventual)


def test_views_on_views_run_in_real_time_together(lake: TestLake) -> None:
    eventual = made(lake)
    lake.view("w", "SELECT v.k, count(*) AS n FROM v JOIN r ON v.rid = r.id GROUP BY v.k", realtime=True)
    lake.refresh("w")
    eventual = lake.open.on("eventual")
    for statements in HISTORY[:3]:
        for text in statements:
            lake.sql(text)
        for view in eventual.in_order(["w", "v"]):
            assert drained(eventual, view).metrics.error == ""
        lake.open.refresh_all()
        assert multiset(eventual.read("w")) == multiset(lake.open.read("w"))
        assert eventual.verify("w").exact


def test_a_view_over_one_that_starts_again_waits_for_it(lake: TestLake) -> None:
    """The one below goes back to the strong path's snapshot, and its rows with it; the one above reads a table that it reads as well."""
    lake.table("l", LEFT)
    lake.table("r", RIGHT)
    lake.view("below", "SELECT k, count(*) AS n FROM l GROUP BY k", realtime=True)
    lake.view("above", "SELECT l.id, b.n, r.y FROM l JOIN below b ON l.k = b.k JOIN r ON l.k = r.k", realtime={"attempts": 2})
    lake.refresh("below")
    lake.refresh("above")
    eventual = lake.open.on("eventual")
    lake.sql("INSERT INTO {l} VALUES (6, 1, 60)")
    for view in lake.views:
        drained(eventual, view)
    eventual.rebuild("below")
    lake.sql("INSERT INTO {r} VALUES (9, 1, 9)")
    waiting = eventual.refresh("above")
    assert (waiting.mode, "it waits for a view that it reads, which has l from version 1 to 0" in waiting.reason) == ("none", True)
    path = drained(eventual, "above")
    assert path.exit_code
    assert "it waits for a view that it reads" in path.metrics.error
    lake.sql("DELETE FROM {l} WHERE id = 1")
    for view in lake.views:
        assert drained(eventual, view).exit_code == 0
        assert eventual.verify(view).exact
    lake.refresh("below")
    lake.refresh("above")
    assert multiset(eventual.read("above")) == multiset(lake.open.read("above"))


def test_what_is_drained_is_compacted_and_a_function_need_not_read_all_its_tables(
    lake: TestLake, module: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    module("of_two_tables", "def rows(l, r):\n    return l.select('id', 'x')\n")
    monkeypatch.setattr(maintenance, "_MANY_FILES", 3)
    lake.table("l", LEFT)
    lake.table("r", RIGHT)
    lake.view("v", function="of_two_tables:rows", realtime=True)
    lake.refresh("v")
    eventual = lake.open.on("eventual")
    for i in range(2):
        lake.sql(f"INSERT INTO {{l}} VALUES ({10 + i}, 1, 1)", f"INSERT INTO {{r}} VALUES ({10 + i}, 1, 1)")
        assert drained(eventual).exit_code == 0
    log = eventual.table_log("v")
    assert log is not None
    assert log.head().files == 1
    assert eventual.verify("v").exact


def test_small_files_are_compacted_between_batches(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "_MANY_FILES", 3)
    eventual = made(lake)
    for i in range(4):
        lake.sql(f"INSERT INTO {{l}} VALUES ({10 + i}, 1, 1)")
        lake.sql(f"INSERT INTO {{l}} VALUES ({20 + i}, 1, 1)")
        drained(eventual)
    log = eventual.table_log("v")
    assert log is not None
    stopped = threading.Event()
    path = RealtimePath(eventual, "v", stopped, on_batch=lambda m, r: stopped.set())
    lake.sql("INSERT INTO {l} VALUES (30, 1, 1)")
    path.run()
    assert log.head().files < 5
    drained(eventual)
    assert_right(lake, eventual)


def test_only_new_files_are_compacted(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "_MANY_FILES", 3)
    eventual = made(lake)
    eventual.refresh("v")
    log = eventual.table_log("v")
    assert log is not None
    kept, counts = maintenance.TableMaintenance(lake.spark, log), [log.head().files]
    for i in range(7):
        lake.sql(f"INSERT INTO {{l}} VALUES ({10 + i}, 1, 1)")
        eventual.refresh("v")
        kept.run(lambda: eventual.stamp("v"), idle=True)
        counts.append(log.head().files)
    assert counts == [1, 2, 1, 2, 3, 1, 2, 3]  # three at first; three that came beside the one that they became
    assert_right(lake, eventual)


def test_larger_files_are_compacted_by_full_compactions_only(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_MANY_FILES": 2, "_FULL_EVERY": 3, "_BATCH_BYTES": 1}.items():  # no file is so small
        monkeypatch.setattr(maintenance, name, value)
    eventual = made(lake)
    eventual.refresh("v")
    log = eventual.table_log("v")
    assert log is not None
    kept, counts = maintenance.TableMaintenance(lake.spark, log), []
    for i in range(8):
        lake.sql(f"INSERT INTO {{l}} VALUES ({10 + i}, 1, 1)")
        eventual.refresh("v")
        kept.run(lambda: eventual.stamp("v"), idle=i % 2 == 0)
        counts.append(log.head().files)
    assert counts == [2, 3, 4, 5, 1, 2, 3, 4]  # looked at with 2, 4 and 6 files: the third time all become one
    assert_right(lake, eventual)


def test_a_compaction_repeats_no_old_stamp(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process, whose lease this one lost, may commit between the compaction's look at the table and its own commit."""
    monkeypatch.setattr(maintenance, "_MANY_FILES", 2)
    eventual = made(lake)
    eventual.refresh("v")
    lake.sql("INSERT INTO {l} VALUES (6, 1, 60)")
    eventual.refresh("v")
    log, old = eventual.table_log("v"), eventual.stamp("v")
    assert log is not None
    lake.sql("INSERT INTO {l} VALUES (7, 1, 70)")

    def read_late() -> Stamp | None:
        eventual.refresh("v")
        return eventual.stamp("v")

    for published in (read_late, lambda: old):  # a batch after the head was read; a stamp that is no longer the newest
        before = log.head().version.number
        maintenance.TableMaintenance(lake.spark, log).run(published, idle=False)
        found = [c.operation for c in log.commits(before, log.head().version.number)]
        assert "OPTIMIZE" not in found
        lake.sql("INSERT INTO {l} VALUES (8, 1, 80)")
    maintenance.TableMaintenance(lake.spark, log).run(lambda: eventual.stamp("v"), idle=False)
    assert log.head().files == 1
    assert drained(eventual).metrics.error == ""
    assert_right(lake, eventual)


def test_files_are_chosen_the_smallest_first_and_no_more_than_make_a_large_one() -> None:
    mega = 1 << 20

    def file(name: str, megabytes: float, rows: int = 10, deleted: int = 0) -> FileAction:
        vector = {"deletionVector": {"cardinality": deleted}} if deleted else {}
        return FileAction(True, {"path": name, "size": int(megabytes * mega), **vector}, rows)

    batches = [file("a", 1), file("b", 4), file("c", 4.1)]
    larger = [file("d", 32), file("e", 33), file("f", 100, rows=4, deleted=6), file("g", 100, rows=6, deleted=4)]
    assert maintenance._chosen([*larger, *batches], full=False) == {"a", "b"}
    assert maintenance._chosen([*larger, *batches], full=True) == {"a", "b", "c", "d"}  # with "f" they would be too large
    assert maintenance._chosen(larger, full=True) == set()  # nothing is gained by "d" alone, and "f" does not fit beside it
    assert maintenance._chosen(larger[1:], full=True) == {"f"}
    assert maintenance._chosen(larger[1:], full=False) == set()
    assert maintenance._chosen([file("h", 200, rows=1, deleted=9), file("e", 33)], full=True) == {"h"}
    assert maintenance._chosen([file("a", 1)], full=True) == set()


def test_old_files_are_removed_at_last_though_batches_wait(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    eventual = made(lake)
    lake.sql("INSERT INTO {l} VALUES (6, 1, 60)")
    drained(eventual)
    log, asked, now = eventual.table_log("v"), [], [0.0]
    assert log is not None
    kept = maintenance.TableMaintenance(lake.spark, log, clock=lambda: now[0])

    def published() -> Stamp | None:
        asked.append(now[0])
        return eventual.stamp("v")

    for hours, idle in ((0.5, True), (2, False), (2.1, True), (2.2, True), (8.2, False), (8.5, True), (10, True)):
        now[0] = hours * 3_600
        kept.run(published, idle=idle)
    assert [round(at / 3_600, 1) for at in asked] == [2.1, 8.2, 10.0]
    assert_right(lake, eventual)


def test_paths_that_end_soon_remove_old_files_once_an_hour(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []
    monkeypatch.setattr(maintenance.DeltaTable, "vacuum", lambda table: removed.append("old files"))
    eventual = made(lake)
    drained(eventual)
    log = eventual.table_log("v")
    assert log is not None
    folder = Folder(lake.spark, f"{log.path}/{LEASE_FOLDER}")
    marker = Path(folder.path.removeprefix("file:")) / "cleaned"
    assert not removed, "the table is new"
    for hours, times in ((0.75, 0), (1.5, 1)):
        now = time.time() - hours * 3_600
        os.utime(marker, (now, now))
        drained(eventual)
        assert len(removed) == times, hours
        assert (time.time() - folder.written("cleaned") < 1_800) == (hours > 1), "the time of the removal is not stored"


def test_a_checkpoint_of_the_log_is_written_when_no_batch_waits(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "_MANY_COMMITS", 3)
    eventual = made(lake)
    for i in range(4):
        lake.sql(f"INSERT INTO {{l}} VALUES ({10 + i}, 1, 1)")
        eventual.refresh("v")
    log = eventual.table_log("v")
    assert log is not None
    kept = maintenance.TableMaintenance(lake.spark, log)
    kept.run(lambda: eventual.stamp("v"), idle=False)
    assert log.head().since_checkpoint > 3
    for _ in range(3):
        kept.run(lambda: eventual.stamp("v"), idle=True)
        assert log.head().since_checkpoint == 0
    assert len(list((Path(log.path.removeprefix("file:")) / "_delta_log").glob("*.checkpoint*.parquet"))) == 1
    lake.sql("DELETE FROM {l} WHERE id = 11")
    eventual.refresh("v")
    assert log.head().since_checkpoint == 1
    assert_right(lake, eventual)


def test_metrics_are_stored_beside_the_table(lake: TestLake, tmp_path: Path) -> None:
    from lake.realtime.states import states

    eventual = made(lake)
    lake.sql("INSERT INTO {l} VALUES (6, 1, 60)")
    drained(eventual)
    said = states(lake.open, ["v"])["v"]
    assert (said["state"], said["batches"], said["rows_in"], said["versions"]) == ("stopped", 1, 1, {"l": 1, "r": 0})
    assert 0 < said["latency_seconds"]["p95"] < 120


def test_a_compaction_repeats_the_stamp(lake: TestLake) -> None:
    """The log is kept for a day: a table that rests for longer must not lose the commit that says where it is."""
    from lake.realtime.table_maintenance import TableMaintenance

    eventual = made(lake)
    lake.sql("INSERT INTO {l} VALUES (6, 1, 60)")
    eventual.refresh("v")
    eventual.refresh("v")
    log, stamp = eventual.table_log("v"), eventual.stamp("v")
    assert log is not None
    assert stamp is not None
    before = log.head().version.number
    kept = TableMaintenance(lake.spark, log)
    kept.cleaned = (-1e9, 0)
    kept.run(lambda: stamp, idle=True)  # an hour has passed: old files are removed
    assert log.head().version.number == before  # without a commit, after which the stamp would not be the newest
    lake.sql("OPTIMIZE delta.`" + lake.path("views/v__realtime") + "`")
    newer = [Stamp.from_json(c.user_metadata) for c in log.commits(before, log.head().version.number)]
    assert [found.snapshot for found in newer[:-1] if found] == [stamp.snapshot] * (len(newer) - 1)
    lake.sql("INSERT INTO {l} VALUES (7, 1, 70)")
    assert drained(eventual).metrics.error == ""
    assert_right(lake, eventual)


def test_the_log_may_be_cleaned_up_to_a_compaction(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "_MANY_FILES", 2)
    eventual = made(lake)
    eventual.refresh("v")
    for i in range(3):
        lake.sql(f"INSERT INTO {{l}} VALUES ({10 + i}, 1, 1)")
        eventual.refresh("v")
    log = eventual.table_log("v")
    assert log is not None
    maintenance.TableMaintenance(lake.spark, log).run(lambda: eventual.stamp("v"), idle=False)
    folder = Path(lake.path("views/v__realtime/_delta_log"))
    for file in folder.glob("*.*"):
        os.utime(file, (time.time() - 6 * 86_400,) * 2)
    lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    log = eventual.table_log("v")
    assert log is not None
    log.checkpoint(log.head())
    (left,) = folder.glob("*.json")
    assert "OPTIMIZE" in left.read_text()
    lake.sql("INSERT INTO {l} VALUES (50, 1, 1)")
    assert drained(eventual).metrics.error == ""
    assert_right(lake, eventual)


def test_a_vacuum_writes_no_older_stamp_over_a_newer_batch(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    eventual = made(lake)
    eventual.refresh("v")
    lake.sql("INSERT INTO {l} VALUES (6, 1, 60)")
    log, old = eventual.table_log("v"), eventual.stamp("v")
    assert log is not None
    session = lake.spark.newSession()
    session.conf.set("spark.databricks.delta.vacuum.logging.enabled", "true")
    kept = maintenance.TableMaintenance(session, log)
    kept.cleaned = (-1e9, 0)
    eventual.refresh("v")  # another process commits a batch after the stamp was read
    kept.run(lambda: old, idle=True)
    stamp = eventual.stamp("v")
    assert stamp is not None
    assert stamp.snapshot["l"] == 1
    lake.sql("INSERT INTO {l} VALUES (8, 1, 80)")
    assert drained(eventual).metrics.error == ""
    assert_right(lake, eventual)


def test_a_reset_also_changes_the_key(lake: TestLake) -> None:
    lake.table("t", "SELECT * FROM VALUES (1, 1, 5), (1, 2, 6), (2, 1, 7) t(a, b, v)")
    lake.view("v", "SELECT a, sum(v) AS s FROM t GROUP BY a", realtime=True)
    lake.refresh("v")
    lake.open.on("eventual").refresh("v")
    lake.view("v", "SELECT a, b, sum(v) AS s FROM t GROUP BY a, b", realtime=True)
    lake.open.rebuild("v")
    eventual = lake.open.on("eventual")
    eventual.rebuild("v")
    log = eventual.table_log("v")
    assert log is not None
    assert log.head().properties["lakejoin.key"] == '["a", "b"]'


def test_an_error_that_a_later_commit_corrects_stops_no_batch(lake: TestLake) -> None:
    """A batch may take one commit only: one that breaks a declared key, or in which a value can't be cast."""
    lake.table("a", "SELECT id, '1' AS s FROM range(4)", key=["id"])
    lake.view("v", "SELECT id, CAST(s AS INT) AS n FROM a", realtime={"buffer_capacity": 1, "trigger_seconds": 0})
    lake.refresh("v")
    lake.open.on("eventual").refresh("v")
    for broken in ("(1, '2')", "(7, 'x')"):
        lake.sql(f"INSERT INTO {{a}} VALUES {broken}")
        assert drained(lake.open.on("eventual")).exit_code > 0
        lake.sql("DELETE FROM {a} WHERE s <> '1'", "INSERT INTO {a} SELECT max(id) + 10, '1' FROM {a}")
        lake.refresh("v")
        path = drained(lake.open.on("eventual"))
        assert (path.exit_code, path.metrics.error) == (0, "")
        assert_right(lake, lake.open.on("eventual"))


def test_no_lease_metric_or_log_shows_a_value_that_spark_quotes(
    lake: TestLake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    eventual = made(lake, trigger_seconds=0, attempts=2)
    eventual.refresh("v")

    def broken(*_: Any) -> Any:
        raise NumberFormatException("[CAST_INVALID_INPUT] The value 'hunter2' can't be cast to \"INT\". SQLSTATE: 22018")

    monkeypatch.setattr(RealtimePath, "_batch", broken)
    path = drained(eventual)
    assert path.exit_code > 0
    (lease,) = Path(lake.path("views/v__realtime/_lakejoin")).glob("lease-*.json")
    for text in (lease.read_text(), json.dumps(path.metrics.to_json()), caplog.text):
        assert "CAST_INVALID_INPUT" in text
        assert "hunter2" not in text
    assert caplog.text.count("retrying in") == 1
