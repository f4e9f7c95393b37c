"""Finds what is left of views that are no longer in lakejoin.yml, and of scheduled runs that died; drops what is old enough.

Old enough is a view whose last refresh is `drop_after_days` ago (the newest commit of its tables, if none was ever published), and a run of
which nothing was written for as long. A drop that was begun is finished at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lake.config.models import PIN
from lake.core.removals import Collected, Leftover, RemovedView
from lake.delta.sidecar import Folder
from lake.errors import LakeError, TargetError
from lake.operations.drop import Views, drop
from lake.operations.removed_views import removed_views
from lake.operations.view_files import files_of_run, kept_tables, views_of_run

_ALIVE = timedelta(days=1)
"""A run that has written nothing for so long has ended."""


def collect(lake: Views, older_than: float | None, dry_run: bool, now: datetime) -> Collected:
    """The leftovers of a configuration; those that are due are removed, unless it is a `dry_run`.

    `older_than`: in days, instead of `drop_after_days`. What can't be removed does not stop the others.
    """
    days = older_than if older_than is not None else lake.config.drop_after_days or None
    limit = None if days is None else timedelta(days=days)
    runs = Folder(lake.spark, lake.config.runs_path)
    found = [_of_view(view, now, limit) for view in removed_views(lake)] + list(_Runs(lake, runs, now, limit).found())
    failed = dict[str, str]()
    for leftover in found if not dry_run else ():
        try:
            if leftover.due and leftover.kind == "view":
                drop(lake, leftover.name)
            for name in leftover.files if leftover.due else ():
                runs.delete(name)
        except LakeError as error:
            failed[leftover.name] = str(error)
    return Collected(tuple(found), failed, dry_run)


def _of_view(view: RemovedView, now: datetime, limit: timedelta | None) -> Leftover:
    changed, why = view.last_changed, "its drop has not ended" if view.half_dropped else "it is no longer in lakejoin.yml"
    due = view.half_dropped or _is_due(changed, now, limit)
    return Leftover("view", view.name, view.table, view.bytes, _age(changed, now), due, why)


def _is_due(changed: datetime | None, now: datetime, limit: timedelta | None) -> bool:
    return changed is not None and limit is not None and now - changed >= limit


def _age(changed: datetime | None, now: datetime) -> float | None:
    return None if changed is None else (now - changed).total_seconds()


@dataclass(frozen=True)
class _Runs:
    """The files of scheduled runs."""

    lake: Views
    folder: Folder
    now: datetime
    limit: timedelta | None

    def found(self) -> Iterator[Leftover]:
        """The runs of views that are all gone, and those that died, oldest first by name."""
        others = dict[str, bool]()
        names = self.folder.names()
        for pin in (name for name in names if name.endswith(PIN)):
            run = pin.removesuffix(PIN)
            files = tuple(files_of_run(names, run))
            changed = datetime.fromtimestamp(max(map(self.folder.written, files)), UTC)
            views = views_of_run(self.folder, pin)
            gone = bool(views) and views.isdisjoint(self.lake.config.views)
            if gone and any(_is_others(self.lake, view, others) for view in views):
                continue
            if gone or (self.now - changed >= _ALIVE and not self._has_ended(files, views)):
                why = "its views are no longer in lakejoin.yml" if gone else "it died before it had refreshed its views"
                due = _is_due(changed, self.now, self.limit)
                sizes = sum(self.folder.size(name) for name in files)
                yield Leftover("run", run, self.folder.path, sizes, _age(changed, self.now), due, why, files)

    def _has_ended(self, files: Sequence[str], views: set[str]) -> bool:
        """Whether the run and its parts have a result for each of its views, or an error."""
        refreshed = set[str]()
        for name in files:
            with suppress(ValueError, TypeError, LookupError):
                answer = json.loads(self.folder.read(name))["answer"]
                if "error" in answer:
                    return True
                refreshed |= set(answer["views"])
                if views <= refreshed:
                    return True
        return False


def _is_others(lake: Views, view: str, known: dict[str, bool]) -> bool:
    """Whether there is a table of such a view that this configuration may not remove: of another project, for example."""
    if view not in known:
        known[view] = not lake.config.is_view_name(view)
        try:
            kept_tables(lake.spark, lake.config, view)
        except TargetError:
            known[view] = True
    return known[view]
