"""`lakejoin setup`: downloads Delta's jars, compiles Lakejoin's Java classes and makes the class archive, ahead of the first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from lake.cli.class_archive import make
from lake.spark import compiled_classes, preflight
from lake.spark.jars import DOWNLOADING, resolve

COMPILING = "Compiling Lakejoin's Java classes"
ARCHIVING = "Making the class archive, with which Spark starts faster (a minute, once)"


@dataclass(frozen=True)
class SetupStep:
    """The result of one step of the set-up. `state`: done, exists (done earlier), skipped or failed."""

    step: str
    state: str
    detail: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def set_up(archive: bool, say: Callable[[str], None]) -> Iterator[SetupStep]:
    """Do the steps that are missing; `say` gets their progress. Raises ConfigError if the jars can't be had; the archive may fail."""
    folder = preflight.jar_folder()

    def downloaded(size: int) -> None:
        say(f"{DOWNLOADING}: {size / 1e6:.0f} MB")

    number = resolve(folder, downloaded)
    yield SetupStep("jars", "done" if number else "exists", f"{number or len(preflight.jars())} in {folder}")
    yield _compiled(say)
    file = preflight.class_archive()
    if not archive:
        yield SetupStep("class archive", "skipped", "--no-archive")
    elif file.exists():
        yield SetupStep("class archive", "exists", str(file))
    else:
        problem = make(file, lambda size: say(ARCHIVING))
        yield SetupStep("class archive", "failed" if problem else "done", f"{problem}. Spark starts slower." if problem else str(file))


def _compiled(say: Callable[[str], None]) -> SetupStep:
    jar = preflight.own_classes()
    if jar.exists():
        return SetupStep("Java classes", "exists", str(jar))
    problem = compiled_classes.make(jar, lambda _: say(COMPILING))
    if not problem:  # an archive that was made without the jar does not fit the class path with it
        preflight.class_archive().unlink(missing_ok=True)
    return SetupStep("Java classes", "failed" if problem else "done", f"{problem}. Each session compiles them." if problem else str(jar))
