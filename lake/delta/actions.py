"""What a table's log says: the commits, and the data files that they add and remove, as plain records."""

from __future__ import annotations

import json
from base64 import b85decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
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
    """A data file that a commit added or removed. `body`: what the log says of it, without statistics; `vector`: the id of its deletion
    vector, empty where it has none; `rows`: how many it had, None where it has no statistics."""

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
        """The names of the files that hold it and its deletion vector, without folders; none of those that lie outside the table."""
        found = self.body.get("deletionVector") or {}
        names = [] if urlparse(self.path).scheme or self.path.startswith("/") else [unquote(self.path)]
        if found.get("storageType") == "u":  # its file's name is a UUID in Z85, of 20 characters, after any folder's name
            number = b85decode(str(found["pathOrInlineDv"])[-20:].translate(_Z85))
            names.append(f"deletion_vector_{UUID(bytes=number)}.bin")
        return [name.rpartition("/")[2] for name in names]

    @property
    def key(self) -> tuple[str, str]:
        """What it is that was added or removed: the file with these rows deleted."""
        return self.path, self.vector


@dataclass(frozen=True)
class Commit:
    """What one commit did, as far as Lakejoin asks. `files`: those that change data; `rearranged`: those of OPTIMIZE and its like, which
    don't; `change_files`: bytes, by path, of the files that it wrote for the change data feed alone; `metadata`: the table's, where it set
    them."""

    number: int
    timestamp: int
    operation: str
    user_metadata: str | None
    metadata: Mapping[str, Any] | None
    files: tuple[FileAction, ...]
    rearranged: tuple[FileAction, ...]
    change_files: Mapping[str, int]

    @property
    def time(self) -> datetime:
        """When it was made."""
        return datetime.fromtimestamp(self.timestamp / 1000, UTC)

    @property
    def changes_data(self) -> bool:
        return bool(self.files)

    @property
    def table_id(self) -> str | None:
        """The table's id, where it set its metadata."""
        return None if self.metadata is None else str(self.metadata["id"])

    @property
    def feed(self) -> list[str]:
        """The names of the files that its change feed is read from: those written for it alone, else its data files."""
        return [path.rpartition("/")[2] for path in self.change_files] or [name for file in self.files for name in file.stored]


def commit_of(number: int, actions: Iterable[dict[str, dict[str, Any]]]) -> Commit:
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for action in actions:
        for kind, body in action.items():
            by_kind.setdefault(kind, []).append(body)
    info = by_kind.get("commitInfo", [{}])[0]
    metadata = by_kind.get("metaData", [])
    files: dict[bool, list[FileAction]] = {True: [], False: []}
    for kind in ("add", "remove"):
        for body in by_kind.get(kind, []):
            files[bool(body.get("dataChange", True))].append(file_action(body, added=kind == "add"))
    return Commit(
        number,
        int(info.get("timestamp", 0)),
        str(info.get("operation", "")),
        info.get("userMetadata"),
        metadata[-1] if metadata else None,
        tuple(files[True]),
        tuple(files[False]),
        {str(body["path"]): int(body["size"]) for body in by_kind.get("cdc", [])},
    )


def file_action(body: Mapping[str, Any], added: bool = True) -> FileAction:
    """What the log says of a file."""
    file = FileAction(added, {k: v for k, v in body.items() if k != "stats"})
    rows = json.loads(body.get("stats") or "{}").get("numRecords")
    return file if rows is None else replace(file, rows=int(rows) - file.deleted)
