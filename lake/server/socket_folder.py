"""Where the server of a configuration keeps its socket, its lock and its description, so that a command finds it.

All files are in one folder of the user's with mode 0700, named by a digest of the configuration's path and environment.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from lake.errors import ConfigError

_LONGEST_SOCKET = 100
"""Bytes; the operating system takes 107 (Linux) or 103 (macOS)."""


@dataclass(frozen=True)
class Description:
    """What a running server says of itself. `salt`: of the digests of environment variables; `url`: where it listens besides its socket,
    empty if nowhere; `started`: in seconds since 1970."""

    pid: int
    version: str
    python: str
    config: str
    env: str | None
    salt: str
    started: float
    url: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Place:
    """The files of the server of one configuration in one environment."""

    folder: Path
    name: str

    @property
    def socket(self) -> Path:
        return self.folder / f"{self.name}.sock"

    @property
    def log(self) -> Path:
        """What a server in the background prints."""
        return self.folder / f"{self.name}.log"

    @property
    def _description(self) -> Path:
        return self.folder / f"{self.name}.json"

    @property
    def _lock(self) -> Path:
        return self.folder / f"{self.name}.lock"

    def described(self) -> Description | None:
        """The description of the server that was started last, which may have ended; None if there is none, or it can't be read."""
        try:
            return Description(**json.loads(self._description.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def describe(self, description: Description) -> None:
        """Store the description of the server that holds the lock."""
        part = self._description.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(description.to_json()), encoding="utf-8")
        part.replace(self._description)

    def make(self) -> None:
        """Create the folder. Raises ConfigError if it is not this user's alone, or its path is too long for a socket."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self.folder} can't be made ({error.strerror}). Name another folder in LAKEJOIN_RUNTIME_DIR.") from error
        if not private(self.folder):
            raise ConfigError(
                f"{self.folder} must be a folder that only this user can read and write (mode 0700). Change its mode, or name another "
                "folder in LAKEJOIN_RUNTIME_DIR."
            )
        if len(os.fsencode(self.socket)) > _LONGEST_SOCKET:
            raise ConfigError(f"{self.socket} is too long for a socket. Name a folder with a shorter path in LAKEJOIN_RUNTIME_DIR.")

    def locked(self) -> IO[str] | None:
        """The open lock file, locked until it is closed or the process ends; None if another process holds the lock."""
        lock = self._lock.open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            return None
        return lock

    def keep(self) -> None:
        """Make the files look used: what cleans the folder of temporary files removes old ones."""
        for file in (self._lock, self._description, self.log):
            with suppress(OSError):
                os.utime(file)

    def clear(self) -> None:
        """Remove what tells clients of a server."""
        for file in (self.socket, self._description):
            with suppress(OSError):
                file.unlink()


def place_of(config: Path, env: str | None, environment: Mapping[str, str] = os.environ) -> Place:
    """The place of the server of a configuration file (resolved: links to one file have one server) in an environment of it."""
    digest = hashlib.sha256(json.dumps([str(config.resolve()), env]).encode()).hexdigest()[:16]
    return Place(runtime_folder(environment), digest)


def runtime_folder(environment: Mapping[str, str]) -> Path:
    """LAKEJOIN_RUNTIME_DIR; or `lakejoin` in XDG_RUNTIME_DIR; or a folder of the user's in the folder of temporary files."""
    if given := environment.get("LAKEJOIN_RUNTIME_DIR"):
        return Path(given).absolute()
    if (user := environment.get("XDG_RUNTIME_DIR")) and Path(user).is_dir():
        return Path(user) / "lakejoin"
    return Path(tempfile.gettempdir()) / f"lakejoin-{os.getuid()}"


def private(folder: Path) -> bool:
    """Whether a folder is this user's own, and nobody else may read or write it."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
