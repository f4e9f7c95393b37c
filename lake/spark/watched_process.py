"""Runs another process as long as it makes progress, and ends it with its children when it makes none."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children (a JVM), if it still runs."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
