"""A batch takes whole commits, the oldest first, within its limits, and at least one."""

from __future__ import annotations

from typing import Any

from lake.core.snapshots import Snapshot, Version
from lake.delta.commit_order import SourceCommit
from lake.realtime.batch import Batch


class _Commit:
    def __init__(self, number: int, seconds: float, rows: int, files: int = 1) -> None:
        self.number, self.timestamp = number, int(seconds * 1000)
        self.files = tuple(_File(f"{number}-{i}", rows if i == 0 else 0) for i in range(files))
        self.change_files: dict[str, int] = {}


class _File:
    def __init__(self, path: str, rows: int, added: bool = True) -> None:
        self.path, self.rows, self.added, self.bytes = path, rows, added, 64


class _Head:
    """A pinned table with these commits after version 0."""

    def __init__(self, *commits: _Commit) -> None:
        self.commits_ = commits
        self.version = Version("t", len(commits))

    def commits(self, since: int) -> Any:
        return iter(c for c in self.commits_ if since < c.number)


def chosen(rows: int, files: int = 100, **heads: _Head) -> tuple[dict[str, int], Batch]:
    batch = Batch(Snapshot({name: Version("t", 0) for name in heads}), rows, files)
    return batch(heads), batch  # type: ignore[arg-type]


def test_all_is_taken_where_it_fits() -> None:
    until, batch = chosen(10, a=_Head(_Commit(1, 1, 4), _Commit(2, 2, 6)), b=_Head())
    assert until == {"a": 2, "b": 0}
    assert (batch.waiting, batch.blocked) == (0, 0)


def test_the_oldest_commits_of_all_sources_come_first() -> None:
    until, batch = chosen(5, a=_Head(_Commit(1, 1, 2), _Commit(2, 4, 2)), b=_Head(_Commit(1, 2, 2), _Commit(2, 3, 2)))
    assert until == {"a": 1, "b": 1}
    assert [(t.source, t.version) for t in batch.commits] == [("a", 1), ("b", 1)]
    assert (batch.waiting, batch.blocked) == (2, 2)


def test_a_commit_larger_than_a_batch_is_taken_alone() -> None:
    until, batch = chosen(5, a=_Head(_Commit(1, 1, 50), _Commit(2, 2, 1)))
    assert until == {"a": 1}
    assert batch.waiting == 1


def test_files_are_bounded_too() -> None:
    assert chosen(100, files=3, a=_Head(_Commit(1, 1, 1, files=2), _Commit(2, 2, 1, files=2)))[0] == {"a": 1}


def test_a_clock_that_falls_back_does_not_reorder_commits() -> None:
    until, batch = chosen(2, a=_Head(_Commit(1, 9, 1), _Commit(2, 1, 1)), b=_Head(_Commit(1, 5, 1)))
    assert until == {"a": 1, "b": 1}
    assert batch.commits[-1] == SourceCommit("a", 1, 9.0, 1, 1)


def test_rows_marked_as_deleted_are_counted_once() -> None:
    commit = _Commit(1, 1, 0)
    commit.files = (_File("f", 90), _File("f", 100, added=False))
    assert chosen(1000, a=_Head(commit))[1].commits[0].rows == 10


def test_files_rewritten_for_a_few_rows_count_by_their_change_files() -> None:
    commit = _Commit(1, 1, 100_000)
    commit.change_files = {"c": 640}
    assert chosen(1000, a=_Head(commit))[1].commits[0].rows == 10


def test_nothing_is_chosen_before_the_view_exists() -> None:
    assert Batch(None, 1, 1)({"a": _Head(_Commit(1, 1, 1))}) == {}  # type: ignore[dict-item]
