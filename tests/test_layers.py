"""The rooms use only those before them, and only Catalyst's and Delta's know the JVM."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

LAKE = Path(__file__).parent.parent / "lake"
LAYERS = (
    {"errors", "preflight", "estimate", "logs", "samples", "phases", "scala"},
    {"config", "snapshots", "weights", "ranges", "failures"},
    {"nodes", "deltastate", "config_file", "texts", "heads"},
    {"catalyst.expressions", "written"},
    {"catalyst.trees"},
    {"catalyst.running"},
    {"catalyst.definitions"},
    {"deltalog", "deltafolder", "catalyst", "stamp", "results", "session", "jars"},
    {"queries"},
    {"fingerprint"},
    {"deltafiles", "redefinition"},
    {"deltacommit", "tables", "order_dependence"},
    {"measures", "commits", "readable", "unchanged"},
    {"relations.reading"},
    {"relations.base", "relations.cache"},
    {"relations.leaves", "relations.keyed"},
    {"relations.linear", "relations.joins", "relations.stored"},
    {"relations.additive", "relations.top", "relations.null_aware"},
    {"relations.tree", "relations.scoped", "keys", "padding"},
    {"definition"},
    {"plan", "explain", "view_table"},
    {"edits", "verify", "inputs", "view_changes", "agreement"},
    {"publish", "primary_keys"},
    {"refresh", "backfill", "maintenance", "profile"},
    {"open_views"},
    {"lakehouse"},
    {"realtime.steps", "realtime.lease", "realtime.upkeep", "init", "doctor", "startup", "console", "runs", "arguments", "rows_shown"},
    {"realtime.metrics", "realtime.render"},
    {"realtime.run"},
    {"realtime.command", "answering"},
    {"cli"},
)
LEVEL = {module: n for n, layer in enumerate(LAYERS) for module in layer}
FILES = [f for f in LAKE.rglob("*.py") if f.name != "__init__.py"]


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(LAKE).with_suffix("").parts)


def imported(file: Path) -> set[str]:
    """Modules of the library that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "lake":
            rest = node.module.split(".")[1:]
            found |= {".".join([*rest, a.name]) if ".".join([*rest, a.name]) in LEVEL else ".".join(rest) for a in node.names}
    return found - {""}


@pytest.mark.parametrize("file", FILES, ids=module_of)
def test_a_module_imports_only_from_layers_before_it(file: Path) -> None:
    own = LEVEL[module_of(file)]
    later = {m for m in imported(file) if LEVEL[m] > own or (LEVEL[m] == own and m != module_of(file))}
    assert not later


@pytest.mark.parametrize("file", FILES, ids=module_of)
def test_only_the_rooms_of_catalyst_and_of_delta_reach_into_the_jvm(file: Path) -> None:
    if module_of(file).startswith(("catalyst.", "delta", "scala", "session", "profile")):
        return
    assert "_jvm" not in file.read_text()
    assert "_jdf" not in file.read_text()


def test_dags_import_of_the_library_only_what_needs_no_spark() -> None:
    spark_free = {"config", "config_file", "errors", "heads", "texts", "preflight"}
    found = {module for file in (LAKE.parent / "dags").glob("*.py") for module in _imported_at_the_top(file)}
    assert found <= spark_free


def _imported_at_the_top(file: Path) -> set[str]:
    nodes = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ImportFrom) and node.module]
    return {node.module.removeprefix("lake.") for node in nodes if node.module and node.module.startswith("lake.")}


def test_help_loads_nothing_that_takes_time() -> None:
    code = "import sys, lake.cli; print({'pydantic', 'yaml', 'pyspark', 'pyarrow', 'deltalake'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "set()"


EXPECTATIONS = sorted((LAKE.parent / "expectations").glob("*.py"))


@pytest.mark.parametrize("file", EXPECTATIONS, ids=lambda file: file.stem)
def test_checks_read_through_the_public_api(file: Path) -> None:
    records = {"config", "errors", "results", "samples", "texts", "nodes", "session", "deltalog", "refresh", "verify", "view_table"}
    told = {"realtime.metrics", "realtime.command", "console"}
    nodes = [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.ImportFrom) and n.module]
    found = {n.module.removeprefix("lake.") for n in nodes if n.module and n.module.startswith("lake.")}
    assert found <= records | told


def test_great_expectations_is_loaded_only_by_what_checks() -> None:
    users = [f.stem for f in EXPECTATIONS if re.search(r"^(import|from) great_expectations", f.read_text(), re.MULTILINE)]
    assert users == ["suites"]
    modules = "lake.cli.app, lake.lakehouse, lake.runs, lake.quality.report, lake.quality.decisions"
    code = f"import sys, {modules}; print('great_expectations' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"


@pytest.mark.parametrize("file", FILES, ids=module_of)
def test_the_library_knows_neither_airflow_nor_great_expectations(file: Path) -> None:
    nodes = list(ast.walk(ast.parse(file.read_text())))
    names = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    assert not {name.split(".")[0] for name in names} & {"airflow", "great_expectations", "dags", "spark_jobs"}
