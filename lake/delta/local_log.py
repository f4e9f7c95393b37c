"""Reads the log of a Delta table in a folder of this machine without a JVM: its newest version, its properties and its commits.

It answers as Delta would, or raises UndecidedError: for tables elsewhere, for logs with commits elsewhere, for what can't be read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlparse

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lake.core.snapshots import Version
from lake.delta.actions import Commit, commit_of

_METADATA = re.compile(rb'\s*\{\s*"metaData"')
_INFO = re.compile(rb'\s*\{\s*"commitInfo"')
_ELSEWHERE = re.compile(r"catalog(Managed|Owned)|coordinatedCommits", re.IGNORECASE)
"""Features by which somebody else than the folder knows which commit is the newest."""
_NUMBERED = re.compile(r"(\d{20})\.(?:json$|checkpoint\.)")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*parquet|(\d{20})\.checkpoint\..*json")


class UndecidedError(Exception):
    """Only a JVM can tell."""


def local_folder(path: str | None) -> Path | None:
    """The folder of a table on this machine, None for one elsewhere (or whose name is a URI's with escapes)."""
    if path is None or urlparse(path).scheme not in ("", "file") or set("%?#") & set(path):
        return None
    return Path(urlparse(path).path)


@dataclass(frozen=True)
class _Described:
    """What a table is at its newest version. `schema`: as JSON; `features`: the names of its features and properties."""

    version: Version
    properties: Mapping[str, str]
    schema: str
    features: frozenset[str]


@dataclass(frozen=True)
class LocalTable:
    """The newest version of a table, as it was when it was opened, and the commits up to it."""

    log: Path
    version: Version
    properties: Mapping[str, str]
    has_columns: bool
    _described: dict[int, bool] = field(default_factory=dict, compare=False, repr=False)

    @staticmethod
    def open(path: str | None) -> LocalTable:
        """The table at a path or file: URI. Raises UndecidedError."""
        folder = local_folder(path)
        if folder is None:
            raise UndecidedError(f"{path} is not in a folder of this machine")
        try:
            found = _by_checksum(folder / "_delta_log") or _by_reader(folder)
            columns = bool(json.loads(found.schema)["fields"])
        except (DeltaError, OSError, ValueError, LookupError, TypeError) as error:
            raise UndecidedError(str(error)) from error
        if any(map(_ELSEWHERE.search, found.features)):
            raise UndecidedError(f"the commits of {path} are not only in its folder")
        return LocalTable(folder / "_delta_log", found.version, found.properties, columns)

    def commit(self, number: int) -> Commit:
        """A commit. Raises UndecidedError if it is no longer in the log."""
        file = self._file(number)
        try:
            found = commit_of(number, map(json.loads, filter(str.strip, file.read_text(encoding="utf-8").split("\n"))))
            return found if found.timestamp else replace(found, timestamp=int(file.stat().st_mtime * 1000))
        except (OSError, ValueError) as error:
            raise UndecidedError(f"version {number} can't be read: {error}") from error

    def committed_after(self, number: int) -> datetime | None:
        """When the first commit after a version was made, None if it is no longer in the log."""
        return self.commit(number + 1).time if self._file(number + 1).exists() else None

    def latest_time(self, number: int) -> datetime:
        """The latest of the times that a commit may be said to have: those in it, and that of its file. Raises UndecidedError."""
        try:
            infos = [json.loads(line)["commitInfo"] for line in self._lines(number) if _INFO.match(line)]
            said = [int(info.get(name) or 0) for info in infos for name in ("timestamp", "inCommitTimestamp")]
            return datetime.fromtimestamp(max([self._file(number).stat().st_mtime, *(ms / 1000 for ms in said)]), UTC)
        except (OSError, ValueError) as error:
            raise UndecidedError(f"version {number} can't be read: {error}") from error

    def mark(self, number: int) -> str:
        """A digest of a commit's file, empty if it is no longer in the log: as lake.delta.log.Log.mark."""
        file = self._file(number)
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.exists() else ""

    def described_again(self, since: int, until: int) -> bool:
        """Whether a commit of since+1..until set columns or properties. Raises UndecidedError if one is no longer in the log."""
        return any(self._describes(number) for number in range(since + 1, until + 1))

    def has_version(self, number: int) -> bool:
        """Whether a version can still be made from the log: from a checkpoint, or from the first commit."""
        names = {file.name for file in self.log.iterdir()}
        checkpoints = [int(found[1] or found[2]) for name in names if (found := _CHECKPOINT.fullmatch(name))]
        start = max((n for n in checkpoints if n <= number), default=-1)
        return all(self._file(n).name in names for n in range(start + 1, number + 1))

    def _describes(self, number: int) -> bool:
        if number not in self._described:
            try:
                self._described[number] = any(map(_METADATA.match, self._lines(number)))
            except OSError as error:
                raise UndecidedError(f"version {number} can't be read: {error}") from error
        return self._described[number]

    def _lines(self, number: int) -> Iterator[bytes]:
        with self._file(number).open("rb") as file:
            yield from file

    def _file(self, number: int) -> Path:
        return self.log / f"{number:020}.json"


def _by_checksum(log: Path) -> _Described | None:
    """From the checksum that Delta writes beside each commit: it names metadata and protocol, so that no file has to be listed. None if the
    newest version has none, or only a checkpoint."""
    numbers = [int(found[1]) for file in log.iterdir() if (found := _NUMBERED.match(file.name))]
    newest = max(numbers, default=-1)
    commit, checksum = log / f"{newest:020}.json", log / f"{newest:020}.crc"
    if not (commit.exists() and checksum.exists()):
        return None
    said = json.loads(checksum.read_text(encoding="utf-8"))
    metadata, protocol = said["metadata"], said["protocol"]
    properties = metadata.get("configuration") or {}
    features = frozenset([*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ()), *properties])
    return _Described(Version(str(metadata["id"]), newest), properties, metadata["schemaString"], features)


def _by_reader(folder: Path) -> _Described:
    """From delta-rs, which reads the whole log."""
    table = DeltaTable(folder)
    metadata, protocol = table.metadata(), table.protocol()
    features = frozenset([*(protocol.reader_features or ()), *(protocol.writer_features or ()), *metadata.configuration])
    return _Described(Version(str(metadata.id), table.version()), metadata.configuration, table.schema().to_json(), features)
