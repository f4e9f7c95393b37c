"""Which views are refreshed together, when, and upon which changes. Configuration only: no Spark, no Airflow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lake.config import Config
from lake.errors import ConfigError
from lake.texts import mentioned


@dataclass(frozen=True)
class Group:
    """Views that one Spark application refreshes. `schedule`: a cron expression; `upon`: tables and views whose changes start it."""

    name: str
    views: tuple[str, ...]
    schedule: str | None
    upon: tuple[str, ...]


def groups(config: Config) -> tuple[list[Group], dict[str, ConfigError]]:
    """The groups of a configuration, and what is wrong with each of the others."""
    found, wrong = list[Group](), dict[str, ConfigError]()
    names = dict.fromkeys(view.group or name for name, view in config.views.items())
    for name in names:
        try:
            found.append(_group(config, name, tuple(v for v, view in config.views.items() if (view.group or v) == name)))
        except ConfigError as error:
            wrong[name] = error
    return found, wrong


def _group(config: Config, name: str, views: tuple[str, ...]) -> Group:
    asked = {view: config.views[view].schedule or config.views[view].refresh for view in views}
    if len(set(asked.values())) > 1:
        shown = ", ".join(f"{view}: {when or 'none'}" for view, when in asked.items())
        raise ConfigError(f"The views of group {name!r} must have one schedule, or one `refresh: changes` ({shown}).")
    reads = dict.fromkeys(source for view in views for source in mentioned(view, config) if source not in views)
    changes = config.views[views[0]].refresh is not None
    upon = [source for source in reads if source not in _below(config, reads)] if changes else []
    for table in upon:
        if table in config.tables and config.tables[table].path is None and config.tables[table].asset is None:
            raise ConfigError(
                f"Group {name!r}: the table {table!r} is named in a catalog, where its versions can't be seen without Spark. Give its "
                "`asset` (which an upstream DAG updates), or a `schedule` instead of `refresh: changes`."
            )
    return Group(name, views, config.views[views[0]].schedule, tuple(upon))


def _below(config: Config, sources: Iterable[str]) -> set[str]:
    """What the views among the sources read in their turn: it starts them, and their changes start what reads them."""
    found, left = set[str](), [source for source in sources if source in config.views]
    while left:
        for source in mentioned(left.pop(), config):
            if source not in found:
                found.add(source)
                left += [source] if source in config.views else []
    return found
