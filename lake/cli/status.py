"""Finds out the state of views for `lakejoin status`: from logs on this machine without a JVM, and from Spark only what they can't tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lake.cli.context import Invocation
from lake.config.models import Config
from lake.core.results import SourceStatus
from lake.core.stamp import Stamp
from lake.operations.local_status import LocalStatus
from lake.quality.health import Health, health_of_views, scopes
from lake.quality.local_results import recent
from lake.quality.measurements import Row
from lake.quality.view_status import ViewStatus, view_statuses
from lake.realtime.local_states import local_states

if TYPE_CHECKING:
    from lake import Lakehouse


@dataclass(frozen=True)
class Looked:
    """The state of views, worst first; the rows of their sources; the newest lease of each real-time path; their health by checks."""

    states: Sequence[ViewStatus]
    rows: Sequence[SourceStatus]
    paths: Mapping[str, dict[str, Any]]
    checked: Mapping[str, Health]

    def to_json(self) -> list[dict[str, Any]]:
        """A record for each row, with all that is known of its view."""
        said, words = {name: health.to_json() for name, health in self.checked.items()}, {one.view: one.to_json() for one in self.states}
        more = [{"realtime": self.paths.get(r.view), "checks": said.get(r.view), "view_status": words[r.view]} for r in self.rows]
        return [row.to_json() | own for row, own in zip(self.rows, more, strict=True)]


def look(invoked: Invocation, view: str | None) -> Looked:
    """The state of a view, or (None) of all. Raises LakeError for a view that was named and can't say."""
    views = _Views(invoked)
    if view is not None:
        views.config.view(view)
    rows = views.rows(view)
    names = list(dict.fromkeys(row.view for row in rows))
    paths, checked = views.paths(names), health_of_views(views.results(), names, views.below)
    return Looked(view_statuses(views, rows, paths, checked), rows, paths, checked)


class _Views:
    """Some views known from logs on this machine, the others from a lakehouse, which is opened when the first of them is asked for."""

    def __init__(self, invoked: Invocation) -> None:
        self._invoked = invoked
        self._config: Config | None = invoked.local
        self._local = LocalStatus(self._config) if self._config is not None else None
        self._known: set[str] = set()

    @cached_property
    def _lake(self) -> Lakehouse:
        opened: Lakehouse = self._invoked.lake()
        return opened

    @property
    def config(self) -> Config:
        return self._lake.config if self._config is None else self._config

    def rows(self, view: str | None) -> list[SourceStatus]:
        """The rows of a view, or of all, as Lakehouse.status gives them."""
        names = [view] if view is not None else list(self.config.views)
        found = {name: rows for name in names if self._local is not None and (rows := self._local.rows(name)) is not None}
        self._known = set(found)
        others = [name for name in names if name not in found]
        for row in self._lake.status(others if view is None else view) if others else ():
            found.setdefault(row.view, []).append(row)
        return [row for name in names for row in found.get(name, ())]

    def stamp(self, view: str) -> Stamp | None:
        """What a view was published with. Raises LakeError."""
        return self._local.stamp(view) if self._local is not None and view in self._known else self._lake.stamp(view)

    def refuse_changed_definition(self, stamp: Stamp) -> None:
        """As of a lakehouse; a view that is known from its log has the definition that it was published with."""
        if stamp.view not in self._known:
            self._lake.refuse_changed_definition(stamp)

    def is_shared(self, view: str) -> bool:
        """As of a lakehouse; a view that is known from its own log is not."""
        return self.config.production is not None and view not in self._known and self._lake.is_shared(view)

    def below(self, view: str) -> set[str]:
        """A view and what it reads, directly or not."""
        return self._local.below(view) if self._local is not None and view in self._known else scopes(self._lake, view)

    def paths(self, views: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The newest lease of each real-time path."""
        found = local_states(self.config, views) if self._local is not None else None
        if found is not None:
            return found
        from lake.realtime.states import states

        return states(self._lake, views)

    def results(self) -> list[Row]:
        """The newest results of checks."""
        found = recent(self.config) if self._local is not None else None
        if found is not None:
            return found
        from lake.quality.results import QualityResults

        return QualityResults(self._lake).recent()
