"""The status of views from logs on this machine, without a JVM: the rows that lake.operations.status gives, or None where it has to."""

from __future__ import annotations

from lake.config.models import Config
from lake.core.results import SourceStatus
from lake.core.snapshots import Version
from lake.core.stamp import Stamp
from lake.delta.local_log import UndecidedError
from lake.errors import LakeError
from lake.operations.source_status import source_status
from lake.views.local_stamps import LocalStamps


class LocalStatus:
    """Views of which nothing has to be analysed: each has the definition that it was published with, over tables that are the same."""

    def __init__(self, config: Config) -> None:
        self._stamps = LocalStamps(config)

    def rows(self, view: str) -> list[SourceStatus] | None:
        """A row for each source of a view; None if only a JVM can tell."""
        try:
            return [self._row(view, name, pin.number) for name, pin in self._pins(view).items()]
        except (UndecidedError, LakeError, OSError, ValueError, LookupError):
            return None

    def stamp(self, view: str) -> Stamp:
        """The stamp of a view that has rows. Raises UndecidedError for others."""
        return self._stamps.stamp(view)

    def below(self, view: str) -> set[str]:
        """A view that has rows, and all that it reads, directly or not. Raises UndecidedError for others."""
        return self._stamps.below(view)

    def _pins(self, view: str) -> dict[str, Version]:
        """The version that a refresh would bring each source to, all of them tables that are as they were when the view was published, with
        the same columns and properties. Raises UndecidedError."""
        read, pins = self._stamps.stamp(view).snapshot.versions, self._stamps.pins(view)
        for name, pin in pins.items():
            table, since = self._stamps.table(name), read[name]
            there = table.mark(since.number) if since.mark else ""
            if pin.table_id != since.table_id or pin.number < since.number or (there and there != since.mark):
                raise UndecidedError(f"{name} may be another table")
            if not table.has_columns or table.described_again(since.number, table.version.number):
                raise UndecidedError(f"{name} may have other columns")
        return pins

    def _row(self, view: str, name: str, newest: int) -> SourceStatus:
        table, read = self._stamps.table(name), self._stamps.stamp(view).snapshot[name]
        return source_status(view, name, read, newest, table.properties, table.committed_after)
