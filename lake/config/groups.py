"""Groups views that are refreshed together, with their schedule or the sources that start them. It needs neither Spark nor Airflow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, partial

from croniter import croniter

from lake.config.models import Config
from lake.config.reads import Reads, reads
from lake.errors import ConfigError


@dataclass(frozen=True)
class Group:
    """Views that are refreshed together. `schedule`: a cron expression; `sources`: tables and views whose changes start it; `reads`: the
    views of the group that each of them reads, as far as that is known, without circles."""

    name: str
    views: tuple[str, ...]
    schedule: str | None
    sources: tuple[str, ...]
    reads: Mapping[str, tuple[str, ...]]


def groups(config: Config) -> tuple[list[Group], dict[str, ConfigError]]:
    """The valid groups of a configuration, and the errors of the others."""
    found, errors, read = list[Group](), dict[str, ConfigError](), cache(partial(reads, config=config))
    names = dict.fromkeys(view.group or name for name, view in config.views.items())
    for name in names:
        try:
            found.append(_group(config, name, tuple(v for v, view in config.views.items() if (view.group or v) == name), read))
        except ConfigError as error:
            errors[name] = error
    return found, errors


def _group(config: Config, name: str, views: tuple[str, ...], read: Callable[[str], Reads]) -> Group:
    schedules = {view: config.views[view].schedule or config.views[view].refresh for view in views}
    if len(set(schedules.values())) > 1:
        shown = ", ".join(f"{view}: {when or 'none'}" for view, when in schedules.items())
        raise ConfigError(f"The views of group {name!r} must have the same `schedule`, or all `refresh: changes` ({shown}).")
    refuse_no_cron(config.views[views[0]].schedule, f"Group {name!r}: `schedule`")
    changes = config.views[views[0]].refresh is not None
    found = dict.fromkeys(source for view in views for source in _sources(config, view, views, read))
    sources = list(found) if changes else []
    for table in sources:
        if table in config.tables and config.tables[table].path is None and config.tables[table].asset is None:
            raise ConfigError(
                f"Group {name!r}: the table {table!r} is named in a catalog, and its versions can't be seen without Spark. Set its "
                "`asset`, which an upstream DAG of Airflow updates, or use `schedule` instead of `refresh: changes`."
            )
    return Group(name, views, config.views[views[0]].schedule, tuple(sources), _within(views, read))


def _within(views: Collection[str], read: Callable[[str], Reads]) -> dict[str, tuple[str, ...]]:
    """Which views of a group each of them reads. Of a circle, which Spark refuses, the last step is left out."""
    above = {view: {view} for view in views}
    found = dict[str, tuple[str, ...]]()
    for view in views:
        names = [name for name in read(view).names if name in above and view not in above[name]] if read(view).sure else []
        found[view] = tuple(names)
        gained = above[view].union(*(above[name] for name in names))
        for other in views:
            if view in above[other]:
                above[other] = above[other] | gained
    return found


def refuse_no_cron(expression: str | None, where: str) -> None:
    """Raise ConfigError if this is not a cron expression."""
    if expression is not None and not croniter.is_valid(expression):
        raise ConfigError(f"{where}: {expression!r} is not a cron expression such as '*/5 * * * *' or '@daily'.")


def _sources(config: Config, view: str, views: Collection[str], read: Callable[[str], Reads]) -> list[str]:
    """The sources whose changes start a view, without the views of its group. Sources of views that it reads are left out: they start those
    views, whose changes then start this one."""
    found, below = read(view), set[str]()
    left = [name for name in found.names if found.sure and name in config.views and name not in views]
    while left:
        parent = read(left.pop())
        left += [name for name in parent.names if parent.sure and name in config.views and name not in below]
        below.update(parent.names)
    return [name for name in found.names if name not in below and name not in views]
