"""Every failure of Spark is reported as a LakeError: its cause in one line, without stack traces and without values of the data."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from typer.testing import CliRunner

from lake.cli import app as command
from lake.cli.scheduled_run import GroupRefresh
from lake.core.redaction import Samples
from lake.errors import EngineError, InternalError, LakeError, QueryError
from lake.realtime.run import RealtimePath
from lake.spark.failures import SPARK_ERRORS, as_lake_error, is_transient, reason, reported, root_cause
from lake.spark.jvm.gateway import jvm_of
from tests.lakes import TestLake

SECRET = "fortyseven"


def of_java(spark: SparkSession, error: object) -> Exception:
    """The exception that PySpark raises where a call of the JVM throws this."""
    future = jvm_of(spark).java.util.concurrent.CompletableFuture()
    future.completeExceptionally(error)
    with pytest.raises(SPARK_ERRORS) as caught:
        future.get()
    return caught.value


@pytest.mark.parametrize(
    ("name", "message", "said", "remedy"),
    [
        ("java.io.IOException", "No space left on device", "No space left on device", "Free space"),
        ("java.io.IOException", "/data/x (Read-only file system)", "Read-only file system", "not read-only"),
        ("java.nio.file.AccessDeniedException", "/data/x", "permission denied: /data/x", "the permission to read and write"),
        (
            "java.lang.ClassNotFoundException",
            "org.apache.hadoop.fs.s3a.S3AFileSystem",
            "S3AFileSystem was not found: a jar is missing (org.apache.hadoop:hadoop-aws:3.",
            "doctor",
        ),
        ("java.lang.NoClassDefFoundError", "software/amazon/awssdk/Core", "software.amazon.awssdk.Core was not found", "awssdk:bundle"),
        ("java.lang.NoClassDefFoundError", "software/amazon/s3/analyticsaccelerator/X", "X was not found", "analyticsaccelerator-s3)"),
        ("java.lang.NoClassDefFoundError", "Could not initialize class a.B", "Could not initialize class a.B", "--debug"),
        ("java.io.IOException", 'No FileSystem for scheme "s3"', "Hadoop knows no file system for s3", "whose scheme is s3a"),
        ("java.lang.OutOfMemoryError", "Java heap space", "the JVM ran out of memory (Java heap space)", "driver.memory"),
    ],
)
def test_the_innermost_java_cause_is_reported_with_what_to_do(spark: SparkSession, name: str, message: str, said: str, remedy: str) -> None:
    jvm = jvm_of(spark)
    cause = jvm.java.lang.Class.forName(name).getConstructor(_array(jvm, "java.lang.String")).newInstance(_objects(jvm, message))
    error = as_lake_error(of_java(spark, jvm.java.lang.RuntimeException("a task failed", cause)), "Reading view 'q'", Samples("rows"))
    assert isinstance(error, EngineError)
    text = str(error)
    assert text.startswith("Reading view 'q' failed: ")
    assert said in text
    assert remedy in text
    assert "An error occurred" not in text
    assert "\n" not in text
    assert "a task failed" not in text


def _array(jvm: object, name: str) -> object:
    made = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName("java.lang.Class"), 1)  # type: ignore[attr-defined]
    made[0] = jvm.java.lang.Class.forName(name)  # type: ignore[attr-defined]
    return made


def _objects(jvm: object, *values: str) -> object:
    made = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName("java.lang.Object"), len(values))  # type: ignore[attr-defined]
    for i, value in enumerate(values):
        made[i] = value
    return made


def test_a_failed_cast_is_reported_without_its_value_unless_rows_may_be_shown(spark: SparkSession) -> None:
    with pytest.raises(SPARK_ERRORS) as caught:
        spark.sql(f"SELECT CAST(v AS INT) FROM VALUES ('{SECRET}') AS t(v)").collect()
    assert SECRET in root_cause(caught.value)
    assert reason(caught.value) == "[CAST_INVALID_INPUT]"
    error = as_lake_error(caught.value, "Reading view 'q'")
    assert isinstance(error, QueryError)
    assert SECRET not in str(error)
    assert "[CAST_INVALID_INPUT]" in str(error)
    assert SECRET in str(as_lake_error(caught.value, "Reading view 'q'", Samples("rows")))
    assert SECRET not in str(as_lake_error(caught.value, "Reading view 'q'", Samples("off")))


def test_what_a_python_function_raises_is_reported_without_its_values(spark: SparkSession) -> None:
    failing = F.udf(lambda v: int(v), "int")
    with pytest.raises(SPARK_ERRORS) as caught:
        spark.sql(f"SELECT '{SECRET}' AS v").select(failing("v")).collect()
    error = as_lake_error(caught.value, "Reading view 'q'")
    assert isinstance(error, QueryError)
    assert "a Python function raised ValueError" in str(error)
    assert SECRET not in str(error)
    assert "Traceback" not in str(error)


def test_a_missing_table_is_reported_by_sparks_message(spark: SparkSession) -> None:
    with pytest.raises(PySparkException) as caught:
        spark.sql("SELECT * FROM no_such_table").collect()
    assert "[TABLE_OR_VIEW_NOT_FOUND]" in str(as_lake_error(caught.value, "Reading view 'q'"))


def test_a_lost_jvm_is_reported_as_such() -> None:
    for lost in (Py4JNetworkError("Answer from Java side is empty"), ConnectionRefusedError(111, "Connection refused")):
        error = as_lake_error(lost, "Refreshing view 'q'")
        assert isinstance(error, EngineError)
        assert "the JVM of Spark ended" in str(error)
        assert "in a new process" in str(error)
        assert is_transient(error)


def test_py4js_own_errors_are_reported_without_the_number_of_an_object() -> None:
    raised = Py4JError("An error occurred while calling o123.get. Trace:\npy4j.Py4JException: Method get([]) does not exist")
    text = str(as_lake_error(raised, "Reading view 'q'"))
    assert "Method get([]) does not exist" in text
    assert "o123" not in text


def test_any_other_exception_asks_to_be_reported() -> None:
    error = as_lake_error(KeyError("deleted"), "Refreshing view 'q'")
    assert isinstance(error, InternalError)
    assert "KeyError" in str(error)
    assert "--debug" in str(error)


def test_a_lake_error_stays_as_it_is_within_a_report() -> None:
    with pytest.raises(QueryError, match="as it is"), reported("Reading"):
        raise QueryError("as it is")
    with pytest.raises(EngineError), reported("Reading"):
        raise Py4JNetworkError("gone")


def test_a_failed_cast_shows_its_value_in_no_error_run_log_or_lease(lake: TestLake, caplog: pytest.LogCaptureFixture) -> None:
    lake.table("a", "VALUES (1, '5') AS t(id, v)")
    lake.table("b", "VALUES (1) AS t(id)")
    lake.view("v", "SELECT id, CAST(v AS INT) AS v FROM a", realtime={"attempts": 1})
    lake.view("w", "SELECT id FROM b")
    opened = lake.open
    opened.refresh("v")
    opened.on("eventual").refresh("v")
    lake.sql(f"INSERT INTO {{a}} VALUES (2, '{SECRET}')")
    caplog.set_level(logging.DEBUG, "lakejoin")
    with pytest.raises(QueryError) as caught:
        opened.refresh("v")
    outcomes = GroupRefresh(opened, ["v", "w"], None, None, lambda _: None).run().outcomes
    path = RealtimePath(opened.on("eventual"), "v", threading.Event(), drain=True)
    path.run()
    lease = next(Path(lake.folder).rglob("_lakejoin/[!.]*")).read_text()
    ours = "".join(record.getMessage() for record in caplog.records if record.name == "lakejoin")
    said = [str(caught.value), json.dumps([outcome.to_json() for outcome in outcomes]), json.dumps(path.metrics.to_json()), lease, ours]
    assert [text for text in said if "CAST_INVALID_INPUT" not in text] == []
    assert [text for text in said if SECRET in text] == []
    assert [outcome.state for outcome in outcomes] == ["failed", "done"]


def test_a_row_that_breaks_a_constraint_of_the_table_is_not_quoted(lake: TestLake) -> None:
    lake.table("a", f"VALUES (1, '{SECRET}') AS t(id, v)")
    lake.view("v", "SELECT id, v FROM a")
    lake.refresh("v")
    lake.sql(f"ALTER TABLE {lake.of_view('v')} ADD CONSTRAINT short CHECK (length(v) < 20)")
    lake.sql(f"INSERT INTO {{a}} VALUES (2, '{SECRET * 3}')")
    with pytest.raises(LakeError) as caught:
        lake.refresh("v")
    assert SECRET not in str(caught.value)


def test_the_command_reports_any_exception_in_one_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = tmp_path / "lakejoin.yml"
    config.write_text("tables: {a: {path: a}}\nviews: {v: {query: SELECT 1 AS x FROM a}, w: {query: SELECT 2 AS x FROM a}}\n")
    monkeypatch.setattr("lake.opening.Lakehouse.explain", _lost)
    monkeypatch.setattr("lake.opening.Lakehouse.verify", _lost)
    ended = CliRunner().invoke(command.app, ["--config", str(config), "explain", "v"])
    assert (ended.exit_code, "lakejoin: The command failed: the JVM of Spark ended" in ended.stderr) == (2, True)
    assert "Traceback" not in ended.stderr
    ended = CliRunner().invoke(command.app, ["--debug", "--config", str(config), "explain", "v"])
    assert "Traceback" in ended.stderr


def _lost(*_: object) -> None:
    raise Py4JNetworkError("Answer from Java side is empty")
