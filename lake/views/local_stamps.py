"""What views were published with last and the tables that they read, from logs on this machine and without a JVM.

A stamp is given only of a view whose definition is as it was then, and so are those of the views below it: nothing is left to analyse.
Whatever else there may be raises UndecidedError, and a JVM says what it is.
"""

from __future__ import annotations

from lake.config.models import Config
from lake.core.snapshots import Version
from lake.core.stamp import Stamp
from lake.delta.actions import Commit
from lake.delta.local_log import LocalTable, UndecidedError
from lake.spark.session_digest import definition_digest, settings_digest
from lake.views.stamps import newest_stamp


class LocalStamps:
    """The stamps of views, and the newest versions of tables; each log is read once."""

    def __init__(self, config: Config, session: str | None = None) -> None:
        """`session`: the digest of the session that views are refreshed in; by default that of one which this process would make."""
        self.config = config
        self._session = session or settings_digest(config.spark)
        self._tables: dict[str, LocalTable] = {}
        self._stamps: dict[str, Stamp | None] = {}

    def table(self, name: str) -> LocalTable:
        """The newest version of a table or of a view's table. Raises UndecidedError."""
        if name not in self._tables:
            self._tables[name] = LocalTable.open(self.config.path_of(name))
        return self._tables[name]

    def stamp(self, view: str) -> Stamp:
        """The stamp of a view that has the definition that it was published with. Raises UndecidedError."""
        if view not in self._stamps:
            self._stamps[view] = None  # also for one that reads itself, by way of others
            self._stamps[view] = self._read(view)
        found = self._stamps[view]
        if found is None:
            raise UndecidedError(f"view {view} is not as it was published")
        return found

    def reads(self, view: str) -> list[str]:
        """The tables and views that a view reads, as they are in the configuration. Raises UndecidedError."""
        snapshot = self.stamp(view).snapshot
        return [name for name in [*self.config.tables, *self.config.views] if name in snapshot]

    def below(self, view: str) -> set[str]:
        """The view and all that it reads, directly or not. Raises UndecidedError."""
        views = [name for name in self.reads(view) if name in self.config.views]
        return {view, *self.reads(view)}.union(*map(self.below, views))

    def pins(self, view: str) -> dict[str, Version]:
        """The version of each input that a refresh would go to: the newest, but of a base table that a view below it has read (a diamond,
        trap 22) the version that it was built from. Raises UndecidedError."""
        bases: dict[str, Version] = {}
        for parent in (name for name in self.reads(view) if name in self.config.views):
            for name, version in self.stamp(parent).answers_for.versions.items():
                if bases.setdefault(name, version) != version:
                    raise UndecidedError(f"views that {view} reads were built from different versions of {name}")
        return {name: self._pin(name, None if name in self.config.views else bases.get(name)) for name in self.reads(view)}

    def _pin(self, name: str, at: Version | None) -> Version:
        newest = self.table(name).version
        if at is None or at.number == newest.number:
            return newest
        same = at.number < newest.number and not self.table(name).described_again(at.number, newest.number)
        if not (same and self.table(name).has_version(at.number)):
            raise UndecidedError(f"version {at.number} of {name} may not be as the newest is")
        return Version(newest.table_id, at.number)

    def _read(self, view: str) -> Stamp:
        stamp = self.own_stamp(view)
        for name in stamp.snapshot:
            if name in self.config.views:
                self.stamp(name)
        return stamp

    def own_stamp(self, view: str) -> Stamp:
        """The stamp of a view that has the definition that it was published with, whatever the views have that it reads. Raises
        UndecidedError."""
        if self.config.view(view).function is not None:  # what it calls is written elsewhere
            raise UndecidedError(f"view {view} is a function")
        table = self.table(view)
        if table.properties.get("lakejoin.view") != view:
            raise UndecidedError(f"the table of view {view} is another one")
        stamp = newest_stamp(table.version.number, table.commit, _refuse)
        if stamp is None or stamp.view != view or not self._same_text(view, stamp):
            raise UndecidedError(f"view {view} has another definition, or was never built")
        return stamp

    def _same_text(self, view: str, stamp: Stamp) -> bool:
        names = list(stamp.snapshot)
        known = all(name in self.config.tables or name in self.config.views for name in names)
        text = stamp.fingerprint.get("text", "")
        return bool(known and text) and text == definition_digest(view, self.config, names, self._session)


def _refuse(commit: Commit) -> None:
    raise UndecidedError(f"version {commit.number} was written by someone else")
