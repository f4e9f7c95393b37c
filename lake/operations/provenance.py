"""Whether rows of a view in two deployments are the same, by what they were made of: equal definitions over equal rows give equal rows.

    production   w: made of t@12 and of v's version 7, and that of t@12      the same rows, if v has one definition in both, and w has
    environment  w: made of t@12 and of v's version 2, and that of t@12

The base tables' versions alone do not say so: w is the same query over another v once v is edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lake.core.plan import differing
from lake.core.snapshots import Version
from lake.core.stamp import Stamp
from lake.delta.tables import Table
from lake.views.inputs import view_place
from lake.views.registry import OpenViews
from lake.views.table import Publication, Published, publications, published


@dataclass(frozen=True)
class Provenance:
    """The stamps of a development environment's tables of views, and of production's. The history of a table is read once, and only where
    its newest stamp does not say enough."""

    views: OpenViews
    production: OpenViews
    _known: dict[tuple[Table, int], Sequence[Publication]] = field(default_factory=dict)

    def at(self, name: str, read: Version) -> Stamp | None:
        """The stamp of a version of a view's table, whosever it is; None where that table, or that version, is no longer there."""
        for table in self._tables(name):
            current = published(self.views.spark, table)
            if current is not None and current.pinned.version.table_id == read.table_id:
                if current.pinned.version.number == read.number:
                    return current.stamp
                found = [p.stamp for p in self._publications(table, current) if p.version <= read.number]
                return found[-1] if found else None
        return None

    def same(self, one: Stamp, other: Stamp) -> bool:
        """Whether the rows that two stamps are of are the same."""
        if differing(one.fingerprint, other.fingerprint) or one.snapshot.keys() != other.snapshot.keys():
            return False
        return all(self._same_input(n, one.snapshot.versions[n], other.snapshot.versions[n]) for n in one.snapshot)

    def version_of(self, name: str, stamp: Stamp) -> int | None:
        """The newest version of production's table of a view with the rows that a stamp is of; None where there is none."""
        table = self.production.view_table(name)
        current = published(self.production.spark, table)
        if current is None or current.stamp is None:
            return None
        if self.same(current.stamp, stamp):
            return current.pinned.version.number
        found = [p.version for p in self._publications(table, current) if self.same(p.stamp, stamp)]
        return found[-1] if found else None

    def _tables(self, name: str) -> list[Table]:
        found = [view_place(self.views.config, name)]
        return found if name not in self.production.config.views else [*found, view_place(self.production.config, name)]

    def _same_input(self, name: str, one: Version, other: Version) -> bool:
        if one == other or name not in self.views.config.views:
            return one == other
        first, second = self.at(name, one), self.at(name, other)
        return first is not None and second is not None and self.same(first, second)

    def _publications(self, table: Table, current: Published) -> Sequence[Publication]:
        key = table, current.pinned.version.number
        if key not in self._known:
            self._known[key] = list(publications(self.views.spark, table))
        return self._known[key]
