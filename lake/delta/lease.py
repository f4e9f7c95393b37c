"""The lease of a view's real-time path: it allows one process at a time, and stores the state and metrics of that process.

A lease is a numbered file beside the data of the table; the holder of the highest number holds the lease. The holder renews it every few
seconds. Another process may take the next number if the holder reported its end, if its process on this machine no longer exists, or if it
was not renewed for `LEASE_SECONDS`. Correctness of rows does not depend on it: two writers find each other by the numbers of their commits.
"""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lake.core.constants import LEASE_RUNNING, LEASE_SECONDS
from lake.errors import ConcurrencyError

if TYPE_CHECKING:  # a status reads leases without Spark
    from lake.delta.sidecar import Folder

_PREFIX = "lease-"


@dataclass
class Lease:
    """The right to run the real-time path of one view."""

    view: str
    folder: Folder
    number: int

    @staticmethod
    def take(view: str, folder: Folder) -> Lease:
        """Take the lease. Raises ConcurrencyError if another process holds it."""
        number = refuse_held(view, folder)
        lease = Lease(view, folder, number + 1)
        if not folder.create(lease._name, lease._text("running", {})):
            raise ConcurrencyError(f"The real-time path of view {view!r} was just started by another process.")
        for name in folder.names(_PREFIX):
            if name < lease._name:
                folder.delete(name)
        return lease

    def renew(self, state: str, metrics: dict[str, Any]) -> None:
        """Write the state and the metrics of the path. Raises ConcurrencyError if another process has taken the lease."""
        number, _ = newest(self.folder)
        if number > self.number:
            raise ConcurrencyError(f"The real-time path of view {self.view!r} was taken over by another process. This process ends.")
        self.folder.replace(self._name, self._text(state, metrics))

    @property
    def _name(self) -> str:
        return f"{_PREFIX}{self.number:08}.json"

    def _text(self, state: str, metrics: dict[str, Any]) -> str:
        pid = os.getpid()
        own = {"host": socket.gethostname(), "process": pid, "started": _started(pid), "renewed": time.time(), "state": state}
        return json.dumps({**metrics, **own}, default=str)


def refuse_held(view: str, folder: Readable) -> int:
    """The number of the newest lease, 0 if there is none. Raises ConcurrencyError if a process holds it."""
    number, holder = newest(folder)
    if holder and is_held(holder):
        raise ConcurrencyError(
            f"The real-time path of view {view!r} is already running: process {holder.get('process')} on {holder.get('host')}. Stop "
            f"it first. If it was killed on another machine, its lease ends {LEASE_SECONDS:.0f} seconds after its last renewal."
        )
    return number


class Readable(Protocol):
    """A folder of small files that can be read."""

    def names(self, prefix: str = "") -> list[str]: ...
    def read(self, name: str) -> str: ...
    def written(self, name: str) -> float: ...


def newest(folder: Readable) -> tuple[int, dict[str, Any]]:
    """The number and the content of the newest lease; 0 and an empty content if there is none."""
    names = folder.names(_PREFIX)
    if not names:
        return 0, {}
    try:
        content = json.loads(folder.read(names[-1]))
    except ValueError:  # it is just being written, or its writer was killed
        content = {"state": "running", "renewed": folder.written(names[-1])}
    return int(names[-1].removeprefix(_PREFIX).removesuffix(".json")), content


def last_state(folder: Readable) -> dict[str, Any]:
    """The content of the newest lease, with the state "killed" if its process no longer runs; empty if there is none."""
    _, lease = newest(folder)
    killed = {"state": "killed"} if lease.get("state") in LEASE_RUNNING and not is_held(lease) else {}
    return {**lease, **killed}


def is_held(lease: dict[str, Any]) -> bool:
    """Whether the process that wrote this content still runs, as far as this machine can tell."""
    if lease.get("state") not in LEASE_RUNNING:
        return False
    if lease.get("host") == socket.gethostname() and lease.get("process") is not None:
        return _started(int(lease["process"])) == lease.get("started") is not None
    return time.time() - float(lease.get("renewed", 0)) < LEASE_SECONDS


def _started(pid: int) -> str | None:
    """The start time of a process on this machine; None if there is no such process."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    with suppress(OSError):  # this system has no /proc
        os.kill(pid, 0)
        return "running"
    return None
