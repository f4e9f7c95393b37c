"""The rooms of the library (docs: architecture): each imports only rooms before it, and few of them know Spark's JVM.

A room is a folder of `lake/`, or a module beside them. `opening` puts the rooms together, so it may import them all but the outermost.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

LAKE = Path(__file__).parent.parent / "lake"
ROOMS = (
    "errors",
    "core",
    "config",
    "spark",
    "session",  # for scripts of users, which import `make_session` from its earlier place; to be removed with the next version
    "delta",
    "catalyst",
    "relations",
    "views",
    "refresh",
    "operations",
    "lakehouse",
    "realtime",
    "quality",
    "opening",
    "server",
    "airflow",
    "cli",
)
JVM_ROOMS = ("spark", "delta", "catalyst")
SPARK_FREE = ("errors", "core", "config")
FILES = [file for file in LAKE.rglob("*.py") if file != LAKE / "__init__.py"]


def name(file: Path) -> str:
    return ".".join(file.relative_to(LAKE).with_suffix("").parts)


def room_of(file: Path) -> str:
    return file.relative_to(LAKE).with_suffix("").parts[0]


def imports(file: Path) -> Iterator[str]:
    """The modules that a file imports, wherever in it, as dotted names; `from lake import open_lake` as lake.opening."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "lake":
            places = {"open_lake": "lake.opening", "Lakehouse": "lake.lakehouse", "LakeError": "lake.errors"}
            yield from (places.get(alias.name, f"lake.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def rooms_imported(file: Path) -> set[str]:
    found = {module.split(".")[1] for module in imports(file) if module.startswith("lake.")}
    return found - {"__version__"}


def test_every_file_is_in_a_room() -> None:
    assert {room_of(file) for file in FILES} <= set(ROOMS)


@pytest.mark.parametrize("file", FILES, ids=name)
def test_a_room_imports_only_rooms_before_it(file: Path) -> None:
    own = ROOMS.index(room_of(file))
    assert {room for room in rooms_imported(file) if ROOMS.index(room) > own} == set()


@pytest.mark.parametrize("file", FILES, ids=name)
def test_only_the_command_and_opening_import_checks_and_dags(file: Path) -> None:
    allowed = {"quality": ("quality", "opening", "cli"), "airflow": ("airflow",)}
    assert {room for room in rooms_imported(file) & set(allowed) if room_of(file) not in allowed[room]} == set()


def jvm_uses(tree: ast.AST) -> set[str]:
    """What in a file reaches into the JVM: py4j's names, PySpark's private attributes, our gateway, and attributes of Java objects."""
    private = {"_jvm", "_jdf", "_jc", "_jsc", "_jsparkSession", "_jschema", "_gateway", "java"}
    scala = {"semanticEquals", "exprId", "withNewChildren", "queryExecution", "dataType", "nodeName", "getClass", "toSeq"}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in private | (scala - {"dataType"}):
            found.add(node.attr)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "dataType":
            found.add("dataType()")
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(("py4j", "lake.spark.jvm")):
            found.add(node.module)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("py4j")}
    return found


@pytest.mark.parametrize("file", [f for f in FILES if room_of(f) not in JVM_ROOMS], ids=name)
def test_the_jvm_is_reached_from_spark_delta_and_catalyst_only(file: Path) -> None:
    assert jvm_uses(ast.parse(file.read_text())) == set()


def test_the_search_for_jvm_uses_finds_them() -> None:
    assert jvm_uses(ast.parse("plan._jdf.queryExecution()")) == {"_jdf", "queryExecution"}
    assert jvm_uses(ast.parse("from py4j.protocol import Py4JJavaError")) == {"py4j.protocol"}
    assert jvm_uses(ast.parse("e.java.dataType()")) == {"java", "dataType()"}
    assert jvm_uses(ast.parse("field.dataType")) == set()


@pytest.mark.parametrize("file", [f for f in FILES if room_of(f) != "spark"], ids=name)
def test_what_spark_raises_is_named_in_the_room_of_spark_only(file: Path) -> None:
    """Elsewhere `SPARK_ERRORS` and `CALL_ERRORS` of lake.spark.failures are caught, so that no kind of failure is forgotten."""
    assert not [module for module in imports(file) if module in ("py4j.protocol", "pyspark.errors")]


@pytest.mark.parametrize("file", [f for f in FILES if room_of(f) in SPARK_FREE], ids=name)
def test_records_and_configuration_know_no_spark(file: Path) -> None:
    assert not [module for module in imports(file) if module.split(".")[0] in ("pyspark", "delta", "py4j", "deltalake")]


def loaded(code: str) -> set[str]:
    """The top-level packages that a fresh Python has loaded after some code."""
    ended = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"],
        capture_output=True,
        text=True,
        check=True,
        cwd=LAKE.parent,
    )
    return set(ended.stdout.split())


def test_help_loads_nothing_that_takes_time() -> None:
    assert not loaded("import lake.cli.app") & {"pydantic", "yaml", "pyspark", "pyarrow", "deltalake"}


def test_great_expectations_is_loaded_only_by_what_checks() -> None:
    users = {name(file) for file in FILES if any(m.split(".")[0] == "great_expectations" for m in imports(file))}
    assert users == {"quality.suites"}
    modules = "lake.cli.app, lake.opening, lake.cli.scheduled_run, lake.quality.report, lake.quality.decisions"
    assert "great_expectations" not in loaded(f"import {modules}")


def test_parsing_a_dag_file_loads_neither_pyspark_nor_great_expectations() -> None:
    files = [file for file in (LAKE.parent / "dags").glob("*.py") if file.name not in ("__init__.py", "factory.py")]
    assert files
    users = [file for file in FILES if any(m.split(".")[0] == "airflow" for m in imports(file))]
    assert {room_of(file) for file in users} == {"airflow"}
    # the import alone: LAKEJOIN_CONFIG, which names the views, is read when the DAGs are made (tests/airflow)
    assert not loaded("from lake.airflow import airflow_dags") & {"pyspark", "great_expectations", "py4j"}
