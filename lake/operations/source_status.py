"""One row of a status, from what the logs of a view's table and of its source say. No Spark: both readers of logs use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from lake.core.results import SourceStatus
from lake.delta.feed_properties import changes_kept, expires_in, has_feed, way_of


def source_status(
    view: str,
    source: str,
    read: int | None,
    newest: int,
    properties: Mapping[str, str],
    committed_after: Callable[[int], datetime | None],
) -> SourceStatus:
    """The row of a source that is the table which the view has read. `read`: the version that the view was built from, None if it never
    was; `properties`: of the source; `committed_after`: as for `expires_in`."""
    left = None if read is None else expires_in(properties, read, newest, committed_after, datetime.now(UTC))
    return SourceStatus(
        view,
        source,
        read,
        newest,
        None if read is None else newest - read,
        None if left is None else left.total_seconds(),
        way_of(properties),
        _advice(source, properties),
        changes_kept(properties).total_seconds(),
    )


def _advice(source: str, properties: Mapping[str, str]) -> str:
    if has_feed(properties):
        return ""
    return f"ALTER TABLE ... SET TBLPROPERTIES (delta.enableChangeDataFeed = true) makes changes of {source} cheaper"
