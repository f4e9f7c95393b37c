"""Runs tests on each pair of versions of Spark and Delta Lake that is supported (`make versions`), each in an environment of its own.

Then views that the oldest pair has built are refreshed by the next one, and so on: an upgrade. Results: benchmarks/results/versions.json,
of which docs/reference/versions.md is made.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from lake import Lakehouse, open_lake
from lake.errors import DefinitionChangedError
from lake.spark.versions import TESTED

ROOT = Path(__file__).parents[1]
ENVIRONMENTS, RESULTS = ROOT / ".versions", ROOT / "benchmarks" / "results" / "versions.json"
TESTS = ("tests/relations", "tests/refresh", "tests/delta", "tests/views", "tests/catalyst", "tests/spark")
"""The laws of all operators, histories, publishing, kills, and what is known of functions and types."""
VIEWS = {
    "joined": "SELECT f.id, f.v, d.name FROM f JOIN d ON f.g = d.g",
    "padded": "SELECT d.g, d.name, f.id FROM d LEFT JOIN f ON f.g = d.g AND f.v > 3",
    "grouped": "SELECT g, count(*) AS n, sum(v) AS total, avg(v) AS mean, max(v) AS most FROM f GROUP BY g",
    "distinct_values": "SELECT g, count(DISTINCT v) AS n, sum(v / 3D) AS part FROM f GROUP BY g",
    "ranked": "SELECT id, g, rank() OVER (PARTITION BY g ORDER BY v DESC, id) AS place FROM f",
    "above": "SELECT id FROM f WHERE v > (SELECT avg(v) FROM f)",
    "top": "SELECT id, v FROM f ORDER BY v DESC, id LIMIT 5",
}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("spark", nargs="*", help="minor versions of Spark, for example 4.1; by default all that are supported")
    parser.add_argument("--tests", nargs="*", default=TESTS, help="which tests to run; none: only the upgrade")
    chosen = parser.parse_args(arguments)
    pairs = [pair for pair in TESTED if pair[0] in (chosen.spark or [spark for spark, _ in TESTED])]
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"pairs": {}, "upgrades": {}}
    for spark, delta in pairs:
        python = _environment(spark, delta)
        if chosen.tests:
            found["pairs"][spark] = _tested(python, chosen.tests)
            _store(found)
    for (older, _), (newer, _) in pairwise(pairs):
        found["upgrades"][f"{older} to {newer}"] = _upgraded(_python(older), _python(newer))
        _store(found)
    failed = any(pair["failed"] for pair in found["pairs"].values())
    return int(failed or not all(exact for views in found["upgrades"].values() for exact in views.values()))


def _store(found: Mapping[str, Any]) -> None:
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def _python(spark: str) -> Path:
    return ENVIRONMENTS / spark / "bin" / "python"


def _environment(spark: str, delta: str) -> Path:
    """The Python of an environment with these versions, made if there is none."""
    python = _python(spark)
    if not python.exists():
        print(f"Installing Spark {spark} and Delta Lake {delta}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENTS / spark)], check=True)
        wanted = [f"{ROOT}[quality,examples,development]", f"pyspark=={spark}.*", f"delta-spark=={delta}.*"]
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--editable", *wanted], check=True)
        subprocess.run([str(python), "-m", "lake.cli", "setup"], check=True, cwd=ROOT)
    return python


def _tested(python: Path, tests: Sequence[str]) -> dict[str, Any]:
    """Which versions were tested, and how many tests passed, failed (with their names) and were skipped."""
    names = "import importlib.metadata as m; print(m.version('pyspark'), m.version('delta-spark'))"
    spark, delta = subprocess.run([str(python), "-c", names], check=True, capture_output=True, text=True).stdout.split()
    print(f"Testing Spark {spark} and Delta Lake {delta}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [str(python), "-m", "pytest", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider", f"--junitxml={report}", *tests]
        subprocess.run(command, check=False, cwd=ROOT)
        cases = list(ElementTree.parse(report).iter("testcase"))
    bad = [case for case in cases if any(case.find(outcome) is not None for outcome in ("failure", "error"))]
    wrong = [f"{case.get('classname')}::{case.get('name')}" for case in bad]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return {
        "spark": spark,
        "delta": delta,
        "tests": list(tests),
        "passed": len(cases) - len(wrong) - skipped,
        "skipped": skipped,
        "failed": wrong,
        "minutes": round((time.monotonic() - started) / 60),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _upgraded(older: Path, newer: Path) -> dict[str, bool]:
    """Whether each view that the older pair has built is exact after the newer one has gone on from it."""
    with tempfile.TemporaryDirectory() as folder:
        for python, step in ((older, "build"), (newer, "go_on")):
            command = [str(python), "-c", f"from tests.versions import {step}; {step}({folder!r})"]
            subprocess.run(command, check=True, cwd=ROOT)
        found: dict[str, bool] = json.loads(Path(folder, "found.json").read_text())
    return found


def _opened(folder: str) -> Lakehouse:
    tables = {"f": {"path": "f", "primary_key": ["id"]}, "d": {"path": "d", "primary_key": ["g"]}}
    return open_lake({"root": folder, "tables": tables, "views": {name: {"query": query} for name, query in VIEWS.items()}})


def _changed(lake: Lakehouse, folder: str, step: int) -> None:
    f, d = (f"delta.`{folder}/{table}`" for table in ("f", "d"))
    lake.spark.sql(f"INSERT INTO {f} SELECT id + {1000 * step}, id % 7, id % 11 FROM range(50)")
    lake.spark.sql(f"UPDATE {f} SET v = v + {step}, g = (g + 1) % 8 WHERE id % 13 = {step}")
    lake.spark.sql(f"DELETE FROM {f} WHERE id % 17 = {step}")
    lake.spark.sql(f"UPDATE {d} SET name = concat(name, '{step}') WHERE g % 3 = {step % 3}")


def build(folder: str) -> None:
    """In the older pair: tables, views, and a refresh of each."""
    lake = _opened(folder)
    lake.spark.sql("SELECT id, id % 7 AS g, id % 5 AS v FROM range(200)").write.format("delta").save(f"{folder}/f")
    lake.spark.sql("SELECT id AS g, concat('n', id) AS name FROM range(9)").write.format("delta").save(f"{folder}/d")
    lake.refresh_all()
    _changed(lake, folder, 1)
    assert {result.mode for result in lake.refresh_all()} == {"incremental"}


def go_on(folder: str) -> None:
    """In the newer pair: a refresh asks for a rebuild, after which the next one is incremental."""
    lake, found = _opened(folder), dict[str, bool]()
    _changed(lake, folder, 2)
    for view in VIEWS:
        try:
            lake.refresh(view)
            asked = False
        except DefinitionChangedError:
            asked = True
        lake.rebuild(view)
        found[view] = asked and lake.verify(view).exact
    _changed(lake, folder, 3)
    for view in VIEWS:
        found[view] &= lake.refresh(view).mode == "incremental" and lake.verify(view).exact
    Path(folder, "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
