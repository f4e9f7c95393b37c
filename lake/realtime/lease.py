"""One of each: who may run a view's real-time path, and what it says of itself.

A lease is a numbered file beside the table's data, made where none of its name was; who holds the highest number holds the lease. A holder
writes it anew every few seconds, with its metrics; one that has not for `LEASE_SECONDS` seconds, whose process on this machine is gone, or
that said it has ended, is followed by the next number. The rows don't depend on it: two writers find each other by their commits' numbers.
"""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lake.core.kinds import LEASE_RUNNING, LEASE_SECONDS
from lake.delta.sidecar import Folder
from lake.errors import ConcurrencyError

_PREFIX = "lease-"


@dataclass
class Lease:
    """The right to run one view's real-time path, held since it was taken."""

    view: str
    folder: Folder
    number: int

    @staticmethod
    def take(view: str, folder: Folder) -> Lease:
        """Take the lease. Raises ConcurrencyError where somebody else holds it."""
        number, held = newest(folder)
        if held and holds(held):
            raise ConcurrencyError(
                f"The real-time path of view {view!r} is already running: process {held.get('process')} on {held.get('host')}. Stop it "
                f"first. Were it gone without a word, its lease would end {LEASE_SECONDS:.0f} seconds after its last sign."
            )
        lease = Lease(view, folder, number + 1)
        if not folder.create(lease._name, lease._text("running", {})):
            raise ConcurrencyError(f"The real-time path of view {view!r} was just started by somebody else.")
        for name in folder.names():
            if name.startswith(_PREFIX) and name < lease._name:
                folder.delete(name)
        return lease

    def renew(self, state: str, said: dict[str, Any]) -> None:
        """Say that the path still runs (`state` running), and how. Raises ConcurrencyError where the lease went to somebody else."""
        number, _ = newest(self.folder)
        if number > self.number:
            raise ConcurrencyError(f"The real-time path of view {self.view!r} has been taken over by another process. This one ends.")
        self.folder.replace(self._name, self._text(state, said))

    @property
    def _name(self) -> str:
        return f"{_PREFIX}{self.number:08}.json"

    def _text(self, state: str, said: dict[str, Any]) -> str:
        pid = os.getpid()
        own = {"host": socket.gethostname(), "process": pid, "started": _started(pid), "renewed": time.time(), "state": state}
        return json.dumps({**said, **own}, default=str)


def newest(folder: Folder) -> tuple[int, dict[str, Any]]:
    """The highest lease's number and what it says; 0 and nothing where there is none."""
    names = [name for name in folder.names() if name.startswith(_PREFIX)]
    if not names:
        return 0, {}
    try:
        said = json.loads(folder.read(names[-1]))
    except ValueError:  # being written this moment, or by a process that was killed at it
        said = {"state": "running", "renewed": folder.written(names[-1])}
    return int(names[-1].removeprefix(_PREFIX).removesuffix(".json")), said


def holds(said: dict[str, Any]) -> bool:
    """Whether who wrote this still runs, by all that can be seen from here."""
    if said.get("state") not in LEASE_RUNNING:
        return False
    if said.get("host") == socket.gethostname() and said.get("process") is not None:
        return _started(int(said["process"])) == said.get("started") is not None
    return time.time() - float(said.get("renewed", 0)) < LEASE_SECONDS


def _started(pid: int) -> str | None:
    """When a process of this machine began, in its own clock; None where there is none."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    with suppress(OSError):  # no /proc here
        os.kill(pid, 0)
        return "running"
    return None
