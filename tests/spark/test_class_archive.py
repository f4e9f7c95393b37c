"""How a session starts: jars on the class path, the archive of classes, settings; and what they never get in the way of."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from py4j.java_gateway import JVMView
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lake.spark.driver_options import CLASS_PATH, JAVA_OPTIONS, driver_options, java_options
from lake.spark.jvm.gateway import jvm_of
from lake.spark.preflight import artifact, class_archive, class_path, jars


def test_only_what_spark_has_in_no_version_goes_onto_its_class_path(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    for name in ("jackson-core-2.18.2.jar", "spark-sql_2.13-4.2.0.jar"):
        (tmp_path / "jars" / name).touch()
    ours = [
        "/j/com.fasterxml.jackson.core_jackson-core-2.13.5.jar",
        "/j/io.delta_delta-spark_4.2_2.13-4.4.0.jar",
        "/j/x_commons-logging-1.jar",
    ]
    assert class_path(ours, tmp_path) == ["/j/io.delta_delta-spark_4.2_2.13-4.4.0.jar"]
    assert class_path(ours, tmp_path / "nowhere") == []
    assert artifact("delta-spark_4.2_2.13-4.4.0.jar") == "delta-spark_4.2_2.13"


def test_a_collector_and_a_compiler_that_a_user_has_chosen_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM that is given two collectors does not start."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    collector, *compilers = java_options({"spark.driver.extraJavaOptions": "-XX:+UseStringDeduplication"}).split()
    assert collector == "-XX:+UseParallelGC"
    assert len(compilers) == 3
    assert java_options({"spark.driver.extraJavaOptions": "-Da=b -XX:+UseG1GC"}).split() == compilers
    assert java_options({"spark.driver.defaultJavaOptions": "-XX:+UseZGC"}).split() == compilers
    assert java_options({"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}) == collector
    assert java_options({"spark.driver.defaultJavaOptions": "-XX:-TieredCompilation"}) == collector
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.extraJavaOptions -XX:+UseSerialGC\n")
    assert java_options({}).split() == compilers
    (tmp_path / "spark-defaults.conf").unlink()
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseShenandoahGC -XX:Tier4InvocationThreshold=5000")
    assert java_options({}) == ""


def test_what_spark_defaults_say_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same setting given to spark-submit would replace it."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    lines = [
        f"{JAVA_OPTIONS}   -Dfirst=1",
        f"  {JAVA_OPTIONS}=-Dproxy=here -Dport=1  ",
        f"{CLASS_PATH} /opt/a.jar",
        f"#{CLASS_PATH} /opt/b.jar",
    ]
    (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
    found = driver_options({}, jars())
    assert found[JAVA_OPTIONS].endswith(" -Dproxy=here -Dport=1")
    assert found[CLASS_PATH].endswith(f"{os.pathsep}/opt/a.jar")
    assert driver_options({JAVA_OPTIONS: "-Dmine=1"}, jars())[JAVA_OPTIONS].endswith("log4j2.properties -Dmine=1")


def test_one_command_is_compiled_by_the_first_compiler_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    assert "-XX:TieredStopAtLevel=1" in java_options({}, briefly=True).split()
    assert "-XX:TieredStopAtLevel=1" not in java_options({}).split()
    chosen = "-XX:Tier4InvocationThreshold=5000"
    assert java_options({"spark.driver.extraJavaOptions": chosen}, briefly=True) == "-XX:+UseParallelGC"


def test_columns_look_for_no_class_in_the_jars(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    jvm_of(spark)
    looked_for: list[str] = []
    monkeypatch.setattr(JVMView, "__getattr__", lambda _, name: looked_for.append(name))
    frame = spark.range(3).groupBy("id").agg(F.count(F.lit(1)).alias("n")).select(F.col("id") + 1, "n").where(F.expr("n > 1"))
    assert (frame.columns, looked_for) == (["(id + 1)", "n"], [])


@pytest.mark.skipif("PYSPARK_PYTHON" in os.environ, reason="chosen by the user")
def test_a_small_table_that_is_broadcast_takes_little_of_the_driver(spark: SparkSession) -> None:
    """Spark builds it in pages of 64 MB, and keeps it until the collector finds that nobody asks for it any more."""
    manager = jvm_of(spark).org.apache.spark.SparkEnv.get().memoryManager()
    before = manager.storageMemoryUsed()
    joined = spark.range(10).join(F.broadcast(spark.range(5)), "id")
    assert joined.count() == 5
    assert manager.storageMemoryUsed() - before < 16 * 2**20


def test_functions_in_python_run_in_the_python_that_lakejoin_runs_in(spark: SparkSession) -> None:
    """`.venv/bin/lakejoin`, without an activated environment, is how most schedulers run it."""
    here = F.udf(lambda _: sys.executable, "string")
    assert spark.range(1).select(here("id")).head() == (sys.executable,)


def _started(options: str) -> subprocess.CompletedProcess[str]:
    code = f"""
from lake.spark.session import make_session
spark = make_session({{"spark.master": "local[1]", "spark.driver.extraJavaOptions": {options!r}}})
print(spark.range(3).count(), spark._jvm.java.lang.Class.forName("io.delta.tables.DeltaTable").getClassLoader().getClass().getSimpleName())
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.skipif(not class_archive().exists(), reason="make setup has made no archive here")
def test_the_archive_fits_the_class_path_of_a_session() -> None:
    """With -Xshare:on a JVM ends at once where it can't map the archive."""
    found = _started("-Xshare:on")
    assert found.returncode == 0, found.stderr
    assert found.stdout.split() == ["3", "AppClassLoader"]


@pytest.mark.slow
def test_another_class_path_starts_without_the_archive(tmp_path: Path) -> None:
    """Nothing is said of it: standard output is for answers."""
    found = _started(f"-XX:SharedArchiveFile={tmp_path / 'none.jsa'} -Xshare:auto -Xlog:disable")
    assert found.returncode == 0, found.stderr
    assert found.stdout.split() == ["3", "AppClassLoader"]
