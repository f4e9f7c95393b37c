"""Two drivers at once lose no commit on S3: where a view's table really is, and how Delta creates the files of its log there.

S3 is a local folder here, which creates files as Hadoop's S3A does (tests/jvm/lakejoin_tests/FakeS3.java).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lake import open_lake
from lake.cli.doctor import _targets
from lake.delta.sidecar import Folder
from lake.errors import TargetError
from lake.spark import log_store
from lake.spark.jvm import class_path
from lake.spark.jvm.gateway import jvm_of
from tests.lakes import TestLake

FAKE = Path(__file__).parent.parent / "jvm" / "lakejoin_tests" / "FakeS3.java"
SETTING = "spark.delta.logStore.s3a.impl"
LOST = r"Two writers at once could lose a commit of .*spark\.delta\.logStore\.s3a\.impl.*single_writer: true"


@pytest.fixture(scope="module")
def s3(spark: SparkSession) -> Iterator[Any]:
    """The file system of s3a; no log store is set."""
    jvm, conf = jvm_of(spark), spark._jsc.hadoopConfiguration()
    before = conf.get("fs.s3a.impl")
    conf.set("fs.s3a.impl", class_path.put(jvm, class_path.loader(jvm), FAKE))
    files = jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI.create("s3a://bucket/"), conf)
    yield files
    conf.set("fs.s3a.impl", before)
    files.close()  # and no other one: later tests of the local file system need the one that is open


@pytest.fixture
def conditional(spark: SparkSession, s3: Any) -> Iterator[Any]:
    """The same with Lakejoin's log store."""
    jvm, conf = jvm_of(spark), spark._jsc.sc().conf()
    conf.set(SETTING, log_store.put(jvm, class_path.loader(jvm)))
    yield s3
    s3.next("")
    conf.remove(SETTING)


@pytest.fixture
def on_s3(lake: TestLake) -> TestLake:
    lake.table("a", "SELECT id, id % 3 AS g FROM range(9)", key=["id"])
    lake.view("v", "SELECT g, count(*) AS n FROM a GROUP BY g")
    lake.others = {"target": f"s3a://bucket{lake.folder}/views"}
    return lake


@pytest.fixture
def schema(spark: SparkSession, s3: Any, tmp_path: Path) -> Iterator[str]:
    spark.sql(f"CREATE SCHEMA far LOCATION 's3a://bucket{tmp_path}/far'")
    yield "far"
    for each in ("near", "far"):
        spark.sql(f"DROP SCHEMA IF EXISTS {each} CASCADE")


def test_a_schema_on_s3_is_judged_by_its_location(on_s3: TestLake, schema: str) -> None:
    on_s3.others = {"target": f"spark_catalog.{schema}"}
    with pytest.raises(TargetError, match=LOST):
        on_s3.refresh("v")
    assert not (on_s3.folder / "far" / "v").exists()
    alone = open_lake({**on_s3.config, "single_writer": True}, spark=on_s3.spark)
    assert alone.refresh("v").mode == "build"
    on_s3.sql("DELETE FROM {a} WHERE id = 1")
    for verb in (on_s3.open.refresh, on_s3.open.rebuild):
        with pytest.raises(TargetError, match=LOST):
            verb("v")
    assert "Two writers at once" in on_s3.open.maintain("v").failed["v"]
    elsewhere = on_s3.folder / "near"  # a table may be elsewhere than its schema
    on_s3.spark.sql(f"CREATE SCHEMA near LOCATION '{elsewhere}'")
    on_s3.spark.sql(f"CREATE TABLE near.v USING delta LOCATION 's3a://bucket{on_s3.folder}/far/v'")
    with pytest.raises(TargetError, match=LOST):
        open_lake({**on_s3.config, "target": "spark_catalog.near"}, spark=on_s3.spark).refresh("v")


def test_a_path_without_a_scheme_is_where_hadoop_puts_it(on_s3: TestLake) -> None:
    own = on_s3.spark.newSession()
    on_s3.others, on_s3.spark = {"target": "/elsewhere/views"}, own
    own.conf.set("fs.defaultFS", "s3a://bucket")
    assert on_s3.open.target_folder("v") == "s3a://bucket/elsewhere/views"


def test_a_schema_that_does_not_exist_is_named_with_what_to_run(on_s3: TestLake) -> None:
    on_s3.others = {"target": "spark_catalog.nowhere"}
    with pytest.raises(TargetError, match=r"The schema 'nowhere' of v .* does not exist\. Nothing was written\..*CREATE SCHEMA nowhere"):
        on_s3.refresh("v")


def test_a_commit_is_ours_or_another_drivers(on_s3: TestLake, conditional: Any) -> None:
    """Where another driver was first, Delta takes the next version; where only the answer was lost, the commit is ours."""
    on_s3.refresh("v")
    log = on_s3.folder / "views" / "v" / "_delta_log"

    def commits() -> list[Path]:
        return sorted(log.glob("*.json"))

    def after(what: str) -> list[str]:
        """The commits of a refresh at whose commit something happens."""
        before = len(commits())
        on_s3.sql("UPDATE {a} SET g = (g + 1) % 3 WHERE id < 2")
        conditional.next(what)
        assert on_s3.refresh("v").mode == "incremental"
        return [commit.read_text() for commit in commits()[before:]]

    theirs, ours = after("foreign")
    assert "FOREIGN" in theirs
    assert "lakejoin/v" in ours
    assert len(after("lost answer")) == 1
    with pytest.raises(TargetError, match="a timeout"):
        after("failure")
    before = len(commits())
    conditional.next("")
    assert on_s3.refresh("v").mode == "incremental"
    assert len(commits()) == before + 1
    on_s3.assert_exact("v")


def test_a_table_of_a_job_is_adopted_where_it_is(on_s3: TestLake, conditional: Any) -> None:
    job, place = (f"s3a://bucket{on_s3.folder}/{folder}/v" for folder in ("jobs", "views"))
    query = f"SELECT g, count(*) AS n FROM delta.`{on_s3.path('a')}` GROUP BY g"
    on_s3.spark.sql(f"CREATE TABLE delta.`{job}` USING delta AS {query}")
    with pytest.raises(TargetError, match=r"can't be moved to .*Either set `target: .path: .*jobs"):
        on_s3.open.adopt("v", job, {"a": 0})
    assert on_s3.spark.read.format("delta").load(job).count() == 3
    on_s3.spark.sql(f"CREATE TABLE delta.`{place}` USING delta AS {query}")
    with pytest.raises(TargetError, match="there is a table already"):
        on_s3.open.adopt("v", job, {"a": 0})
    on_s3.open.adopt("v", None, {"a": 0})
    on_s3.sql("DELETE FROM {a} WHERE id IN (1, 2, 5, 8)")
    assert on_s3.refresh("v").mode == "incremental"
    on_s3.assert_exact("v")


def test_a_pin_or_a_lease_is_created_by_one_process(lake: TestLake, s3: Any) -> None:
    folder = Folder(lake.spark, f"s3a://bucket{lake.folder}/beside")
    assert folder.create("first.json", "{}")
    assert not folder.create("first.json", '{"second": 1}')
    try:
        s3.next("foreign")
        assert not folder.create("at-once.json", "{}")
        assert ("FOREIGN" in folder.read("at-once.json"), folder.read("first.json")) == (True, "{}")
        s3.next("lost answer")
        assert folder.create("ours.json", "{}")
        s3.next("failure")
        with pytest.raises(Exception, match="a timeout"):
            folder.create("never.json", "{}")
    finally:
        s3.next("")
    assert folder.names() == ["at-once.json", "first.json", "ours.json"]


def test_a_session_gets_the_log_store_where_hadoops_s3a_is(spark: SparkSession, s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    conf, hadoop, fake = spark._jsc.sc().conf(), spark._jsc.hadoopConfiguration(), spark._jsc.hadoopConfiguration().get("fs.s3a.impl")
    log_store.install(spark)
    assert not conf.contains(SETTING)  # the file system of s3a is another one
    there = "org.apache.hadoop.fs.RawLocalFileSystem"
    monkeypatch.setattr(log_store, "_FILES", there)
    hadoop.set("fs.s3a.impl", there)
    try:
        conf.set(SETTING, "of the user")
        log_store.install(spark)
        assert conf.get(SETTING) == "of the user"
        conf.remove(SETTING)
        with monkeypatch.context() as older:
            older.setattr(log_store, "_CONDITIONS", "org.apache.hadoop.fs.NotYetThere")
            log_store.install(spark)
            assert not conf.contains(SETTING)
        log_store.install(spark)
        assert conf.get(SETTING) == "lakejoin.S3Commits"
    finally:
        conf.remove(SETTING)
        hadoop.set("fs.s3a.impl", fake)


def test_a_target_of_one_word_that_is_a_schema_too_is_asked_about(on_s3: TestLake, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(on_s3.folder)
    on_s3.others = {"target": schema}
    with pytest.raises(TargetError, match=r"`target: \{path: far\}` or `target: \{schema: far\}`"):
        on_s3.refresh("v")
    assert "may be a folder or the schema" in {str(check) for check in _targets(on_s3.open, on_s3.open.config)}.pop()
    on_s3.others, on_s3._open = {"target": {"path": schema}}, None
    on_s3.refresh("v")
    assert (on_s3.folder / "far" / "v" / "_delta_log").exists()
    on_s3.others, on_s3._open = {"target": schema}, None
    assert on_s3.refresh("v").mode == "none"  # as ever, once it is there
    on_s3.others, on_s3._open = {"target": {"schema": schema}}, None
    with pytest.raises(TargetError, match=LOST):
        on_s3.refresh("v")
    (check,) = _targets(on_s3.open, on_s3.open.config)
    assert (check.ok, check.found.startswith(f"s3a://bucket{on_s3.folder}/far: ")) == (False, True)
    assert "single_writer" in check.remedy


def test_of_writers_at_once_one_wins(on_s3: TestLake, conditional: Any) -> None:
    before, folder = conditional.conditional(), f"s3a://bucket{on_s3.folder}/log"
    assert on_s3.open.probe_put_if_absent(folder, "probe") is None
    assert conditional.conditional() >= before + 4
    assert not list((on_s3.folder / "log").iterdir())
    conditional.next("ignoring")
    assert "4 of 4 writers at once created the same file" in str(on_s3.open.probe_put_if_absent(folder, "probe.json"))


def test_storage_that_ignores_the_condition_is_refused(on_s3: TestLake, conditional: Any) -> None:
    on_s3.others = {"target": f"s3a://other{on_s3.folder}/views"}
    conditional.next("ignoring")
    with pytest.raises(TargetError, match=r"s3a://other ignores If-None-Match.*single_writer: true"):
        on_s3.refresh("v")
    assert not list((on_s3.folder / "views" / "v" / "_delta_log").glob("*.json"))
    assert not list((on_s3.folder / "views" / "v" / "_delta_log").glob(".lakejoin-*"))
