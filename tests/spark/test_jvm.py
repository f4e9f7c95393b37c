"""Our own classes in the JVM (lake/jvm): rows that come over as they are, plans of one task, answers without delay."""

from __future__ import annotations

import subprocess
import sys
import threading
import uuid
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions import captured
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lake.catalyst import Catalyst
from lake.delta.tables import Table
from lake.spark import steps
from lake.spark.jvm.gateway import jvm_of
from lake.spark.local_rows import values_of
from lake.spark.session import few_changes, own_session
from tests.lakes import multiset


@pytest.fixture
def own(spark: SparkSession) -> Any:
    session = own_session(spark)
    with few_changes(session):
        yield session


def test_observed_counts_come_in_one_answer_without_an_exception(own: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """py4j ends the iteration over a Java map with an exception, which PySpark asks the JVM about some forty times."""
    converted, convert = list[Any](), captured.convert_exception
    monkeypatch.setattr(captured, "convert_exception", lambda error: (converted.append(error), convert(error))[1])
    frame = own.range(5).observe("all", F.count("id")).observe("some", F.count("id"), F.count(F.when(F.col("id") > 2, 1)))
    assert Catalyst(own).counted(frame) == (5, {"all": (5,), "some": (5, 2)})
    assert converted == []


def test_values_come_as_spark_holds_them(own: SparkSession) -> None:
    row = (1, True, Decimal("1.50"), "żółw", bytearray(b"\x00\xff"), date(1969, 12, 31), datetime(2026, 1, 1), -0.0, None)
    schema = "a long, b boolean, c decimal(10, 2), d string, e binary, f date, g timestamp, h double, i int"
    frame = own.createDataFrame([row, (None,) * 9], schema)
    micros = frame.select(F.unix_micros("g")).collect()[0][0]
    first, second = values_of(frame)
    assert [bytes(v) if isinstance(v, bytearray) else v for v in first] == [
        1, True, Decimal("1.50"), "żółw", b"\x00\xff", -1, micros, 0.0, None,
    ]  # fmt: skip
    assert str(first[7]) == "-0.0"
    assert list(second) == [None] * 9


JOINS = ("inner", "left", "right", "full", "left_semi", "left_anti")


@pytest.mark.parametrize("how", JOINS)
def test_a_plan_that_reads_little_runs_without_a_job_and_gives_the_same_rows(own: SparkSession, how: str, tmp_path: Any) -> None:
    catalyst = Catalyst(own)
    rows = own.range(0, 200, 1, 5).selectExpr("nullif(id % 7, 3) AS k", "id")
    rows.write.format("delta").save(str(tmp_path / "t"))
    stored = Table("t", str(tmp_path / "t"), None).log(own).head().rows_among({})
    local = _local(catalyst, own.sql("SELECT nullif(id % 5, 2) AS k, id * 10 AS n FROM range(20)").unionAll(own.sql("SELECT 99, 99")))

    def plan() -> DataFrame:
        joined = stored.unionAll(stored.where("id < 9")).alias("a").join(F.broadcast(local).alias("b"), on=F.expr("a.k = b.k"), how=how)
        named = joined if how.startswith("left_") else joined.select("a.k", "a.id", "b.n")
        return named.groupBy(*named.columns).agg(F.count("*").alias("c"))

    tasks: list[int] = []
    found = _watched(own, tasks, lambda: catalyst.collected(plan(), 10_000))
    assert multiset(found[0]) == multiset(plan())
    assert tasks == []
    assert found[1] == found[0].count() > 0


def test_what_does_not_say_how_its_rows_are_spread_runs_in_one_task_too(own: SparkSession, tmp_path: Any) -> None:
    own.range(0, 100, 1, 3).selectExpr("id", "timestamp_seconds(id) AS at").write.format("delta").save(str(tmp_path / "t"))
    stored = Table("t", str(tmp_path / "t"), None).log(own).head().rows_among({})
    local = _local(Catalyst(own), own.sql("SELECT timestamp_seconds(id) AS at FROM range(0, 90, 3)"))

    def plan() -> DataFrame:
        sliding = stored.groupBy(F.window("at", "10 seconds", "5 seconds").alias("w")).agg(F.count("*").alias("n"))  # an Expand
        joined = sliding.join(F.broadcast(local), on=F.expr("w.start = at")).select("at", "n")
        other = stored.select("at").crossJoin(stored.where("id < 3").selectExpr("id AS n"))
        return joined.unionAll(other)

    tasks: list[int] = []
    found = _watched(own, tasks, lambda: Catalyst(own).collected(plan(), 10_000))
    assert multiset(found[0]) == multiset(plan())
    assert tasks == []  # Spark would broadcast the product's smaller side


def test_a_plan_that_reads_much_keeps_its_tasks(own: SparkSession, tmp_path: Any) -> None:
    wide = own.range(0, 40_000, 1, 4).selectExpr("id % 3 AS k", *[f"sha2(cast(id + {i} AS string), 512) AS s{i}" for i in range(8)])
    wide.write.format("delta").save(str(tmp_path / "t"))
    stored = Table("t", str(tmp_path / "t"), None).log(own).head().rows_among({})
    tasks: list[int] = []
    found = _watched(own, tasks, lambda: Catalyst(own).collected(stored.groupBy("k").agg(F.max("s7").alias("m")), 100))
    assert found[1] == 3
    assert sum(tasks) > 2


def test_rows_on_the_driver_are_not_searched_for_expressions_and_are_computed(own: SparkSession) -> None:
    """What rules search are the two columns; what they compute is computed, and stays out of the search."""
    local = _local(Catalyst(own), own.range(5).selectExpr("id AS c0", "IF(id = 1, NULL, id) AS c1"))
    plan = local._jdf.queryExecution().analyzed()
    rows = plan.data()
    assert str(rows.getClass().getSimpleName()) == "DriverRows"
    assert int(plan.expressions().size()) == 2
    canonical = plan.canonicalized()
    assert canonical.data().equals(rows)
    assert int(canonical.data().hashCode()) == int(rows.hashCode())
    found = local.selectExpr("c0 + 1 AS c0", "c1").where("c0 > 1").limit(3)
    folded = found._jdf.queryExecution().optimizedPlan()
    assert str(folded.getClass().getSimpleName()) == "LocalRelation"
    assert str(folded.data().getClass().getSimpleName()) == "DriverRows"
    assert [tuple(row) for row in found.collect()] == [(2, None), (3, 2), (4, 3)]
    assert [tuple(row) for row in local.limit(0).collect()] == []
    assert multiset(local.union(local).selectExpr("explode(array(c0, c0)) AS c")) == multiset(
        own.range(5).selectExpr("explode(array(id, id, id, id)) AS c")
    )


def test_selects_without_the_analyser_are_those_of_the_analyser(own: SparkSession) -> None:
    """Columns that differ by case, names that are columns and fields, a NULL number, a date: Spark's own select says what each is."""
    frame = own.sql("SELECT 1L AS w, 2L AS W2, named_struct('a', 3, 'A', 4, 'b', 5) AS s, struct(6 AS `x.y`) AS `t.u`, 7L AS `w.b`")
    one = own.sql("SELECT 1L AS w, named_struct('a', 3, 'b', 5) AS s, 8L AS `s.b`")
    cases = [
        (frame, ["w", "W2 AS x", "s.b AS y", "`w.b`", "`t.u`.`x.y` AS z"], None),
        (frame, ["w2 AS x"], None),  # another case: left to the analyser
        (frame, ["w"], "w > 0"),
        (frame, ["w"], "w <> 1"),
        (frame, ["w"], "w > NULL"),
        (frame, ["w"], "W2 = 2"),
        (one, ["s.b AS y", "`s.b` AS z", "s.b"], "w < 2"),
        (own.sql("SELECT 1L AS a, 2L AS A"), ["1 AS n"], None),
    ]
    for rows, select, where in cases:
        expected = rows.where(where) if where else rows
        expected = expected.selectExpr(*select)
        found = steps.over(rows, *([steps.where(where)] if where else []), steps.select(select))
        assert found.schema == expected.schema, select
        assert found.collect() == expected.collect(), (select, where)
    with pytest.raises(AnalysisException, match="AMBIGUOUS"):
        steps.over(own.sql("SELECT 1L AS a, 2L AS A"), steps.select(["a AS n"])).collect()
    with pytest.raises(AnalysisException, match="AMBIGUOUS"):
        steps.over(frame, steps.select(["s.a AS n"])).collect()
    with pytest.raises(AnalysisException, match="DATATYPE_MISMATCH"):
        steps.over(frame, steps.where("w > DATE'2026-01-01'")).collect()


def _local(catalyst: Catalyst, frame: DataFrame) -> DataFrame:
    found = catalyst.collected(frame, 100)
    assert found is not None
    return found[0]


def _watched(spark: SparkSession, tasks: list[int], work: Any) -> Any:
    """The result of some work; `tasks`: how many each stage of it had."""
    group = f"watched-{uuid.uuid4()}"
    spark.sparkContext.setJobGroup(group, group)
    try:
        found = work()
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    tracker = spark.sparkContext.statusTracker()
    for job in tracker.getJobIdsForGroup(group):
        for stage in tracker.getJobInfo(job).stageIds:  # type: ignore[union-attr]
            tasks.append(tracker.getStageInfo(stage).numTasks)  # type: ignore[union-attr]
    return found


def test_long_answers_do_not_wait_for_receipts(own: SparkSession) -> None:
    found: list[bool] = []

    def look() -> None:
        own.range(1).schema  # noqa: B018 (it opens this thread's connection)
        server = own.sparkContext._gateway.java_gateway_server  # type: ignore[union-attr]
        field = own._jvm.java.lang.Class.forName("py4j.GatewayServer").getDeclaredField("connections")  # type: ignore[union-attr]
        field.setAccessible(True)
        found.extend(bool(connection.getSocket().getTcpNoDelay()) for connection in field.get(server))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert len(found) > 1
    assert all(found)


@pytest.mark.parametrize("mode", ["0640", "0444", "0755", "1777"])
def test_local_files_get_the_permissions_that_hadoop_gives_them(own: SparkSession, mode: str, tmp_path: Any) -> None:
    jvm = jvm_of(own)
    hadoop = jvm.org.apache.hadoop
    conf = own.sparkContext._jsc.hadoopConfiguration()
    ours = hadoop.fs.FileSystem.get(jvm.java.net.URI.create("file:///"), conf).getRaw()
    plain = hadoop.fs.RawLocalFileSystem()
    plain.initialize(jvm.java.net.URI.create("file:///"), conf)
    assert ours.getClass().getName() == "lakejoin.LocalFiles"
    modes = []
    for name, files in (("ours", ours), ("plain", plain)):
        made, folder = tmp_path / name, tmp_path / f"{name} folder"
        files.create(hadoop.fs.Path(str(made))).close()
        files.mkdirs(hadoop.fs.Path(str(folder)))
        before = made.stat().st_mode
        folder.chmod(0o2770)
        for path in (made, folder):
            files.setPermission(hadoop.fs.Path(str(path)), hadoop.fs.permission.FsPermission(mode))
        modes.append((before, made.stat().st_mode, folder.stat().st_mode))
    assert modes[0] == modes[1]
    assert modes[0][1] & 0o7777 == int(mode, 8)
    assert modes[0][2] & 0o7777 == int(mode, 8) | 0o2000, "folders below would no longer be the group's"


def test_another_way_to_local_files_that_somebody_chose_stays(own: SparkSession) -> None:
    jvm = jvm_of(own)
    conf, local = jvm.org.apache.hadoop.conf.Configuration(own.sparkContext._jsc.hadoopConfiguration()), jvm.java.net.URI.create("file:///")
    conf.set("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem")
    conf.set("fs.file.impl.disable.cache", "true")
    jvm.own("LocalFiles").install(conf)
    assert jvm.org.apache.hadoop.fs.FileSystem.get(local, conf).getClass().getName() == "org.apache.hadoop.fs.RawLocalFileSystem"


_SESSION_OF_THE_USER = """
import sys
from pyspark.sql import SparkSession
from lake import open_lake
from lake.spark.preflight import jars

spark = SparkSession.builder.master("local[1]").config("spark.jars", ",".join(jars())).config("spark.ui.enabled", "false")
spark = spark.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
spark = spark.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog").getOrCreate()

def local_files():
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    found = spark._jvm.org.apache.hadoop.fs.FileSystem.get(spark._jvm.java.net.URI.create("file:///"), conf)
    return found.getRaw().getClass().getName(), conf.get("fs.file.impl")

before = local_files()
spark.range(3).write.format("delta").save(sys.argv[1] + "/a")
lake = open_lake({"root": sys.argv[1], "tables": {"a": {"path": "a"}}, "views": {"v": {"query": "SELECT id FROM a"}}}, spark=spark)
assert lake.refresh("v").rows_inserted == 3
assert local_files() == before, (before, local_files())
assert before[0].startswith("org.apache.hadoop."), before
"""


def test_the_file_system_of_a_session_of_the_user_stays_as_it_is(tmp_path: Any) -> None:
    ended = subprocess.run([sys.executable, "-c", _SESSION_OF_THE_USER, str(tmp_path)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
