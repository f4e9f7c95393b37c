"""What a table's log says: the commits, and the data files that they add and remove, as plain records."""

from __future__ import annotations

import json
from base64 import b85decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlparse
from uuid import UUID

_Z85 = str.maketrans(
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
)
"""From ZeroMQ's alphabet of base 85 (its RFC 32), in which Delta writes, to that of RFC 1924, which Python reads."""


@dataclass(frozen=True)
class FileAction:
    """A data file that a commit added or removed. `body`: its record in the log, without statistics; `vector`: the id of its deletion
    vector, empty if it has none; `rows`: its number of rows, None without statistics."""

    added: bool
    body: dict[str, Any]
    rows: int | None = None

    @property
    def path(self) -> str:
        return str(self.body["path"])

    @property
    def bytes(self) -> int:
        return int(self.body.get("size") or 0)

    @property
    def deleted(self) -> int:
        """How many of its rows its deletion vector marks as deleted."""
        return int((self.body.get("deletionVector") or {}).get("cardinality", 0))

    @cached_property
    def vector(self) -> str:
        found = self.body.get("deletionVector") or {}
        return "".join(str(found.get(part, "")) for part in ("storageType", "pathOrInlineDv", "offset"))

    @property
    def stored(self) -> list[str]:
        """The names, without folders, of the files that store it and its deletion vector, if they are in the table's folder."""
        found = self.body.get("deletionVector") or {}
        names = [] if urlparse(self.path).scheme or self.path.startswith("/") else [unquote(self.path)]
        if found.get("storageType") == "u":  # its file's name is a UUID in Z85, of 20 characters, after any folder's name
            number = b85decode(str(found["pathOrInlineDv"])[-20:].translate(_Z85))
            names.append(f"deletion_vector_{UUID(bytes=number)}.bin")
        return [name.rpartition("/")[2] for name in names]

    @property
    def key(self) -> tuple[str, str]:
        """What identifies it: its path and its deletion vector."""
        return self.path, self.vector


@dataclass(frozen=True)
class Commit:
    """What one commit did, as far as Lakejoin needs it. `files`: those that change data; `rearranged`: those that do not, of OPTIMIZE for
    example; `change_files`: bytes, by path, of its change data feed files; `metadata`: the table's, if it set them; `user`: who made
    it, empty if the log does not say; `parameters`: of the operation, as Delta's log has them."""

    number: int
    timestamp: int
    operation: str
    user_metadata: str | None
    metadata: Mapping[str, Any] | None
    files: tuple[FileAction, ...]
    rearranged: tuple[FileAction, ...]
    change_files: Mapping[str, int]
    user: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def time(self) -> datetime:
        """When it was committed."""
        return datetime.fromtimestamp(self.timestamp / 1000, UTC)

    @property
    def changes_data(self) -> bool:
        return bool(self.files)

    @property
    def table_id(self) -> str | None:
        """The table's id, if the commit set the metadata."""
        return None if self.metadata is None else str(self.metadata["id"])

    @property
    def feed(self) -> list[str]:
        """The names of the files that the change data feed reads: its change files, or else its data files."""
        return [path.rpartition("/")[2] for path in self.change_files] or [name for file in self.files for name in file.stored]


def commit_of(number: int, actions: Iterable[dict[str, dict[str, Any]]]) -> Commit:
    """A commit from its actions, each as in the log. The statistics of a file are dropped as soon as its rows are counted."""
    by_kind: dict[str, list[dict[str, Any]]] = {}
    files: dict[bool, list[FileAction]] = {True: [], False: []}
    for action in actions:
        for kind, body in action.items():
            if kind in ("add", "remove"):
                files[bool(body.get("dataChange", True))].append(file_action(body, added=kind == "add"))
            else:
                by_kind.setdefault(kind, []).append(body)
    info = by_kind.get("commitInfo", [{}])[0]
    metadata = by_kind.get("metaData", [])
    return Commit(
        number,
        int(info.get("timestamp", 0)),
        str(info.get("operation", "")),
        info.get("userMetadata"),
        metadata[-1] if metadata else None,
        tuple(files[True]),
        tuple(files[False]),
        {str(body["path"]): int(body["size"]) for body in by_kind.get("cdc", [])},
        str(info.get("userName") or info.get("userId") or ""),
        {str(name): _text(value) for name, value in (info.get("operationParameters") or {}).items()},
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def file_action(body: Mapping[str, Any], added: bool = True) -> FileAction:
    """The record of a file, from its JSON in the log."""
    file = FileAction(added, {k: v for k, v in body.items() if k != "stats"})
    rows = json.loads(body.get("stats") or "{}").get("numRecords")
    return file if rows is None else replace(file, rows=int(rows) - file.deleted)
