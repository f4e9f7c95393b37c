"""Versions, snapshots and intervals: immutable, no Spark.

A **version** is a Delta commit number of one table, stored with the table's id, since a table that is dropped and re-created starts
over at version 0. A **snapshot** is a vector of versions, one a source table. An **interval** (since, until] is a pair of
them, exclusive and inclusive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Version:
    """One commit of one table: the table's id (Delta's metadata id) and the commit's number. `mark`, in a stamp: a digest of the
    commit's file, empty if unknown. It distinguishes tables of the same id: a copy, or a restored backup."""

    table_id: str
    number: int
    mark: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Snapshot(Mapping[str, int]):
    """A vector of versions: `snapshot["bid"]` is the version number of `bid`; `versions` also has the ids of tables.

    The versions need not be of the same instant: each is the newest of its table when it was read.
    """

    versions: Mapping[str, Version] = field(default_factory=dict)

    def __getitem__(self, table: str) -> int:
        return self.versions[table].number

    def __iter__(self) -> Iterator[str]:
        return iter(self.versions)

    def __len__(self) -> int:
        return len(self.versions)

    def __hash__(self) -> int:
        return hash(tuple(sorted((t, v.table_id, v.number) for t, v in self.versions.items())))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Snapshot):
            return dict(self.versions) == dict(other.versions)
        return dict(self) == other

    def __str__(self) -> str:
        return ", ".join(f"{table}@{number}" for table, number in sorted(self.items()))

    def to_json(self) -> dict[str, dict[str, Any]]:
        """`{table: {"id": table id, "version": number, "mark": digest}}`, as the stamp stores it."""
        versions = sorted(self.versions.items())
        return {table: {"id": v.table_id, "version": v.number} | ({"mark": v.mark} if v.mark else {}) for table, v in versions}

    @staticmethod
    def from_json(data: Mapping[str, Mapping[str, Any]]) -> Snapshot:
        return Snapshot({table: Version(str(v["id"]), int(v["version"]), str(v.get("mark", ""))) for table, v in data.items()})


@dataclass(frozen=True)
class Interval:
    """(since, until]: exclusive and inclusive. Both name the same tables."""

    since: Snapshot
    until: Snapshot

    def moved(self) -> tuple[str, ...]:
        """The tables whose version differs between the ends."""
        return tuple(t for t in self.until if self.since.versions[t] != self.until.versions[t])

    def backwards(self) -> tuple[str, ...]:
        """The tables that would move to an older version."""
        return tuple(t for t in self.until if self.until[t] < self.since[t])

    def __str__(self) -> str:
        return "; ".join(f"{t} ({self.since[t]}, {self.until[t]}]" for t in sorted(self.until))
