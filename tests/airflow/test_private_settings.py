"""Values from ${VARIABLES} reach spark-submit, and neither Airflow's database, nor a rendered template, nor the process list."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException
from airflow.serialization.serialized_objects import DagSerialization

from lake.airflow import airflow_dags
from lake.airflow.operators import LakejoinOperator
from lake.airflow.private_settings import escaped, properties_file
from lake.airflow.settings import Deployment
from lake.spark.preflight import AT_START
from tests.airflow.conftest import JOIN

Written = Callable[..., Path]
SECRET = "hunter2/=\\ :x"
SPARK = {
    "spark.hadoop.fs.s3a.secret.key": "${LAKE_SECRET}",
    "spark.driver.extraJavaOptions": "-Dpassword=${LAKE_SECRET}",
    "spark.driver.memory": "2g",
}
VIEWS = {"v": {"query": JOIN, "realtime": True}}


@pytest.fixture
def file(written: Written, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    return written(VIEWS, spark=SPARK, airflow={"submit": {"conf": {"spark.ssl.keyPassword": "${LAKE_SECRET}", "spark.x": "y"}}})


def context() -> Any:
    return {"ti": SimpleNamespace(dag_id="d", try_number=1, max_tries=2), "run_id": "manual__1"}


def test_no_dag_and_no_template_field_has_the_value(file: Path) -> None:
    dags = airflow_dags(file)
    assert Deployment.of(file).private_conf["spark.ssl.keyPassword"] == SECRET  # it is known where the application is started
    for dag in dags.values():
        stored = json.dumps(DagSerialization.to_dict(dag), default=str)
        fields = [getattr(task, field, None) for task in dag.tasks for field in task.template_fields]
        assert "hunter2" not in stored + repr(fields)
    for task in ("refresh", "views.v"):
        assert dags["lakejoin_refresh_v"].get_task(task).conf == {**AT_START, "spark.driver.memory": "2g", "spark.x": "y"}


@pytest.mark.parametrize("failing", [False, True])
def test_spark_submit_reads_what_it_needs_from_a_private_file_that_is_removed(
    file: Path, monkeypatch: pytest.MonkeyPatch, failing: bool
) -> None:
    seen: list[Path] = []

    def execute(self: LakejoinOperator, context: Any) -> None:
        command = self._get_hook()._build_spark_submit_command(str(self.application))
        assert not any("hunter2" in word for word in command)
        place = Path(command[command.index("--properties-file") + 1])
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
        text = place.read_text()
        assert "spark.driver.extraJavaOptions -Dpassword=hunter2" in text
        assert "spark.ssl.keyPassword hunter2" in text
        assert "s3a" not in text  # the application reads that itself
        seen.append(place)
        if failing:
            raise AirflowException("Error code is: 1.")

    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[1]"}')
    monkeypatch.setattr(SparkSubmitOperator, "execute", execute)
    task = LakejoinOperator(task_id="verify", deployment=Deployment.of(file), command=["verify", "--all"])
    if failing:
        with pytest.raises(AirflowException):
            task.execute(context())
    else:
        task.execute(context())
    assert not seen[0].parent.exists()
    assert task.properties_file is None


def test_settings_of_an_environment_are_compared_as_they_are_written(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    plain, secret = {"spark": {"spark.driver.memory": "2g"}}, {"spark": {"spark.driver.memory": "${LAKE_SECRET}"}}
    file = written(VIEWS, spark=SPARK, environments={"plain": plain, "secret": secret})
    assert Deployment.of(file, "plain").public_conf == {"spark.driver.memory": "2g"}
    assert Deployment.of(file, "secret").public_conf == {}


def test_without_private_settings_there_is_no_file(written: Written) -> None:
    assert Deployment.of(written(VIEWS, spark={"spark.driver.memory": "2g"})).private_conf == {}
    with properties_file({}) as none, properties_file({}, "of-the-user.properties") as own:
        assert (none, own) == (None, "of-the-user.properties")


def test_the_settings_of_the_file_that_the_new_one_replaces_still_apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.of.machine 1")
    (tmp_path / "own.properties").write_text("spark.of.user 1")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    with properties_file({"spark.a": "b"}) as default, properties_file({"spark.a": "b"}, str(tmp_path / "own.properties")) as own:
        assert Path(str(default)).read_text() == "spark.of.machine 1\nspark.a b\n"
        assert Path(str(own)).read_text() == "spark.of.user 1\nspark.a b\n"


@pytest.mark.parametrize(("value", "text"), [("a\\b\nc", "a\\\\b\\nc"), (" a", "\\ a"), ("=a", "\\=a"), ("a=b c", "a=b c")])
def test_values_are_escaped_as_java_reads_them(value: str, text: str) -> None:
    assert escaped(value) == text


def test_dag_files_load_neither_pyspark_nor_great_expectations(written: Written) -> None:
    file = written({**VIEWS, "w": {"query": "SELECT id FROM v", "refresh": "changes"}}, airflow={"check_after_refresh": True})
    folder = Path(__file__).resolve().parents[2] / "dags"
    code = """
import runpy, sys
for file in sys.argv[1:]:
    runpy.run_path(file)
print(*sorted({name.split(".")[0] for name in sys.modules} & {"pyspark", "py4j", "great_expectations", "pandas"}))
"""
    files = [str(folder / name) for name in ("lakejoin.py", "lakejoin_invalid.py")]
    env = {**os.environ, "LAKEJOIN_CONFIG": str(file), "PYTHONPATH": str(folder.parent)}
    ended = subprocess.run([sys.executable, "-c", code, *files], env=env, capture_output=True, text=True, cwd=file.parent)
    assert (ended.returncode, ended.stdout.split()) == (0, []), ended.stderr


def test_the_old_import_works_and_warns() -> None:
    code = "import warnings; warnings.simplefilter('error'); import dags.factory"
    folder = Path(__file__).resolve().parents[2]
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    assert "DeprecationWarning: dags.factory has moved: write `from lake.airflow import airflow_dags`" in failed.stderr
    same = "import warnings; warnings.simplefilter('ignore'); import dags.factory, lake.airflow\n"
    subprocess.run([sys.executable, "-c", f"{same}assert dags.factory.airflow_dags is lake.airflow.airflow_dags"], cwd=folder, check=True)
