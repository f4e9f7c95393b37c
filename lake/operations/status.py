"""Says of each view and source which version is published, how far behind it is, and how long its changes stay readable."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from lake.core.results import BELOW_UNBUILT, SourceStatus
from lake.core.stamp import Stamp
from lake.delta.identity import check_same
from lake.delta.pinned import Pinned
from lake.delta.retention import committed_after
from lake.delta.tables import Table
from lake.errors import LakeError, SourceError
from lake.operations.source_status import source_status
from lake.views.registry import OpenViews
from lake.views.table import published


def status_of_all(views: OpenViews, names: Iterable[str]) -> list[SourceStatus]:
    """The rows of several views; of one whose status can't be read, one row that says why."""
    return [row for name in names for row in _status_or_error(views, name)]


def status_of(views: OpenViews, view: str) -> list[SourceStatus]:
    """A row for each source of a view. Raises LakeError."""
    reads = views.reads(view)
    if any(name in views.config.views and views.table_log(name) is None for name in reads):
        return [SourceStatus(view, name, None, None, None, None, BELOW_UNBUILT, "") for name in reads]
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
    return source_status(view, source, read, newest, pinned.properties, partial(committed_after, pinned))
