"""What is kept of views, and what was dropped of it: the results of `drop` and `gc`. No Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from lake.core.constants import PathKind

KeptState = Literal["whole", "half dropped", "leftover"]
"""Of a table: it is one; its drop was begun and has not ended; there is a folder without a log, with nothing but Lakejoin's own files."""


@dataclass(frozen=True)
class KeptTable:
    """A table that Lakejoin created for a view.

    `place`: its path, or (`by_name`) its name in a catalog; `folder`: where its files are, a URI; `bytes` and `files`: of all files
    there, also of old versions and of the log; `published`: when a refresh last published to it, None if none has, or its log no
    longer says; `changed`: when its newest commit was made.
    """

    kind: PathKind
    place: str
    by_name: bool
    folder: str
    state: KeptState
    bytes: int
    files: int
    published: datetime | None = None
    changed: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in _json(asdict(self)).items() if name not in ("folder", "by_name")}


@dataclass(frozen=True)
class RemovedView:
    """A view that is no longer in lakejoin.yml, and what is kept of it."""

    name: str
    tables: tuple[KeptTable, ...]

    @property
    def table(self) -> str:
        """The path or the name of its table; without one, of its real-time table or that of its backfills."""
        return self.tables[0].place

    @property
    def bytes(self) -> int:
        """Of all files of its tables."""
        return sum(table.bytes for table in self.tables)

    @property
    def last_published(self) -> datetime | None:
        """When a refresh last published to one of its tables, None if none has."""
        return max((table.published for table in self.tables if table.published), default=None)

    @property
    def last_changed(self) -> datetime | None:
        """The same; without a refresh, the newest commit."""
        return self.last_published or max((table.changed for table in self.tables if table.changed), default=None)

    @property
    def half_dropped(self) -> bool:
        """Whether a drop of it was begun, and has not ended."""
        return any(table.state == "half dropped" for table in self.tables)

    def to_json(self) -> dict[str, Any]:
        said = {"name": self.name, "table": self.table, "bytes": self.bytes, "last_published": self.last_published}
        return _json(said) | {"tables": [table.to_json() for table in self.tables]}


@dataclass(frozen=True)
class Dropped:
    """What a drop of a view removed, or (`dropped` is false) would remove. `runs`: the files of scheduled runs of this view only;
    `readers`: the views and tables of lakejoin.yml that read it; `configured`: it is still in lakejoin.yml."""

    view: str
    tables: tuple[KeptTable, ...]
    runs: tuple[str, ...]
    readers: tuple[str, ...]
    configured: bool
    dropped: bool

    @property
    def bytes(self) -> int:
        return sum(table.bytes for table in self.tables)

    def to_json(self) -> dict[str, Any]:
        said = {"view": self.view, "dropped": self.dropped, "configured": self.configured, "bytes": self.bytes}
        return said | {"tables": [t.to_json() for t in self.tables], "runs": list(self.runs), "readers": list(self.readers)}


@dataclass(frozen=True)
class Leftover:
    """What is left of a view that is no longer in lakejoin.yml, or of a scheduled run.

    `age`: in seconds since its last refresh, None if that is not known; `due`: it is old enough to be dropped; `files`: of a run, the names
    of its files in `place`.
    """

    kind: Literal["view", "run"]
    name: str
    place: str
    bytes: int
    age: float | None
    due: bool
    reason: str
    files: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"files": list(self.files)}


@dataclass(frozen=True)
class Collected:
    """The leftovers of a configuration. Those that are due were dropped, but for those that `failed`, with the error of each; none in a
    `dry_run`."""

    leftovers: tuple[Leftover, ...]
    failed: Mapping[str, str]
    dry_run: bool

    @property
    def due(self) -> list[Leftover]:
        return [leftover for leftover in self.leftovers if leftover.due]

    @property
    def dropped(self) -> list[Leftover]:
        return [] if self.dry_run else [leftover for leftover in self.due if leftover.name not in self.failed]

    def to_json(self) -> dict[str, Any]:
        dropped = {leftover.name for leftover in self.dropped}
        found = [leftover.to_json() | {"dropped": leftover.name in dropped} for leftover in self.leftovers]
        return {"dry_run": self.dry_run, "leftovers": found, "failed": dict(self.failed)}


def _json(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in said.items()}
