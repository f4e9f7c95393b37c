"""The commits of several tables in the order of their times, from which real-time batches and backfills choose their snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import merge

from lake.delta.actions import Commit
from lake.delta.pinned import Pinned
from lake.delta.tables import expired
from lake.spark.failures import CALL_ERRORS

_ROW = 64
"""The assumed bytes per row of a data file without statistics."""


@dataclass(frozen=True)
class SourceCommit:
    """One commit of a source. `committed`: when, in seconds since 1970; `rows` and `files`: those that it changed, rows by estimate."""

    source: str
    version: int
    committed: float
    rows: int
    files: int


def in_order(tables: Mapping[str, Pinned], since: Mapping[str, int]) -> Iterator[SourceCommit]:
    """The commits of the tables after `since`, up to their pinned versions, oldest first; of each table in its own order.

    Raises ExpiredError if one is no longer in the log.
    """
    return merge(*[_backlog(source, pinned, since[source]) for source, pinned in tables.items()], key=lambda commit: commit.committed)


def _backlog(source: str, head: Pinned, since: int) -> Iterator[SourceCommit]:
    """The commits of a source after `since`, oldest first; their times never decrease, even if a clock was set back."""
    newest = 0.0
    for commit in _commits(source, head, since):
        newest = max(newest, commit.timestamp / 1000)
        rows, files = _changed(commit)
        yield SourceCommit(source, commit.number, newest, rows, files)


def _commits(source: str, head: Pinned, since: int) -> Iterator[Commit]:
    until = head.version.number
    try:
        yield from head.commits(since) if since < until else ()
    except CALL_ERRORS as error:
        raise expired(source, since, until, error) from error


def _changed(commit: Commit) -> tuple[int, int]:
    """Rows and files that a commit changed: by the size of its change files, else by the statistics (or size) of its data files."""
    if commit.change_files:
        return sum(max(1, size // _ROW) for size in commit.change_files.values()), len(commit.change_files)
    by_path: dict[str, list[int]] = {}
    for file in commit.files:
        rows = file.rows if file.rows is not None else max(1, file.bytes // _ROW)
        by_path.setdefault(file.path, []).append(rows if file.added else -rows)
    return sum(abs(sum(counts)) for counts in by_path.values()), len(commit.files)
