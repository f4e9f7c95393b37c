"""Says of each view and source which version is published, how far behind it is, and how long its changes stay readable."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from lake.core.results import SourceStatus
from lake.core.stamp import Stamp
from lake.delta.identity import check_same
from lake.delta.pinned import Pinned
from lake.delta.retention import changes_kept, expires_in
from lake.delta.sources import way_of
from lake.delta.tables import Table
from lake.errors import LakeError, SourceError
from lake.views.registry import OpenViews
from lake.views.table import published


def status_of_all(views: OpenViews, names: Iterable[str]) -> list[SourceStatus]:
    """The rows of several views; of one whose status can't be read, one row that says why."""
    return [row for name in names for row in _status_or_error(views, name)]


def status_of(views: OpenViews, view: str) -> list[SourceStatus]:
    """A row for each source of a view. Raises LakeError."""
    reads = views.reads(view)
    if any(name in views.config.views and views.table_log(name) is None for name in reads):
        return [SourceStatus(view, name, None, None, None, None, "a view below it is yet to be built", "") for name in reads]
    with views.opened(view) as state:
        _, inputs = views.prepare(view, state)
        current = published(state.spark, views.view_table(view))
        stamp = current.stamp if current else None
        return [_of_source(view, inputs.tables[name], stamp, pinned) for name, pinned in inputs.pins.items()]


def _status_or_error(views: OpenViews, view: str) -> list[SourceStatus]:
    try:
        return status_of(views, view)
    except LakeError as error:
        return [SourceStatus(view, "-", None, None, None, None, "not known", str(error))]


def _of_source(view: str, table: Table, stamp: Stamp | None, pinned: Pinned) -> SourceStatus:
    source, newest = table.label, pinned.version.number
    read = stamp.snapshot.get(source) if stamp else None
    if stamp is not None and read is not None:
        try:
            check_same(table, pinned, stamp.snapshot.versions[source])
        except SourceError as error:
            return SourceStatus(view, source, read, newest, None, None, "another table", str(error))
    left = expires_in(pinned, read, datetime.now(UTC)) if read is not None else None
    seconds = left.total_seconds() if left is not None else None
    lag = None if read is None else newest - read
    return SourceStatus(
        view, source, read, newest, lag, seconds, way_of(pinned), _advice(source, pinned), changes_kept(pinned).total_seconds()
    )


def _advice(source: str, pinned: Pinned) -> str:
    if pinned.has_feed:
        return ""
    return f"ALTER TABLE ... SET TBLPROPERTIES (delta.enableChangeDataFeed = true) makes changes of {source} cheaper"
