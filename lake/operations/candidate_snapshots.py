"""The snapshots at which a table may have been computed, the likeliest first.

A job reads its sources before it commits, so the newest commit that changed the table's rows comes after the versions that it read. The
newest versions come first all the same: whoever adopts a table has often just run the job. Versions that differ in no row are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime

from lake.delta.actions import Commit
from lake.delta.pinned import Pinned
from lake.delta.tables import pin_at
from lake.errors import LakeError
from lake.spark.failures import CALL_ERRORS

MOST = 20
"""How many snapshots are tried."""
_COMMITS_OF_TABLE, _BACK = 5, 100


def candidates(sources: Mapping[str, Pinned], table: Pinned) -> Iterator[dict[str, int]]:
    """The snapshots of some base tables, from their newest versions:

    the newest → as of the newest commit that changed the table's rows → as of the few before it → from the first of these back, one
    commit of a source after the other.
    """
    commits = {name: list(_changing(pinned)) for name, pinned in sources.items()}
    seen = set[tuple[int, ...]]()
    for at in _all(sources, table, commits):
        rows = tuple(max((c.number for c in commits[name] if c.number <= number), default=number) for name, number in sorted(at.items()))
        if rows not in seen:
            seen.add(rows)
            yield at


def _all(sources: Mapping[str, Pinned], table: Pinned, commits: Mapping[str, list[Commit]]) -> Iterator[dict[str, int]]:
    yield {name: pinned.version.number for name, pinned in sources.items()}
    moments = [commit.time for _, commit in zip(range(_COMMITS_OF_TABLE), _changing(table), strict=False)]
    known = [at for at in (_as_of(sources, moment) for moment in moments) if at is not None]
    yield from known
    if not known:
        return
    at = known[0]
    undone = [(c.timestamp, name, c.number) for name, of_source in commits.items() for c in of_source if 0 < c.number <= at[name]]
    for _, name, number in sorted(undone, reverse=True):
        at = {**at, name: number - 1}
        yield at


def _as_of(sources: Mapping[str, Pinned], moment: datetime) -> dict[str, int] | None:
    with suppress(LakeError):
        return {name: pin_at(pinned, name, moment).version.number for name, pinned in sources.items()}
    return None


def _changing(pinned: Pinned) -> Iterator[Commit]:
    """The commits that changed rows of a table, the newest first, as far as its log is looked at."""
    newest = pinned.version.number
    with suppress(StopIteration, *CALL_ERRORS):
        for number in range(newest, max(-1, newest - _BACK), -1):
            commit = next(pinned.log.commits(number - 1, number))
            if commit.changes_data:
                yield commit
