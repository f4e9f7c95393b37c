"""Processes that follow a live stream, watched from outside: CPU seconds and memory of each, second by second."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil


def family(pid: int) -> list[psutil.Process]:
    """A process and its children. Raises psutil.NoSuchProcess where it has ended."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


@dataclass(frozen=True)
class Sample:
    """At `time` (seconds since 1970) the process and its children had used so many CPU seconds, and held so many bytes."""

    time: float
    cpu: float
    memory: int


@dataclass
class Follower:
    """One process, its output in `log`; `samples`, a second apart, since it was started; `live`: what `note_live_heap` found."""

    command: list[str]
    log: Path
    samples: list[Sample] = field(default_factory=list)
    live: list[int] = field(default_factory=list)

    def __enter__(self) -> Follower:
        with self.log.open("w") as out:
            self._process = subprocess.Popen(self.command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """End it with SIGTERM; after two minutes with SIGKILL."""
        self._ended.set()
        self._thread.join()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(120)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def alive(self, seconds: float = 0.0) -> None:
        """Wait so long; raise RuntimeError, with what it said last, where it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            raise RuntimeError(f"{' '.join(self.command)} ended with {self._process.returncode}: {self.log.read_text()[-2000:]}")

    def cpu(self, since: float, until: float) -> float:
        """CPU seconds that it used between two times."""
        before, after = (next((s.cpu for s in reversed(self.samples) if s.time <= at), 0.0) for at in (since, until))
        return after - before

    def note_live_heap(self) -> None:
        """Note the bytes of the objects that its JVM still needs, after a full collection; nothing where Java came without `jcmd`."""
        if shutil.which("jcmd") is None:
            return
        java = next(p for p in family(self._process.pid) if p.name() == "java")
        told = subprocess.run(["jcmd", str(java.pid), "GC.class_histogram"], capture_output=True, text=True, check=True).stdout
        found = re.search(r"^Total\s+\d+\s+(\d+)", told, re.MULTILINE)
        assert found is not None, told[-200:]
        self.live.append(int(found.group(1)))

    def _sample(self) -> None:
        while not self._ended.wait(1.0):
            try:
                every = family(self._process.pid)
                cpu = sum(t.user + t.system for t in (p.cpu_times() for p in every))
                self.samples.append(Sample(time.time(), cpu, sum(p.memory_info().rss for p in every)))
            except psutil.NoSuchProcess:
                continue
