"""Set-up: what it downloads, what it leaves alone, and how it ends when a step makes no progress."""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lake.spark.jars as jars
from lake.cli.app import app
from lake.errors import ConfigError
from lake.spark import watched_process
from lake.spark.watched_process import Ended, run_watched

MARK = jars.mark_name()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A download of three small jars in place of Maven Central's; LAKEJOIN_JARS is the folder that is returned."""

    def download(command: list[str], *rest: object) -> Ended:
        folder = Path(command[-1], "jars")
        folder.mkdir()
        for name in ("io.delta_delta-spark_4.2_2.13-4.4.0.jar", "io.delta_delta-storage-4.4.0.jar", "com.x_y-1.0.jar"):
            (folder / name).write_text("new")
        return Ended("", "")

    monkeypatch.setattr(jars, "run_watched", download)
    folder = tmp_path / "shared"
    monkeypatch.setenv("LAKEJOIN_JARS", str(folder))
    return folder


def test_files_of_others_in_the_folder_of_jars_stay(registry: Path) -> None:
    registry.mkdir()
    others = {"postgresql-42.7.jar": "other", "notes.txt": "other", "com.x_y-1.0.jar": "other"}
    for name, text in others.items():
        (registry / name).write_text(text)
    (registry / "more").mkdir()
    (registry / "more" / "z.jar").write_text("other")
    assert jars.resolve(registry) == 3
    (registry / MARK).rename(registry / "delta-4.3.0.resolved")  # and again, as after an upgrade
    assert jars.resolve(registry) == 3
    assert {name: (registry / name).read_text() for name in others} == others
    assert (registry / "more" / "z.jar").exists()
    assert (registry / "io.delta_delta-storage-4.4.0.jar").read_text() == "new"


def test_jars_of_an_earlier_delta_are_replaced(registry: Path) -> None:
    registry.mkdir()
    (registry / "io.delta_delta-storage-4.3.0.jar").write_text("old")
    (registry / "gone-9.jar").write_text("old")
    (registry / "delta-4.3.0.resolved").write_text("io.delta_delta-storage-4.3.0.jar\ngone-9.jar\n")
    jars.resolve(registry)
    assert sorted(jar.name for jar in registry.glob("*.jar")) == [
        "com.x_y-1.0.jar",
        "io.delta_delta-spark_4.2_2.13-4.4.0.jar",
        "io.delta_delta-storage-4.4.0.jar",
    ]
    assert [mark.name for mark in registry.glob("*.resolved")] == [MARK]


def test_jars_from_before_there_was_a_list_are_replaced_by_artifact(registry: Path) -> None:
    registry.mkdir()
    for name in ("io.delta_delta-storage-4.3.0.jar", "delta-storage-4.3.0.jar", "org.postgresql_postgresql-42.7.jar"):
        (registry / name).write_text("old")
    (registry / "delta-4.3.0.resolved").touch()
    jars.resolve(registry)
    assert not (registry / "io.delta_delta-storage-4.3.0.jar").exists()
    assert (registry / "delta-storage-4.3.0.jar").exists()
    assert (registry / "org.postgresql_postgresql-42.7.jar").exists()


def test_jars_that_are_there_are_not_downloaded_again(registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(jars.at_first_use()) == 3
    monkeypatch.setattr(jars, "run_watched", lambda *a: pytest.fail("downloaded again"))
    assert jars.resolve(registry) == 0
    assert len(jars.at_first_use()) == 3


def test_jars_for_another_spark_are_replaced(registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars.resolve(registry)
    installed = version
    monkeypatch.setattr(jars, "version", lambda package: "4.9.1" if package == "pyspark" else installed(package))
    assert len(jars.at_first_use()) == 3
    assert [mark.name for mark in registry.glob("*.resolved")] == [f"delta-{installed('delta-spark')}-spark-4.9.resolved"]
    monkeypatch.setattr(jars, "version", installed)
    monkeypatch.setattr(jars, "run_watched", lambda *a: Ended("UnknownHostException: repo", ""))
    assert jars.at_first_use() == []


def test_the_first_use_says_that_it_downloads(registry: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jars.at_first_use()
    assert capsys.readouterr().err == "Downloading Delta's jars from Maven Central (87 MB, once)\n"


def test_a_failed_download_says_what_to_do_and_leaves_the_jars(registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars.resolve(registry)
    (registry / MARK).rename(registry / "delta-4.3.0.resolved")
    monkeypatch.setattr(jars, "run_watched", lambda *a: Ended("UnknownHostException: repo", ""))
    with pytest.raises(ConfigError, match=r"\(UnknownHostException: repo\).*lakejoin setup.*LAKEJOIN_JARS"):
        jars.resolve(registry)
    assert len(list(registry.glob("*.jar"))) == 3


def _runs(state: Path) -> bool:
    """Whether a process runs: it exists, and is none whose parent has not asked for its exit code yet."""
    try:
        return state.read_text().split()[2] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_process_without_progress_is_ended_with_its_children(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    child = f"import subprocess, sys; p = subprocess.Popen(['sleep', '600']); open({str(pid)!r}, 'w').write(str(p.pid)); p.wait()"
    ended = run_watched([sys.executable, "-c", child], lambda: len(pid.read_text()) if pid.exists() else 0, lambda size: None, 2)
    assert ended.problem == "no progress for 2 seconds; the process was ended"
    state = Path(f"/proc/{pid.read_text()}/stat")
    until = time.monotonic() + 30
    while _runs(state) and time.monotonic() < until:  # it was killed, which the system does in its own time
        time.sleep(0.05)
    assert not _runs(state)


def test_a_process_with_progress_may_take_longer_than_the_limit() -> None:
    steps = "import time\nfor i in range(6): print(i, flush=True); time.sleep(0.5)"
    assert run_watched([sys.executable, "-c", steps], lambda: 0, lambda size: None, 2) == Ended("", "0\n1\n2\n3\n4\n5\n")


def test_setup_succeeds_without_the_class_archive_and_says_why(registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stalled(command: list[str], *rest: object) -> Ended:
        return Ended("no progress for 180 seconds; the process was ended", "")

    monkeypatch.setattr(watched_process, "run_watched", stalled)
    found = CliRunner().invoke(app, ["setup"])
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert lines[0] == f"jars: done, 3 in {registry}"
    assert lines[1:] == [
        "Java classes: failed, no progress for 180 seconds; the process was ended. Each session compiles them.",
        "class archive: failed, no progress for 180 seconds; the process was ended. Spark starts slower.",
    ]
    assert not [name for name in os.listdir(registry) if name.startswith(".")]


def test_setup_answers_in_json(registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def written(command: list[str], *rest: object) -> Ended:
        Path(command[-1]).touch()
        return Ended("", "")

    monkeypatch.setattr(watched_process, "run_watched", written)
    found = CliRunner().invoke(app, ["setup", "--no-archive", "--json"])
    states = {step["step"]: step["state"] for step in json.loads(found.stdout)}
    assert states == {"jars": "done", "Java classes": "done", "class archive": "skipped"}
