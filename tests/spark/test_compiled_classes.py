"""Lakejoin's Java classes: from the jar that set-up has compiled, of these sources only, or compiled by the session."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lake.errors import ConfigError
from lake.spark import compiled_classes, preflight
from lake.spark.driver_options import CLASS_PATH, driver_options
from lake.spark.jvm import gateway
from lake.spark.jvm.gateway import Jvm, jvm_of

needs_jar = pytest.mark.skipif(not preflight.own_classes().exists(), reason="make setup has compiled no classes of these sources here")
JANINO = "org.codehaus.janino.JavaSourceClassLoader"


def loader_of(jvm: Jvm) -> str:
    return str(jvm.own("Versions").getClass().getClassLoader().getClass().getName())


@needs_jar
def test_a_session_takes_the_classes_of_the_jar(spark: SparkSession) -> None:
    assert loader_of(jvm_of(spark)) == "jdk.internal.loader.ClassLoaders$AppClassLoader"


@needs_jar
def test_classes_of_other_sources_are_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "own_marker", lambda: "lakejoin/classes-of-other-sources")
    with pytest.raises(ConfigError, match=r"another version of Lakejoin .*lakejoin-.*\.jar.*lakejoin setup"):
        Jvm(spark._jvm).own("Versions")


def test_a_jar_is_of_its_sources_and_takes_the_place_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = tmp_path / "lakejoin"
    sources.mkdir()
    for source in preflight.JAVA_SOURCES.glob("*.java"):
        (sources / source.name).write_bytes(source.read_bytes())
    monkeypatch.setattr(preflight, "JAVA_SOURCES", sources)
    preflight._classes.cache_clear()
    try:
        before = preflight.own_classes(), preflight.class_archive(), preflight.own_marker()
        (sources / "Sequences.java").write_text("package lakejoin; class Sequences {}")
        preflight._classes.cache_clear()
        assert not set(before) & {preflight.own_classes(), preflight.class_archive(), preflight.own_marker()}
    finally:
        monkeypatch.undo()
        preflight._classes.cache_clear()


@pytest.mark.slow
def test_the_jar_has_all_classes_and_takes_the_place_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar, other = tmp_path / "own" / "lakejoin-new.jar", tmp_path / "own" / "lakejoin-old.jar"
    other.parent.mkdir()
    other.touch()
    (other.parent / "postgresql.jar").touch()
    assert compiled_classes.make(jar) == ""
    assert (compiled_classes.make(jar), other.exists()) == ("", False)
    assert (other.parent / "postgresql.jar").exists()
    names = set(zipfile.ZipFile(jar).namelist())
    assert {f"lakejoin/{source.stem}.class" for source in preflight.JAVA_SOURCES.glob("*.java")} | {preflight.own_marker()} <= names
    (tmp_path / "file").touch()
    assert "can't be written" in compiled_classes.make(tmp_path / "file" / "own" / "new.jar")


_WITHOUT_THE_JAR = """
import lake.spark.driver_options as options
from lake.spark.preflight import JAVA_SOURCES

options._own = lambda: []

from lake.spark.jvm.gateway import jvm_of
from lake.spark.session import make_session

session = make_session({})
loader = jvm_of(session)._loader
for source in sorted(JAVA_SOURCES.glob("*.java")):
    loader.loadClass(f"lakejoin.{source.stem}")
print(loader.getClass().getName())
"""


@pytest.mark.slow
def test_a_session_without_the_jar_compiles_all_classes() -> None:
    ended = subprocess.run([sys.executable, "-c", _WITHOUT_THE_JAR], capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout.splitlines()[-1:]) == (0, [JANINO]), ended.stderr[-2000:]


def test_the_jar_is_on_the_class_path_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = tmp_path / "classes.jar"
    monkeypatch.setattr("lake.spark.driver_options.own_classes", lambda: jar)
    delta = ["/j/io.delta_delta-spark_4.2_2.13-4.4.0.jar"]
    assert str(jar) not in driver_options({}, delta)[CLASS_PATH]
    jar.touch()
    assert driver_options({CLASS_PATH: "/mine.jar"}, delta)[CLASS_PATH].split(":") == [*delta, str(jar), "/mine.jar"]
    assert CLASS_PATH not in driver_options({}, [])
