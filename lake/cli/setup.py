"""`lakejoin setup`: downloads Delta's jars and makes the class archive ahead of the first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from lake.cli.class_archive import make
from lake.spark import preflight
from lake.spark.jars import DOWNLOADING, resolve

ARCHIVING = "Making the class archive, with which Spark starts faster (a minute, once)"


@dataclass(frozen=True)
class Step:
    """One step of the set-up. `state`: done, exists (it was done before), skipped or failed."""

    step: str
    state: str
    detail: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def set_up(archive: bool, say: Callable[[str], None]) -> Iterator[Step]:
    """Do what is missing, step by step; `say` shows progress. Raises ConfigError without Delta's jars; a failed class archive is a step."""
    folder = preflight.jar_folder()

    def downloaded(size: int) -> None:
        say(f"{DOWNLOADING}: {size / 1e6:.0f} MB")

    number = resolve(folder, downloaded)
    yield Step("jars", "done" if number else "exists", f"{number or len(preflight.jars())} in {folder}")
    file = preflight.class_archive()
    if not archive:
        yield Step("class archive", "skipped", "--no-archive")
    elif file.exists():
        yield Step("class archive", "exists", str(file))
    else:
        problem = make(file, lambda size: say(ARCHIVING))
        yield Step("class archive", "failed" if problem else "done", f"{problem}. Spark starts slower." if problem else str(file))
