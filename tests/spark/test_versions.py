"""Pairs of versions of Spark and Delta Lake: those that are tested are used, others are refused, unless the configuration allows them."""

from __future__ import annotations

import configparser
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from pyspark.sql import SparkSession

from lake import open_lake
from lake.errors import ConfigError
from lake.spark import versions
from lake.spark.versions import TESTED, refuse_untested
from tests.lakes import TestLake

SETUP = Path(__file__).parents[2] / "setup.cfg"


@pytest.mark.parametrize(("spark", "delta"), [("4.2.0", "4.4.0"), ("4.1.4", "4.4.0"), ("4.0.2-amzn-0", "4.4.0")])
def test_tested_pairs_are_used_in_any_patch_release(spark: str, delta: str) -> None:
    refuse_untested(spark, delta)


@pytest.mark.parametrize(
    ("spark", "delta", "nearest"),
    [
        ("4.3.0", "4.4.0", "4.2"),
        ("3.5.9", "3.3.2", "4.0"),
        ("4.1.2", "4.2.0", "4.1"),
        ("5.0.0-preview1", "5.0.0", "4.2"),
    ],
)
def test_others_are_refused_with_the_nearest_that_is_tested(spark: str, delta: str, nearest: str) -> None:
    with pytest.raises(ConfigError, match=rf"Spark {spark} and Delta Lake {delta}\. The nearest .* Spark {nearest} and .*allow_untested"):
        refuse_untested(spark, delta)


def test_what_pip_installs_is_tested() -> None:
    """The bounds of setup.cfg and the list name the same minor versions."""
    refuse_untested(version("pyspark"), version("delta-spark"))
    setup = configparser.ConfigParser()
    setup.read(SETUP)
    wanted = dict(line.split(maxsplit=1) for line in setup["options"]["install_requires"].splitlines() if line.strip())
    allowed = SpecifierSet(wanted["pyspark"])
    assert [f"4.{n}" for n in range(10) if any(f"4.{n}.{patch}" in allowed for patch in range(10))] == [spark for spark, _ in TESTED]
    assert wanted["delta-spark"] == ">=4.4.0,<4.4.1"


def test_a_session_is_asked_before_its_first_use(lake: TestLake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "TESTED", (("9.8", "7.6"),))
    lake.table("a", "SELECT 1 AS id")
    lake.view("v", "SELECT id FROM a")
    with pytest.raises(ConfigError, match=rf"Spark {spark.version} and Delta Lake {version('delta-spark')}.*Spark 9.8 and Delta Lake 7.6"):
        lake.refresh("v")
    assert open_lake({**lake.config, "allow_untested": True}, spark=spark).refresh("v").mode == "build"
