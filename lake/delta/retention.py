"""Whether, and how long, a table's versions can be read: VACUUM removes their data files, log clean-up their commits."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from itertools import islice

from lake.delta.file_changes import file_changes, rows_of_feed
from lake.delta.pinned import Pinned
from lake.delta.sidecar import Names, names_below
from lake.delta.sources import by_files
from lake.delta.tables import Table, expired, reason
from lake.errors import ExpiredError
from lake.spark.failures import CALL_ERRORS

_WITHOUT_HOST = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?")
_AT_ONCE = 1_000
"""How many data files are looked for in one call."""
_BACK = (1, 10, 100)
"""How many commits back the newest commit that changes rows is searched, in steps."""


def refuse_unreadable(table: Table, first: Pinned, last: Pinned, ends: Collection[int]) -> None:
    """Raise ExpiredError naming the version, if files of the table at `first` or at one of the versions `ends` (up to `last`), or of the
    changes from each to the next, no longer exist."""
    there = names_below(last.log.spark, last.log.path)
    lacking = _lacking(first, there)
    _refuse(table, first.version.number, lacking.values())
    since, until = first.version.number, last.version.number
    try:
        for commit in last.log.commits(since, until) if since < until else ():
            files = (*commit.files, *commit.rearranged)
            missing = there.missing(name for file in files if file.added for name in file.stored)
            for file in files:
                gone_names = [name for name in file.stored if name in missing] if file.added else []
                if gone_names:
                    lacking[file.key] = gone_names[0]
                elif not file.added:
                    lacking.pop(file.key, None)
            in_feed = there.missing(path.rpartition("/")[2] for path in (commit.change_files if last.has_feed else ()))
            _refuse(table, commit.number, [*sorted(in_feed), *(lacking.values() if commit.number in ends else ())])
    except CALL_ERRORS as error:
        raise expired(table, since, until, error) from error


def missing_file(pinned: Pinned) -> str:
    """A file that this version of the table needs and that no longer exists; empty if there is none."""
    return next(iter(_lacking(pinned, names_below(pinned.log.spark, pinned.log.path)).values()), "")


def changes_gone(pinned: Pinned, since: int) -> str:
    """Why the changes since+1.. up to the pinned version can't be read any more: a file or commit is missing; empty if they can."""
    until = pinned.version.number
    if since >= until:
        return ""
    try:
        found = file_changes(pinned, since)
        if by_files(pinned, found):
            names = [name for file in found.files for name in file.stored]
        else:
            names = [name for commit in pinned.log.commits(since, until) for name in commit.feed]
    except CALL_ERRORS as error:
        return reason(error)
    missing = min(names_below(pinned.log.spark, pinned.log.path).missing(names), default="") if names else ""
    return f"{missing}, which versions {since + 1} to {until} are read from, is no longer there" if missing else ""


def is_of_a_file_gone(error: Exception) -> bool:
    """Whether a read failed because a file no longer exists."""
    return "FILE_NOT_EXIST" in str(error)


def file_gone(error: Exception, pins: Mapping[str, Pinned], since: Mapping[str, int]) -> str:
    """Which file of which table and version such a read failed for; empty if it belongs to none of the tables.

    `since`: the versions after which the tables' changes were read.
    """
    text = str(error)
    for table, pinned in pins.items():
        if f"{_WITHOUT_HOST.sub('', pinned.log.path)}/" in text:
            first, until = since.get(table, pinned.version.number), pinned.version.number
            for commit in pinned.log.commits(first, until) if first < until else ():
                names = [path.rpartition("/")[2] for path in commit.change_files]
                names += [name for file in commit.files for name in file.stored]
                found = next((name for name in names if name in text), "")
                if found:
                    return f"{found} of {table} version {commit.number}"
            return f"one of {table} version {until}"
    return ""


def _lacking(pinned: Pinned, there: Names) -> dict[tuple[str, str], str]:
    """The data files of this version that can't be read, by their keys, each with the name of a missing file."""
    files, found = pinned.data_files(), dict[tuple[str, str], str]()
    while some := list(islice(files, _AT_ONCE)):
        missing = there.missing(name for file in some for name in file.stored)
        found |= {file.key: name for file in some for name in file.stored if name in missing}
    return found


def _refuse(table: Table, version: int, missing: Collection[str]) -> None:
    if missing:
        raise ExpiredError(
            f"{table} version {version} can no longer be read: {len(missing)} of its files no longer exist, for example "
            f"{next(iter(missing))} (removed by VACUUM or by hand). Nothing was written. Start at a later version."
        )


def feed_gap(pinned: Pinned, since: int) -> str:
    """Why the change data feed can't be read for the commits since+1.. up to the pinned one; empty if it can, or no commit is waiting."""
    if since >= pinned.version.number:
        return ""
    try:
        rows_of_feed(pinned, since, [])
    except CALL_ERRORS as error:
        return reason(error)
    return ""


def committed_after(pinned: Pinned, since: int) -> datetime | None:
    """When the first commit after version `since` was made, None if it is no longer in the log."""
    try:
        first = next(iter(pinned.log.commits(since, since + 1)))
    except CALL_ERRORS:
        return None
    return first.time


def changed_last(pinned: Pinned) -> datetime:
    """When the newest commit that changes rows was made (OPTIMIZE does not); if none of those searched does: the oldest of them."""
    until, found = pinned.version.number, pinned.time
    for back in _BACK:
        try:
            commits = list(pinned.log.commits(max(-1, until - back), until))
        except CALL_ERRORS:  # the log does not reach back so far
            break
        changing = [commit for commit in commits if commit.changes_data]
        if changing:
            return changing[-1].time
        found = commits[0].time
    return found
