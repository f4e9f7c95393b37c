"""A version derived from the one before is the version that the log says, whoever wrote the commits."""

from __future__ import annotations

import gc
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lake.delta import snapshot_cache
from lake.delta.log import Log
from lake.delta.pinned import Pinned
from tests.lakes import TestLake, multiset, until


def rows(*pairs: tuple[int, int]) -> pa.Table:
    return pa.table({"id": pa.array([i for i, _ in pairs], pa.int64()), "x": pa.array([x for _, x in pairs], pa.int64())})


def made(path: Path) -> str:
    write_deltalake(path, rows((1, 1), (2, 2), (3, 3)), configuration={"delta.enableChangeDataFeed": "true"})
    return str(path)


def derived(pinned: Pinned) -> bool:
    return bool(pinned.snapshot.checksumOpt().isDefined()) and pinned.listing._noted is not None


def assert_same(spark: SparkSession, path: str, pinned: Pinned) -> None:
    """What the pinned version says is what Delta's own replay of the log and delta-rs say."""
    replayed = pinned.log.java.update(False, pinned.log.scala.none, pinned.log.scala.none)
    theirs = DeltaTable(path)
    files = sorted(str(file.path()) for file in replayed.allFiles().collect())
    assert pinned.version.number == theirs.version()
    assert pinned.version.table_id == str(replayed.metadata().id())
    assert (pinned.files, pinned.bytes) == (len(files), int(replayed.sizeInBytes()))
    assert sorted(add["path"] for add in pinned.listing._listed[1]) == files
    assert str(pinned.snapshot.schema().json()) == str(replayed.schema().json())
    assert multiset(pinned.rows_among({})) == Counter((r["id"], r["x"]) for r in theirs.to_pyarrow_table().to_pylist())


STEPS: tuple[Callable[[str, SparkSession], Any], ...] = (
    lambda path, _: write_deltalake(path, rows((4, 4), (4, 4)), mode="append"),
    lambda path, _: DeltaTable(path).delete("id = 2"),
    lambda path, _: [write_deltalake(path, rows((i, i)), mode="append") for i in range(10, 13)],
    lambda path, _: DeltaTable(path).update(updates={"x": "x + 1"}, predicate="id < 11"),
    lambda path, _: DeltaTable(path).optimize.compact(),
    lambda path, _: DeltaTable(path).restore(1),
    lambda path, _: DeltaTable(path).create_checkpoint(),
    lambda path, _: write_deltalake(path, rows(), mode="append"),
    lambda path, spark: spark.sql(f"INSERT INTO delta.`{path}` VALUES (7, 7)"),
    lambda path, _: DeltaTable(path).delete(),
    lambda path, _: write_deltalake(path, rows((8, 8)), mode="overwrite"),
)


def test_each_version_is_what_the_log_says(spark: SparkSession, tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    log, seen = Log(spark, path), []
    assert_same(spark, path, log.head())
    for step in STEPS:
        step(path, spark)
        pinned = log.head()
        assert log.head().snapshot.equals(pinned.snapshot)
        seen.append(derived(pinned))
        assert_same(spark, path, pinned)
    assert sum(seen) >= len(STEPS) - 2, seen


def test_a_version_that_others_wrote_is_found_without_a_job(spark: SparkSession, tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    log, tracker = Log(spark, path), spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("heads", "")
    for number in range(5):
        write_deltalake(path, rows((number, number)), mode="append")
        assert len(log.head().listing._listed[1]) == number + 2
        if number == 0:  # Delta itself reads protocol and metadata of the first in a job; the files follow from the commits
            before = len(tracker.getJobIdsForGroup("heads"))
    assert len(tracker.getJobIdsForGroup("heads")) == before


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_table_that_was_not_read_before_is_derived_from_its_commits_without_a_checkpoint(
    spark: SparkSession, tmp_path: Path, checkpoint: bool
) -> None:
    path = made(tmp_path / "t")
    for step in STEPS[:6]:
        step(path, spark)
    properties = CommitProperties(app_transactions=[Transaction("app", 3)])
    write_deltalake(path, rows((3, 0), (3, 0)), mode="append", commit_properties=properties)
    if checkpoint:
        DeltaTable(path).create_checkpoint()
    pinned = Log(spark, path).head()
    assert derived(pinned) is not checkpoint
    assert pinned.transaction("app") == 3
    assert pinned.properties["delta.enableChangeDataFeed"] == "true"
    assert_same(spark, path, pinned)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def test_transactions_are_carried(spark: SparkSession, tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    log = Log(spark, path)
    assert log.head().files == 1
    for number in (3, 4):
        properties = CommitProperties(app_transactions=[Transaction("app", number)])
        write_deltalake(path, rows((number, 0)), mode="append", commit_properties=properties)
        pinned = log.head()
        assert (derived(pinned), pinned.transaction("app"), pinned.transaction("other")) == (True, number, -1)


@pytest.mark.parametrize("commits", [1, 4])
def test_another_table_at_the_same_place_is_not_taken_for_the_old_one(spark: SparkSession, tmp_path: Path, commits: int) -> None:
    path = made(tmp_path / "t")
    write_deltalake(path, rows((9, 9)), mode="append")
    log = Log(spark, path)
    assert multiset(log.head().rows_among({})) == Counter([(1, 1), (2, 2), (3, 3), (9, 9)])
    shutil.rmtree(path)
    made(Path(path))
    for number in range(commits):
        write_deltalake(path, rows((100 + number, 0)), mode="append")
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    pinned = Log(spark, path).head()
    assert multiset(pinned.rows_among({})) == Counter([(1, 1), (2, 2), (3, 3), *((100 + n, 0) for n in range(commits))])


def test_a_view_over_a_table_written_by_others_is_exact(lake: TestLake) -> None:
    path = made(lake.folder / "t")
    lake.tables["t"] = {"path": "t", "primary_key": ["id"]}
    lake.view("v", "SELECT x, count(*) AS n FROM t GROUP BY x")
    lake.refresh("v")
    for step in STEPS[1:6]:
        step(path, lake.spark)
        lake.refresh("v")
        lake.assert_exact("v")


def test_more_files_than_spark_notes_are_derived_too(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(600).selectExpr("id", "id AS x").repartition(60).write.format("delta").save(path)
    log = Log(spark, path)
    first = log.head()
    assert derived(first)
    assert_same(spark, path, first)
    for text in ("INSERT INTO {t} VALUES (100, 100)", "UPDATE {t} SET x = x + 1 WHERE id = 7", "DELETE FROM {t} WHERE id < 3"):
        spark.sql(text.format(t=f"delta.`{path}`"))
        pinned = log.head()
        assert derived(pinned)
        assert_same(spark, path, pinned)


def test_what_is_found_by_the_names_of_commits_is_what_delta_finds_by_listing_the_log(spark: SparkSession, tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    log = Log(spark, path)
    none, commits = log.scala.none, log.jvm.own_commits

    def listed() -> Any:
        return log.java.update(False, none, none).logSegment()

    def told(segment: Any) -> tuple[Any, ...]:
        return int(segment.version()), segment.lastCommitFileModificationTimestamp(), str(segment.deltas().lastOption().toString())

    def said(found: Any, most: int = 1000) -> list[str]:
        return list(iter(lambda: commits.next(found, most), None))

    def of_delta(found: Any) -> list[str]:
        pairs = log.scala.list(found.toSeq())
        return ["\n".join([f"{pair._1()} false", *(str(action.json()) for action in log.scala.list(pair._2()))]) for pair in pairs]

    segment, went_on = listed(), 0
    for step in STEPS:
        assert segment.deltas().isEmpty() or commits.following(log.java, segment).equals(segment)
        step(path, spark)
        followed, now = commits.following(log.java, segment), listed()
        if not now.deltas().isEmpty() and not segment.deltas().isEmpty():
            assert told(followed) == told(now)
            went_on += not followed.equals(segment)
        segment = now
    assert went_on >= len(STEPS) - 4
    last = int(segment.version())
    assert said(commits.between(log.java, 0, last)) == of_delta(log.java.getChanges(0, last, none, True))
    one_by_one = said(commits.between(log.java, 0, last), most=1)
    assert [part.split("\n", 1)[1] for part in one_by_one] == [
        action for part in said(commits.between(log.java, 0, last)) for action in part.split("\n")[1:]
    ]
    assert [part.split()[1] for part in one_by_one].count("false") == last + 1
    assert len(said(commits.between(log.java, 3, last + 5))) == last - 2
    assert commits.following(log.java, segment) is not None
    gap = tmp_path / "t" / "_delta_log" / f"{last + 2:020d}.json"
    gap.write_text("{}")
    assert commits.following(log.java, segment) is None
    gap.unlink()
    first = segment.deltas().head().getPath().toUri().getPath()
    Path(first).rename(tmp_path / "cleaned")
    assert commits.following(log.java, segment) is None
    (tmp_path / "cleaned").rename(first)
    (tmp_path / "t" / "_delta_log" / f"{4:020d}.json").unlink()
    with pytest.raises(Py4JJavaError, match="DELTA_MISSING_FILES_UNEXPECTED_VERSION"):
        said(commits.between(log.java, 3, last))
    shutil.rmtree(path)
    assert commits.following(log.java, segment) is None
    for _ in range(last + 2):
        write_deltalake(path, rows((1, 1)), mode="append")
    assert commits.following(log.java, segment) is None


def test_a_table_whose_storage_hangs_keeps_no_other_from_being_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung, other = Log(spark, made(tmp_path / "hung")), Log(spark, made(tmp_path / "other"))
    entered, released = threading.Event(), threading.Event()
    waits = {name: getattr(snapshot_cache.NewestSnapshot, name) for name in ("_followed", "_in_memory", "_since")}

    def hanging(name: str) -> Callable[..., Any]:
        def call(state: snapshot_cache.NewestSnapshot, *arguments: Any) -> Any:
            if "hung" in str(state.log.logPath()):
                entered.set()
                assert released.wait(120)
            return waits[name](state, *arguments)

        return call

    other.head()
    for name in waits:
        monkeypatch.setattr(snapshot_cache.NewestSnapshot, name, hanging(name))
        entered.clear()
        released.clear()
        if name != "_followed":  # the others are asked where nothing was read before
            hung._newest_snapshot().forget()
        write_deltalake(str(tmp_path / "hung"), rows((4, 4)), mode="append")
        heads: list[Pinned] = []
        reader = threading.Thread(target=lambda found=heads: found.append(hung.head()))
        reader.start()
        try:
            assert entered.wait(120)
            write_deltalake(str(tmp_path / "other"), rows((5, 5)), mode="append")
            read = threading.Thread(target=lambda: other.head().version)
            read.start()
            read.join(60)
            assert not read.is_alive()
            assert not heads
        finally:
            released.set()
            reader.join(120)
        assert len(heads) == 1
        monkeypatch.setattr(snapshot_cache.NewestSnapshot, name, waits[name])


def test_versions_of_more_tables_than_the_bound_are_freed_in_both_processes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_cache, "_cache", snapshot_cache.SnapshotCache())
    monkeypatch.setattr(snapshot_cache, "_MOST_TABLES", 2)
    bindings = spark.sparkContext._gateway.java_gateway_server.getGateway().getBindings()  # type: ignore[union-attr]
    ids = [Log(spark, made(tmp_path / name)).head().snapshot._target_id for name in ("a", "b", "c")]
    gc.collect()
    until(lambda: not bindings.containsKey(ids[0]), within=60)  # py4j's own thread tells the JVM
    assert [bindings.containsKey(each) for each in ids] == [False, True, True]
    assert len(snapshot_cache._cache._entries) == 2
