"""Finds in the commits of a view's table the stamp of what was published last, whoever reads the log. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lake.core.stamp import Stamp
from lake.delta.actions import Commit

OTHER_COLUMNS = frozenset({"ADD COLUMNS", "DROP COLUMNS", "RENAME COLUMN", "REPLACE COLUMNS"})
"""Operations of commits that change a table's columns, and no row."""


def newest_stamp(newest: int, commit: Callable[[int], Commit], refuse: Callable[[Commit], None]) -> Stamp | None:
    """The stamp of the newest version, None where the table was made, but not built.

    `commit`: a commit by its number; `refuse`: is called with each commit of somebody else that changed rows or columns (trap 15), and
    may raise.
    """
    newer: list[Commit] = []
    for number in range(newest, -1, -1):
        read = commit(number)
        stamp = Stamp.from_json(read.user_metadata)
        if stamp is not None:
            _each_foreign(newer, refuse)
            _each_foreign(map(commit, range(stamp.base + 1, number)), refuse)
            return stamp
        newer.append(read)
    _each_foreign(newer, refuse)
    return None


def _each_foreign(commits: Iterable[Commit], refuse: Callable[[Commit], None]) -> None:
    for commit in commits:
        if (commit.changes_data or commit.operation in OTHER_COLUMNS) and Stamp.from_json(commit.user_metadata) is None:
            refuse(commit)
