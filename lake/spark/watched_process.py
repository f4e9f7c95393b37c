"""Runs another process as long as it makes progress, and ends it with its children when it makes none. Files of set-up are made so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_LOOKS_EVERY = 0.2


@dataclass(frozen=True)
class Ended:
    """How a process ended. `problem`: empty if it succeeded, else one line."""

    problem: str
    output: str


def run_watched(command: Sequence[str], progress: Callable[[], int], on_progress: Callable[[int], None], stalled_after: float) -> Ended:
    """Run a command until it ends, or until neither `progress()` nor its output has grown for `stalled_after` seconds."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
        last, since, stalled = (-1, -1), time.monotonic(), False
        try:
            while process.poll() is None and not stalled:
                now = progress(), os.fstat(output.fileno()).st_size
                if now != last:
                    last, since = now, time.monotonic()
                    on_progress(now[0])
                stalled = time.monotonic() - since > stalled_after
                time.sleep(_LOOKS_EVERY)
        finally:
            _end(process)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if stalled:
        return Ended(f"no progress for {stalled_after:.0f} seconds; the process was ended", text)
    lines = text.strip().splitlines()
    return Ended("" if process.returncode == 0 else lines[-1] if lines else f"exit code {process.returncode}", text)


def make_once(file: Path, module: str, others: str, on_progress: Callable[[int], None], stalled_after: float) -> str:
    """Make a file by `python -m MODULE FILE` if it does not exist; return what went wrong in one line, empty if nothing.

    It appears when it is complete. The files beside it that match `others`, such as those of an earlier release, are then removed.
    """
    if file.exists():
        return ""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=".making-") as folder:
            part = Path(folder, file.name)
            size = lambda: part.stat().st_size if part.exists() else 0  # noqa: E731
            ended = run_watched([sys.executable, "-m", module, str(part)], size, on_progress, stalled_after)
            if ended.problem or not part.exists():
                return ended.problem or "this Java has written none"
            part.replace(file)
        for other in file.parent.glob(others):
            if other != file:
                other.unlink(missing_ok=True)
    except OSError as error:
        return f"{file.parent} can't be written ({error.strerror})"
    return ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children (a JVM), if it still runs."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
