"""Keeping tables small: compaction, and a vacuum that leaves what a view has still to read.

Of a table that a view has read up to version p, the refresh to come reads the changes after p: the change files and removed data files of
the commits p+1 and on. A vacuum removes what was removed or written before its retention began, so these stay if commit p+1 is younger.
Delta takes no longer retention for one vacuum: by default it ignores the argument, and checkpoints drop what is older than the table's own
setting. So the table is left alone until the view has read on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import product
from typing import Protocol

from pyspark.sql import SparkSession

from lake.config.models import FORGOTTEN_AFTER
from lake.core.results import Maintained, SourceStatus
from lake.core.stamp import Stamp
from lake.delta.feed_properties import files_kept
from lake.delta.log import Log
from lake.delta.pinned import Pinned
from lake.delta.retention import committed_after
from lake.delta.sidecar import Folder, names_below
from lake.delta.tables import Table, reason
from lake.errors import DefinitionError, LakeError, SourceError, TargetError
from lake.spark.failures import SPARK_ERRORS
from lake.spark.session import vacuuming
from lake.views.inputs import ViewPath

_DAY = timedelta(days=1)
_WARNED_BEFORE = timedelta(days=2)


class Views(Protocol):
    """What is asked of the lakehouse, on each path."""

    path: ViewPath

    def reads(self, view: str, /) -> list[str]: ...
    def stamp(self, view: str, /) -> Stamp | None: ...
    def status(self, view: str, /) -> list[SourceStatus]: ...


Readers = Mapping[str, Sequence[tuple[Table, int | None]]]
"""By a table's name, and by its id (one table may have several names): views' tables, and the version that each was made of, None where it
can't say."""


def readers(paths: Sequence[Views], views: Iterable[str]) -> Readers:
    """Who has read which version of each table, on each path."""
    found: dict[str, list[tuple[Table, int | None]]] = {}
    for lake, view in product(paths, views):
        read: dict[tuple[str, str], int | None]
        try:
            stamp = lake.stamp(view)
            read = {(name, v.table_id): v.number for name, v in stamp.snapshot.versions.items()} if stamp is not None else {}
        except TargetError:  # somebody else wrote it
            read = dict.fromkeys((name, "") for name in sources(lake, [view]))
        for (name, table_id), version in read.items():
            if not _is_eventual(lake, name):
                for known in filter(None, (name, table_id)):
                    found.setdefault(known, []).append((lake.path.table(view), version))
    return found


def _is_eventual(lake: Views, name: str) -> bool:
    with suppress(DefinitionError):  # it is declared no more
        return lake.path.input(name).eventual
    return False


def known_status(lake: Views, view: str) -> list[SourceStatus]:
    """The view's status; none where it can't be had: its next refresh says why."""
    try:
        return lake.status(view)
    except LakeError:
        return []


def sources(lake: Views, views: Iterable[str]) -> list[str]:
    """What the views read, without those whose query can't be read: their next refresh says why."""
    found = dict[str, None]()
    for view in views:
        with suppress(LakeError):
            found |= dict.fromkeys(lake.reads(view))
    return list(found)


def forget_runs(spark: SparkSession, folder: str, now: datetime) -> None:
    """Remove what scheduled runs of long ago have kept."""
    Folder(spark, folder).delete_older((now - FORGOTTEN_AFTER).timestamp())


def maintain(spark: SparkSession, table: Table, read: Readers, now: datetime, dry_run: bool) -> Maintained:
    """Compact and vacuum one table.

    `dry_run`: only say how many files a vacuum would remove. Raises SourceError where Delta refuses.
    """
    head = table.head(spark)
    log, waiting = head.log, still_to_read(head, [*read.get(table.label, ()), *read.get(head.version.table_id, ())], now)
    try:
        if not dry_run:
            spark.sql(f"OPTIMIZE {table.sql}").collect()
        removed = 0 if waiting else _vacuum(spark, table, log, dry_run)
    except SPARK_ERRORS as error:
        raise SourceError(f"{table} can't be maintained: {reason(error)}. Its rows are as they were. Run it again.") from error
    return Maintained(table.label, head.files, head.files if dry_run else log.head().files, removed, waiting)


def _vacuum(spark: SparkSession, table: Table, log: Log, dry_run: bool) -> int:
    """How many files it removed, or would."""
    with vacuuming(spark):
        if dry_run:
            return spark.sql(f"VACUUM {table.sql} DRY RUN").count()
        before = names_below(spark, log.path)
        spark.sql(f"VACUUM {table.sql}").collect()
        return before.without(names_below(spark, log.path))


def still_to_read(head: Pinned, read: Sequence[tuple[Table, int | None]], now: datetime) -> str:
    """Which view has still to read what a vacuum of the table could remove, and what to do; empty where none has."""
    retention = files_kept(head.properties)
    written_before = min(_DAY, retention / 4)  # files are older than the commit that they belong to
    for view, version in read:
        if version is None:
            return f'it is not known what view {view.label} has read: run "{view.recreate_command}" first'
        if version < head.version.number:
            first = committed_after(head, version)
            if first is None or first - written_before < now - retention:
                return f'view {view.label} has still to read the changes since version {version}: run "{view.create_command}" first'
    return ""


def warning(status: SourceStatus) -> str:
    """What is about to become unreadable to a view, and what to do; empty where nothing is."""
    left = status.expires_in
    if left is None or left > _WARNED_BEFORE.total_seconds():
        return ""
    when = f"may become unreadable in {left / 3600:.0f} hours" if left > 0 else "may no longer be readable"
    return (
        f"{status.source}: the changes since version {status.published} {when}, and view {status.view} has still to read them: "
        f'run "lakejoin refresh {status.view}"'
    )
