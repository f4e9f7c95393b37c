"""Drops a development environment: the tables of its views, each after those that read it, and what Lakejoin wrote beside them; never
anything of production."""

from __future__ import annotations

from lake.core.environments import DroppedEnvironment
from lake.errors import LakeError
from lake.operations.drop import Views, drop
from lake.operations.environment_files import beside_tables
from lake.operations.removed_views import removed_views
from lake.operations.view_files import kept_tables


def drop_environment(lake: Views, dry_run: bool) -> DroppedEnvironment:
    """Drop what there is of the environment's views in its own target, also of views that are no longer in the configuration; then the
    results of its checks and of its scheduled runs.

    Raises LakeError, for the first view that can't be dropped; those before it are.
    """
    gone = [view.name for view in removed_views(lake)]
    own = [view for view in _readers_first(lake) if kept_tables(lake.spark, lake.config, view)]
    views = tuple(drop(lake, view, True, dry_run) for view in [*own, *gone])
    folders, runs = [table.folder for view in views for table in view.tables], {run for view in views for run in view.runs}
    files, stays = beside_tables(lake, folders, runs, not dry_run)
    return DroppedEnvironment(str(lake.config.environment), views, not dry_run, tuple(files), tuple(stays))


def _readers_first(lake: Views) -> list[str]:
    """The views of the configuration, each before those that it reads, as far as their queries can be read."""
    found, waiting = list[str](), list(lake.config.views)
    while waiting:
        read = {name for view in waiting for name in _reads(lake, view) if name != view}
        free = [view for view in waiting if view not in read] or waiting
        found += free
        waiting = [view for view in waiting if view not in free]
    return found


def _reads(lake: Views, view: str) -> list[str]:
    try:
        return lake.reads(view)
    except LakeError:  # it is dropped all the same
        return []
