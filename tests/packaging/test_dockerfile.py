"""The Dockerfile of the runner image: its instructions are checked, and its RUN steps run in a folder in place of the image's."""

from __future__ import annotations

import json
import os
import re
import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest

from lake.spark.preflight import JAVA, PYTHON, class_archive, jar_folder

ROOT = Path(__file__).parent.parent.parent
INSTRUCTIONS = ("FROM", "RUN", "COPY", "USER", "WORKDIR", "ENV", "ENTRYPOINT", "CMD")


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile: continued lines joined, comments left out."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(word, " ".join(rest.split())) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


FOUND = instructions((ROOT / "Dockerfile").read_text())


def problems(found: list[tuple[str, str]]) -> list[str]:
    """What is wrong with the instructions, by the rules of hadolint that apply."""
    words = [word for word, _ in found]
    last_user = next((rest for word, rest in reversed(found) if word == "USER"), "root")
    texts = [f"unknown instruction {word}" for word in words if word not in INSTRUCTIONS]
    texts += [f"not the exec form: {rest}" for word, rest in found if word in ("ENTRYPOINT", "CMD") and not rest.startswith("[")]
    texts += [f"FROM without a fixed tag: {rest}" for word, rest in found if word == "FROM" and not re.search(r":\d[\w.-]+$", rest)]
    texts += [] if words[0] == "FROM" else ["the first instruction is not FROM"]
    texts += (
        [] if re.fullmatch(r"[1-9]\d*", last_user) else ["the container runs as root, or as a user that Kubernetes can't tell from root"]
    )
    texts += ["ADD or sudo"] if any(word == "ADD" or "sudo " in rest for word, rest in found) else []
    for word, rest in found:
        if word == "RUN" and "apt-get install" in rest:
            texts += [f"apt-get without {part}" for part in ("apt-get update", " -y", "--no-install-recommends") if part not in rest]
            texts += [] if rest.endswith("rm -rf /var/lib/apt/lists/*") else ["the lists of apt stay in the image"]
        if word == "RUN" and "pip install" in rest and "--no-cache-dir" not in rest:
            texts.append("pip install without --no-cache-dir")
        if word == "WORKDIR" and not rest.startswith("/"):
            texts.append("WORKDIR is relative")
    return texts


def test_the_dockerfile_has_no_problems() -> None:
    assert problems(FOUND) == []
    assert json.loads(dict(FOUND)["ENTRYPOINT"])[-1] == "lakejoin"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("FROM python\nUSER 1", "FROM without a fixed tag"),
        ("FROM a:1.0\nUSER root", "runs as root"),
        ("FROM a:1.0\nRUN pip install x\nUSER 1", "--no-cache-dir"),
        ("FROM a:1.0\nRUN apt-get install x\nUSER 1", "apt-get without apt-get update"),
        ("FROM a:1.0\nUSER 1\nENTRYPOINT lakejoin", "exec form"),
        ("FROM a:1.0\nUSER 1\nRUNN x", "unknown instruction RUNN"),
    ],
)
def test_the_linter_finds_problems(text: str, problem: str) -> None:
    assert any(problem in found for found in problems(instructions(text)))


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    sources = [rest.split()[0] for word, rest in FOUND if word == "COPY"]
    assert sources == ["requirements/core.lock", "dist/*.whl"]
    assert {f"!{source}" for source in sources} <= set((ROOT / ".dockerignore").read_text().split("\n"))


def test_the_python_and_java_of_the_image_are_new_enough() -> None:
    tag = re.search(r"python:(\d+)\.(\d+)", dict(FOUND)["FROM"])
    java = re.search(r"openjdk-(\d+)-jre", str(FOUND))
    assert tag is not None
    assert java is not None
    assert (tuple(map(int, tag.groups())) >= PYTHON, int(java[1]) >= JAVA) == (True, True)


@pytest.mark.slow
@pytest.mark.skipif(not class_archive().exists(), reason="make setup has made no archive here")
def test_the_run_steps_leave_a_command_that_works(tmp_path: Path) -> None:
    """In a folder in place of /opt. The steps of apt and useradd need root; locked packages and jars are those of this environment."""
    place, venv = tmp_path / "lakejoin", tmp_path / "lakejoin" / "venv"
    place.mkdir()
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(place), str(sources(tmp_path / "sources"))]
    assert subprocess.run(build, capture_output=True, timeout=300, check=False).returncode == 0
    steps = [rest for word, rest in FOUND if word == "RUN" and not rest.startswith(("apt-get", "useradd"))]
    assert len(steps) == 3
    for step in steps:
        shell = step.replace("/opt/lakejoin", str(place))
        if "core.lock" in shell:
            shell = (
                shell.partition("&&")[0]
                + f"&& echo {packages()} > {venv}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/dependencies.pth"
            )
        elif shell.endswith("lakejoin setup"):
            (venv / "share" / "lakejoin").mkdir(parents=True)
            (venv / "share" / "lakejoin" / "jars").symlink_to(jar_folder())
        ended = subprocess.run(["sh", "-ec", shell], cwd=tmp_path, env=without_sources(), capture_output=True, text=True, timeout=300)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    command = [word for word in json.loads(dict(FOUND)["ENTRYPOINT"]) if word not in ("tini", "--")]
    path = f"{venv}/bin:{os.environ['PATH']}"
    asked = [*command, *json.loads(dict(FOUND)["CMD"])]
    shown = subprocess.run(asked, cwd=tmp_path, env={**without_sources(), "PATH": path}, capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert "refresh" in shown.stdout
    assert subprocess.run(["sh", "-c", "command -v lakejoin"], env={"PATH": path}, capture_output=True, text=True).stdout.startswith(
        str(venv)
    )


def sources(folder: Path) -> Path:
    """A copy of what the wheel is built from: a build leaves files behind."""
    shutil.copytree(ROOT / "lake", folder / "lake", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def packages() -> str:
    """The folder of the packages of this environment."""
    return site.getsitepackages()[0]


def without_sources() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LAKEJOIN_JARS")}
