"""`lakejoin doctor`: checks the versions of packages, the jars and every table and folder of the configuration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from lake.config.loader import load
from lake.config.models import AirflowConfig, Config
from lake.errors import LakeError
from lake.spark import preflight
from lake.spark.versions import untested

_AIRFLOW_ANSWERS_WITHIN = 60
_SAFE_SCHEMES = frozenset({"", "file", "hdfs", "abfs", "abfss", "wasbs", "gs", "dbfs", "viewfs"})


@dataclass(frozen=True)
class DoctorCheck:
    """The result of one check. `remedy`: how to fix it if it is not ok."""

    what: str
    ok: bool
    found: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def examine(config_path: Path, env: str | None) -> list[DoctorCheck]:
    """Check the machine and the configuration. A temporary file is written to the target and removed; nothing else is changed."""
    try:
        config = load(config_path, env)
    except LakeError as error:
        return [*_machine(None), DoctorCheck("configuration", False, str(error), "Correct it, then run doctor again.")]
    findings = list(_machine(config))
    findings.append(DoctorCheck("configuration", True, f"{config_path}: {len(config.tables)} tables, {len(config.views)} views"))
    if all(f.ok for f in findings):
        findings += _lake(config)
    scheduled = config.airflow != AirflowConfig() or any(view.schedule or view.refresh for view in config.views.values())
    return [*findings, *(_airflow(config.airflow) if scheduled else ())]


def _packages(config: Config | None) -> Iterator[DoctorCheck]:
    """PySpark and delta-spark, which must be versions that are tested together, unless the configuration allows others."""
    found = dict[str, str]()
    for package in ("pyspark", "delta-spark"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            yield DoctorCheck(package, False, "not installed", f'Install it: pip install "{package}".')
    if len(found) < 2:
        return
    problem = untested(found["pyspark"], found["delta-spark"])
    allowed = config is not None and config.allow_untested
    text = f"{found['pyspark']} and {found['delta-spark']}"
    yield DoctorCheck("pyspark and delta-spark", not problem or allowed, f"{text}, not tested together" if problem else text, problem)


def _machine(config: Config | None) -> Iterator[DoctorCheck]:
    problem = preflight.python_problem()
    yield DoctorCheck("Python", problem is None, sys.version.split()[0], problem or "")
    problem = preflight.java_problem()
    yield DoctorCheck("Java", problem is None, str(preflight.java_version() or "none"), problem or "")
    yield from _packages(config)
    here = preflight.jars()
    yield DoctorCheck(
        "Delta's jars",
        True,
        f"{len(here)} in {preflight.jar_folder()}" if here else "not downloaded yet: the first use does it, or lakejoin setup",
    )
    own = preflight.own_classes()
    yield DoctorCheck("Java classes", True, str(own) if own.exists() else "not compiled yet: each session does (or lakejoin setup, once)")
    archive = preflight.class_archive()
    yield DoctorCheck(
        "Class archive",
        True,
        str(archive) if archive.exists() else "none: Spark starts slower (lakejoin setup makes one)",
    )


def _lake(config: Config) -> Iterator[DoctorCheck]:
    from lake.opening import opened

    lake = opened(config)
    yield DoctorCheck("Spark", True, f"{lake.spark.version}, master {lake.spark.sparkContext.master}")
    for name in config.tables:
        try:
            head = lake.source_head(name)
            feed = "change data feed on" if head.has_feed else "no change data feed: changes are read from data files"
            yield DoctorCheck(f"table {name}", True, f"version {head.version.number}, {feed}")
        except LakeError as error:
            yield DoctorCheck(f"table {name}", False, str(error))
    yield from _targets(lake, config)


def _airflow(settings: AirflowConfig) -> Iterator[DoctorCheck]:
    """The pool and the connection that the DAGs use, by the `airflow` command beside this Python."""
    command = str(Path(sys.executable).with_name("airflow"))
    asked = ("pools", "list"), ("connections", "list")
    try:
        pools, connections = (_listed(command, *words) for words in asked)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        yield DoctorCheck("Airflow", True, "not installed here, or its database can't be reached: pool and connection not examined")
        return
    there = settings.pool in {pool["pool"] for pool in pools}
    remedy = f'Run: airflow pools set {settings.pool} 1 "Spark applications at a time"'
    yield DoctorCheck(
        f"Airflow's pool {settings.pool}", there, "exists" if there else "missing: tasks would wait for it without end", remedy
    )
    variable = f"AIRFLOW_CONN_{settings.conn_id.upper()}"
    there = variable in os.environ or settings.conn_id in {connection["conn_id"] for connection in connections}
    remedy = f"Run: airflow connections add {settings.conn_id} --conn-type spark --conn-host 'local[*]' (or spark://..., yarn, k8s://...)"
    yield DoctorCheck(f"Airflow's connection {settings.conn_id}", there, "exists" if there else "missing", remedy)


def _listed(*command: str) -> list[dict[str, str]]:
    found = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, timeout=_AIRFLOW_ANSWERS_WITHIN).stdout
    return list(json.loads(found[found.index("[{") :])) if "[{" in found or "[]" not in found else []


def _targets(lake: Any, config: Config) -> Iterator[DoctorCheck]:
    """The folders in which the tables of views are, or will be: those of a catalog are where the catalog says."""
    folders = set[str]()
    for view in config.views or ("view",):
        try:
            folders.add(lake.target_folder(view))
        except LakeError as error:
            yield DoctorCheck(f"target of view {view}", False, str(error))
    for folder in sorted(folders):
        yield _target(lake, config, folder)


def _target(lake: Any, config: Config, folder: str) -> DoctorCheck:
    """Whether a folder can be written, and concurrent writers there can't lose a commit (trap 18)."""
    remedy = "" if config.single_writer else lake.lost_commits(folder)
    if remedy:
        return DoctorCheck("target", False, f"{folder}: two concurrent writers could lose a commit", remedy)
    error = lake.probe_put_if_absent(folder, f".lakejoin-doctor-{uuid.uuid4().hex}")
    if error:
        return DoctorCheck("target", False, f"{folder}: {error}", "Check that the folder exists or can be created, and its permissions.")
    known = "commits are put-if-absent" if urlparse(folder).scheme in _SAFE_SCHEMES else "written and read back"
    return DoctorCheck("target", True, f"{folder}: {known}")
