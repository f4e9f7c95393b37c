"""A jar that is not on the class path is named by every verb, with what to do: the library of S3, for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import lake.views.registry as open_views
from lake.cli.app import app
from lake.spark.jvm import class_path
from lake.spark.jvm.gateway import jvm_of
from tests.lakes import TestLake

MISSING = Path(__file__).parent.parent / "jvm" / "lakejoin_tests" / "MissingJar.java"
# scheme: the jar; verbs where the source has that scheme; verbs where the table of the view has it
VERBS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "s3a": ("org.apache.hadoop:hadoop-aws:3.", ("verify v",), ("show v", "refresh v")),
    "nojar": (
        "analyticsaccelerator-s3",
        ("refresh v", "verify v", "explain v", "status v", "check v", "maintain --all", "doctor", "backfill v --since a=0"),
        ("show v", "refresh v", "history v", "doctor"),
    ),
}


@pytest.fixture
def no_jar(spark: SparkSession) -> Iterator[None]:
    """The scheme nojar, whose file system lacks a class."""
    jvm, conf = jvm_of(spark), spark._jsc.hadoopConfiguration()
    conf.set("fs.nojar.impl", class_path.put(jvm, class_path.loader(jvm), MISSING))
    yield
    conf.unset("fs.nojar.impl")


@pytest.mark.parametrize("scheme", VERBS)
def test_every_verb_names_the_jar(lake: TestLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_jar: None, scheme: str) -> None:
    jar, of_sources, of_views = VERBS[scheme]
    lake.table("a", "SELECT * FROM VALUES (1, 'x') t(id, s)")
    lake.view("v", "SELECT id, s FROM a")
    lake.refresh("v")
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: lake.spark)
    elsewhere, silent = f"{scheme}://bucket", dict[str, str]()

    def run(config: dict[str, Any], verbs: tuple[str, ...]) -> None:
        (tmp_path / "lakejoin.yml").write_text(yaml.safe_dump(config))
        for verb in verbs:
            answer = CliRunner().invoke(app, ["--config", str(tmp_path / "lakejoin.yml"), *verb.split()])
            said = answer.stdout + answer.stderr
            if answer.exit_code == 0 or jar not in said or "Traceback" in said or "py4j" in said or "Check `tables" in said:
                silent[f"{verb} ({config.get('target')})"] = said[-1500:]

    run({**lake.config, "tables": {"a": {"path": f"{elsewhere}/a", "maintain": True}}, "target": lake.path("views")}, of_sources)
    run({**lake.config, "target": f"{elsewhere}/views", "single_writer": True}, of_views)
    assert silent == {}
