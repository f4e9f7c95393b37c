"""Shared by all commands: opens the lakehouse, turns exceptions into messages and exit codes, stores results of scheduled runs."""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import typer

from lake.cli import console
from lake.core.alone import Alone, unshared
from lake.errors import ConfigError, LakeError

_UNEXPECTED = 1
"""The exit code of Python itself for an error that nobody catches."""


@dataclass(frozen=True)
class GlobalOptions:
    """The options before the command's name. `run`: the name of a scheduled run; `debug`: print stack traces; `server`: which server runs
    the command (lake/cli/remote.py); `log_format`: of logs on standard error; `lasts`: the command goes on until it is stopped."""

    config: Path
    env: str | None
    run: str | None
    debug: bool = False
    server: str = "off"
    log_format: str = "none"
    lasts: bool = False


Opener = Callable[[GlobalOptions, bool], Any]
"""(options, strict) → the lakehouse of a command."""


def _open(settings: GlobalOptions, strict: bool) -> Any:
    from lake.config.loader import load, load_each
    from lake.opening import opened

    file, env = settings.config, settings.env
    config = load(file, env) if strict or settings.run is None else load_each(file, env)[0]
    return opened(config, one_command=not settings.lasts)


opener: ContextVar[Opener] = ContextVar("opener", default=_open)
"""What opens the lakehouse of a command of this thread: `lakejoin serve` has an open one."""


def is_served() -> bool:
    """Whether a server carries out the command of this thread."""
    return opener.get() is not _open


alone: ContextVar[Alone] = ContextVar("alone", default=unshared)
"""The context in which no other request of this process changes some views (lake/operations/applying.py)."""


class Invocation:
    """One execution of a command: its lakehouse, and the stored result of its scheduled run."""

    def __init__(self, settings: GlobalOptions) -> None:
        self._settings = settings
        self._lake: Any = None

    def use(self, env: str) -> None:
        """Open the lakehouse of this environment, whatever --env says."""
        self._settings = replace(self._settings, env=env)

    @property
    def debug(self) -> bool:
        """Whether stack traces are shown."""
        return self._settings.debug

    def lake(self, strict: bool = True) -> Any:
        """The lakehouse of the configuration. Only commands that need it load Spark. If not `strict`, a scheduled run ignores views
        with an invalid configuration."""
        from lake.spark.session import silence_pyspark_errors

        silence_pyspark_errors()
        if self._lake is None:
            self._lake = opener.get()(self._settings, strict)
        return self._lake

    @property
    def local(self) -> Any:
        """The configuration, if the command has no open lakehouse yet and may find out without one; else None."""
        if self._lake is not None or is_served():
            return None
        from lake.config.loader import load

        return load(self._settings.config, self._settings.env)

    @cached_property
    def run(self) -> Any:
        """The stored files of the scheduled run; None without --run."""
        if self._settings.run is None:
            return None
        from lake.cli.scheduled_run import Run

        return Run(self.lake(), self._settings.run)

    def store(self, result: Any) -> None:
        """Store the result under the run's name, if there is one."""
        if self._settings.run is not None:
            self.run.store(result)

    def reported(self, error: Exception) -> LakeError:
        """An unexpected exception as an error for a person, without values that may not be shown."""
        from lake.core.redaction import Samples
        from lake.spark.failures import as_lake_error, safely

        lake = self._lake
        return as_lake_error(error, "The command", safely(lambda: lake.shown_of(None)) if lake is not None else Samples("keys"))

    def store_error(self, error: Exception) -> None:
        """Store the error as the run's result, if the lakehouse could be opened."""
        if self._lake is not None and self._settings.run is not None:
            from lake.spark.failures import is_transient

            with suppress(Exception):  # the first error is the one to report, also where the storage fails again
                self.store({"error": str(error), "again": is_transient(error)})


@contextmanager
def invocation(context: typer.Context) -> Iterator[Invocation]:
    """Within it, exceptions become a message on standard error and an exit code."""
    invoked = Invocation(context.obj)
    try:
        yield invoked
    except LakeError as error:
        raise _ended(invoked, error) from error
    except typer.BadParameter as error:
        if context.obj.run is not None:  # the scheduler searches the output for a line of this form
            console.errors().print(f"lakejoin: {error.message}", markup=False)
        raise
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt as error:
        console.errors().print("lakejoin: interrupted; what was published stays as it was.", markup=False)
        raise typer.Exit(130) from error
    except Exception as error:
        raise _unexpected(invoked, error) from error


def _ended(invoked: Invocation, error: LakeError) -> typer.Exit:
    """Show an error, store it for the scheduler, and return the exit."""
    if invoked.debug:
        traceback.print_exception(error, file=console.errors().file)
    console.errors().print(f"lakejoin: {error}", markup=False)
    invoked.store_error(error)
    return typer.Exit(error.exit_code)


def _unexpected(invoked: Invocation, error: Exception) -> typer.Exit:
    """The same for an exception that is no LakeError. Raises it with `--debug`, unless it is one of Spark's."""
    from lake.spark.failures import SPARK_ERRORS

    if isinstance(error, SPARK_ERRORS):
        reported = invoked.reported(error)
        reported.__cause__ = error
        return _ended(invoked, reported)
    if invoked.debug:
        raise error
    text = str(error).strip().partition("\n")[0]
    console.errors().print(f"lakejoin: {type(error).__name__}: {text} (lakejoin --debug VERB shows the stack trace)", markup=False)
    invoked.store_error(error)
    return typer.Exit(_UNEXPECTED)


def working(what: str, work: Callable[[], Any]) -> Any:
    """Call `work`; in a terminal, show meanwhile that something is going on."""
    with console.output().working(what):
        return work()


def with_progress(steps: Callable[[Callable[[str], None]], Iterator[Any]]) -> Iterator[Any]:
    """The results of steps that report their progress: in a terminal as one line that changes, else each line once."""
    if console.errors().is_terminal:
        with console.errors().status("setting up") as status:
            yield from steps(status.update)
        return
    said = set[str]()

    def say(text: str) -> None:
        what = text.partition(":")[0]
        if what not in said:
            said.add(what)
            console.errors().print(what, markup=False)

    yield from steps(say)


def write_atomically(file: Path, text: str) -> None:
    """Write a file completely or not at all, also if the machine stops meanwhile. Raises ConfigError if it can't be written."""
    try:
        # a new file of a name that nobody can foresee: one that exists could be a link to another file
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=file.parent, prefix=f".{file.name}.", delete=False) as part:
            try:
                part.write(text)
                part.flush()
                os.fsync(part.fileno())
                part.close()
                Path(part.name).chmod(0o666 & ~_umask())
                Path(part.name).replace(file)
            except BaseException:
                Path(part.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise ConfigError(f"{file} can't be written ({error.strerror}). Name another place with --output.") from error


writer: ContextVar[Callable[[Path, str], None]] = ContextVar("writer", default=write_atomically)
"""What writes a file of a command of this thread: `lakejoin serve` sends its text to the client, which writes it."""


def _umask() -> int:
    """The permissions that this process takes from new files; they can only be read by setting them."""
    found = os.umask(0o077)
    os.umask(found)
    return found
