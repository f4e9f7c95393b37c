"""Which views are refreshed together, when, and upon which changes. Configuration only: no Spark, no Airflow."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, partial

from croniter import croniter

from lake.airflow.reads import Reads, reads
from lake.config.models import Config
from lake.errors import ConfigError


@dataclass(frozen=True)
class Group:
    """Views that one Spark application refreshes. `schedule`: a cron expression; `upon`: tables and views whose changes start it."""

    name: str
    views: tuple[str, ...]
    schedule: str | None
    upon: tuple[str, ...]


def groups(config: Config) -> tuple[list[Group], dict[str, ConfigError]]:
    """The groups of a configuration, and what is wrong with each of the others."""
    found, wrong, read = list[Group](), dict[str, ConfigError](), cache(partial(reads, config=config))
    names = dict.fromkeys(view.group or name for name, view in config.views.items())
    for name in names:
        try:
            found.append(_group(config, name, tuple(v for v, view in config.views.items() if (view.group or v) == name), read))
        except ConfigError as error:
            wrong[name] = error
    return found, wrong


def _group(config: Config, name: str, views: tuple[str, ...], read: Callable[[str], Reads]) -> Group:
    asked = {view: config.views[view].schedule or config.views[view].refresh for view in views}
    if len(set(asked.values())) > 1:
        shown = ", ".join(f"{view}: {when or 'none'}" for view, when in asked.items())
        raise ConfigError(f"The views of group {name!r} must have one schedule, or one `refresh: changes` ({shown}).")
    refuse_no_cron(config.views[views[0]].schedule, f"Group {name!r}: `schedule`")
    changes = config.views[views[0]].refresh is not None
    found = dict.fromkeys(source for view in views for source in _upon(config, view, views, read))
    upon = list(found) if changes else []
    for table in upon:
        if table in config.tables and config.tables[table].path is None and config.tables[table].asset is None:
            raise ConfigError(
                f"Group {name!r}: the table {table!r} is named in a catalog, where its versions can't be seen without Spark. Give its "
                "`asset` (which an upstream DAG updates), or a `schedule` instead of `refresh: changes`."
            )
    return Group(name, views, config.views[views[0]].schedule, tuple(upon))


def refuse_no_cron(expression: str | None, where: str) -> None:
    """Raise ConfigError where this is no cron expression."""
    if expression is not None and not croniter.is_valid(expression):
        raise ConfigError(f"{where}: {expression!r} is no cron expression such as '*/5 * * * *' or '@daily'.")


def _upon(config: Config, view: str, views: Collection[str], read: Callable[[str], Reads]) -> list[str]:
    """The sources of a view whose changes start it, beside the views that are refreshed with it: not what views that it reads read in their
    turn, as it starts them, and their changes start this one."""
    found, below = read(view), set[str]()
    left = [name for name in found.names if found.sure and name in config.views and name not in views]
    while left:
        parent = read(left.pop())
        left += [name for name in parent.names if parent.sure and name in config.views and name not in below]
        below.update(parent.names)
    return [name for name in found.names if name not in below and name not in views]
