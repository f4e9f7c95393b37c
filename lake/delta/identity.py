"""Whether a table's log is still the one that was read before: a table can be replaced, or a backup of it restored."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from lake.core.snapshots import Snapshot, Version
from lake.delta.pinned import Pinned
from lake.delta.tables import Table, expired, reason
from lake.errors import SourceError
from lake.spark.failures import CALL_ERRORS

_MEANT = 'If that is intended, run "lakejoin rebuild VIEW" for the views that read it.'


def marked(snapshot: Snapshot, pins: Mapping[str, Pinned]) -> Snapshot:
    """A snapshot of the pinned versions with the digests of their commits, as a stamp stores it. Raises SourceError."""
    return Snapshot({label: replace(v, mark=_mark(label, pins[label], v.number)) for label, v in snapshot.versions.items()})


def _mark(table: Table | str, pinned: Pinned, number: int) -> str:
    try:
        return pinned.log.mark(number)
    except CALL_ERRORS as error:
        raise SourceError(f"Version {number} of the log of {table} can't be read: {reason(error)}.") from error


def check_identity(table: Table, pinned: Pinned, since: Version) -> None:
    """Raise SourceError if the log is not the one that was read before (trap 20).

    CREATE OR REPLACE sets a new id and continues the version numbers: an ordinary change if its commit is in the interval. A restored
    backup has the same id: it is found here as long as it has fewer commits than were read, and later by `check_history`.
    """
    here = pinned.version
    if here.table_id == since.table_id:
        newest = here.number if here.number >= since.number else pinned.log.head().version.number  # not the pin: it may be old
        if newest < since.number:
            raise SourceError(
                f"{table} was restored from a backup: its version {since.number} was read, and its newest version is {newest} now. {_MEANT}"
            )
        return
    if here.number >= since.number:
        try:
            ids = [c.table_id for c in pinned.log.commits(since.number, here.number) if c.table_id is not None]
        except CALL_ERRORS as error:
            raise expired(table, since.number, here.number, error) from error
        if here.table_id in ids and _was(pinned, since):
            return
    raise SourceError(
        f"{table} was replaced: version {since.number} was read from table id {since.table_id}, now it is version {here.number} of "
        f"{here.table_id}. {_MEANT}"
    )


def check_same(table: Table, pinned: Pinned, since: Version) -> None:
    """Raise SourceError if the log is not the one that version `since` was read from, by its id and its commits."""
    check_identity(table, pinned, since)
    check_history(table, pinned, since)


def check_history(table: Table, pinned: Pinned, since: Version) -> None:
    """Raise SourceError if the commit of the version that was read has changed: a backup was restored, or the folder is a copy, and got
    commits of its own."""
    there = _mark(table, pinned, since.number) if since.mark else ""
    if there and there != since.mark:
        raise SourceError(
            f"{table} has a different history now (it was restored from a backup, or is a copy, and has new commits): its version "
            f"{since.number} is not the commit that was read. {_MEANT}"
        )


def _was(pinned: Pinned, since: Version) -> bool:
    """Whether the log's version of that number belongs to the same table; true if it can no longer be read. A re-created table may have
    as many versions."""
    with suppress(*CALL_ERRORS):
        return pinned.log.at(since.number).version.table_id == since.table_id
    return True
