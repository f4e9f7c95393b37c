"""How far one batch goes: whole commits of each source, oldest first, until the batch has as many rows or files as it may take.

A batch takes at least one commit, however large: a commit is the least that a snapshot can move by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from lake.deltalog import Commit, Pinned
from lake.snapshots import Snapshot
from lake.tables import expired

_ROW = 64
"""Bytes that a row takes in a data file, where nothing else is known of it."""


@dataclass(frozen=True)
class Taken:
    """One commit of a source. `committed`: when, in seconds since 1970; `rows` and `files`: those that it changed, rows by estimate."""

    source: str
    version: int
    committed: float
    rows: int
    files: int


@dataclass
class Step:
    """A batch's chooser of versions (inputs.Chooser), from the snapshot `since`, None where the view is not yet there.

    `rows`, `files`: how many of them a batch takes. Afterwards, and when `on_chosen` is told, `heads` are the sources' newest versions,
    `taken` says what the batch took, `waiting` how many versions are left for later ones, `blocked` how many rows, as far as was looked.
    """

    since: Snapshot | None
    rows: int
    files: int
    on_chosen: Callable[[Step], None] = lambda _: None
    heads: dict[str, int] = field(default_factory=dict)
    taken: list[Taken] = field(default_factory=list)
    waiting: int = 0
    blocked: int = 0

    def __call__(self, heads: Mapping[str, Pinned]) -> dict[str, int]:
        self.taken, self.waiting, self.blocked = [], 0, 0
        self.heads = {source: head.version.number for source, head in heads.items()}
        if self.since is None:
            return {}
        # a table that is another one now is left to the refresh, which says so
        since = {s: self.since[s] for s, head in heads.items() if s in self.since and self.since[s] <= head.version.number}
        until = dict(since)
        rows = files = 0
        backlogs = [_backlog(source, heads[source], number) for source, number in since.items()]
        for commit in merge(*backlogs, key=lambda c: c.committed):
            rows, files = rows + commit.rows, files + commit.files
            if self.taken and (rows > self.rows or files > self.files):
                self.blocked = commit.rows
                break
            self.taken.append(commit)
            until[commit.source] = commit.version
        self.waiting = sum(heads[source].version.number - number for source, number in until.items())
        self.on_chosen(self)
        return until


def _backlog(source: str, head: Pinned, since: int) -> Iterator[Taken]:
    """The commits of a source after `since`, oldest first; times never fall, as clocks may."""
    newest = 0.0
    for commit in _commits(source, head, since):
        newest = max(newest, commit.timestamp / 1000)
        rows, files = _changed(commit)
        yield Taken(source, commit.number, newest, rows, files)


def _commits(source: str, head: Pinned, since: int) -> Iterator[Commit]:
    until = head.version.number
    try:
        yield from head.log.commits(since, until) if since < until else ()
    except (PySparkException, Py4JJavaError) as error:
        raise expired(source, since, until, error) from error


def _changed(commit: Commit) -> tuple[int, int]:
    """Rows and files that a commit changed: of its change files by their size, else of data files by their statistics (or their size)."""
    if commit.change_files:
        return sum(max(1, size // _ROW) for size in commit.change_files), len(commit.change_files)
    by_path: dict[str, list[int]] = {}
    for file in commit.files:
        rows = file.rows if file.rows is not None else max(1, file.bytes // _ROW)
        by_path.setdefault(file.path, []).append(rows if file.added else -rows)
    return sum(abs(sum(counts)) for counts in by_path.values()), len(commit.files)
