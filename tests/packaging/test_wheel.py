"""The wheel: what is in it, and that an installed `lakejoin` works from another folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import site
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import lake

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent.parent


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], cwd=cwd, env=environment(), capture_output=True, text=True, timeout=300)


def environment() -> dict[str, str]:
    """The environment of these tests, without what would lead to the sources of this folder."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LAKEJOIN_CONFIG", "LAKEJOIN_ENV")}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel that is built from it."""
    sources = tmp_path_factory.mktemp("sources")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split("\n")
    for name in filter(None, listed) if any(listed) else ("setup.cfg", "pyproject.toml", "README.md"):
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            shutil.copy(ROOT / name, sources / name, follow_symlinks=False)
    found = run(sys.executable, "-m", "build", "--outdir", sources / "dist", ".", cwd=sources)
    assert found.returncode == 0, found.stdout + found.stderr
    return sources / "dist"


def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def test_the_wheel_has_one_import_package(dist: Path) -> None:
    names = zipfile.ZipFile(wheel(dist)).namelist()
    assert {name.split("/")[0] for name in names if not name.split("/")[0].endswith(".dist-info")} == {"lake"}
    assert f"lakejoin-{lake.__version__}" in wheel(dist).name


def test_the_wheel_has_every_file_of_the_library(dist: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "lake"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    names = set(zipfile.ZipFile(wheel(dist)).namelist())
    suites = {f"lake/quality/expectations/{file.name}" for file in (ROOT / "expectations").iterdir()}  # Git lists the link to their folder
    assert suites
    assert ({name for name in listed if (ROOT / name).is_file()} | suites) - names == set()


def test_both_pass_the_checks_of_the_package_index(dist: Path) -> None:
    found = run(sys.executable, "-m", "twine", "check", "--strict", *sorted(dist.iterdir()), cwd=dist)
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.count("PASSED") == 2


def test_the_version_is_written_once() -> None:
    assert re.findall(r"^version *=.*$", (ROOT / "setup.cfg").read_text(), re.MULTILINE) == ["version = attr: lake.__version__"]
    assert "version =" not in (ROOT / "pyproject.toml").read_text().replace("target-version =", "")


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with the wheel, which finds its dependencies in the one of these tests."""
    venv = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    found = run(venv / "bin" / "python", "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel(dist), cwd=venv)
    assert found.returncode == 0, found.stderr
    (packages,) = venv.glob("lib/python*/site-packages")
    # not site.addsitedir: the .pth files there would lead to the sources of this folder
    (packages / "dependencies.pth").write_text("".join(f"{folder}\n" for folder in site.getsitepackages()))
    return venv / "bin"


def test_an_installed_command_works_from_another_folder(installed: Path, tmp_path: Path) -> None:
    where = run(installed / "python", "-c", "import lake; print(lake.__file__)", cwd=tmp_path).stdout
    assert Path(where.strip()).is_relative_to(installed.parent)
    assert run(installed / "lakejoin", "--version", cwd=tmp_path).stdout == f"lakejoin {lake.__version__}\n"
    assert "refresh" in run(installed / "lakejoin", "--help", cwd=tmp_path).stdout


def test_doctor_of_an_installed_command_says_what_is_needed(installed: Path, tmp_path: Path) -> None:
    found = run(installed / "lakejoin", "doctor", "--json", cwd=tmp_path)
    said = {finding["what"]: finding for finding in json.loads(found.stdout)}
    assert found.returncode == 1, found.stderr
    assert said["pyspark and delta-spark"]["ok"]
    assert said["Java"]["ok"]
    assert "lakejoin setup" in said["Delta's jars"]["found"]
    assert "lakejoin init" in said["configuration"]["found"]


@pytest.mark.parametrize("name", ["dags", "examples", "expectations", "spark_jobs", "tests", "benchmarks"])
def test_nothing_else_of_this_folder_can_be_imported(installed: Path, tmp_path: Path, name: str) -> None:
    assert f"No module named '{name}'" in run(installed / "python", "-c", f"import {name}", cwd=tmp_path).stderr
