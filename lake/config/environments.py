"""Development environments: what one takes from the configuration that it is a development of, and what it must have of its own. No Spark.

    environments:
      prod: {root: "s3a://lake", target: main.views}
      dev:  {development_of: prod, target: main.dev}

Sources are production's; so is every other setting that the environment does not override, but for the places to which anything is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lake.config.models import Config, nearest
from lake.errors import ConfigError

DEVELOPMENT_OF = "development_of"
"""The setting of an environment that names the one whose sources it reads, and whose views it reads as long as they are the same."""
DEFAULT = "default"
"""What `development_of` calls the configuration without an environment."""
_WRITTEN = {"quality": ("results", "url"), "airflow": ("runs",)}
"""Places that are written to. An environment has its own beside its views, unless it names others."""


def base_of(overlays: Mapping[str, Any], env: str, where: str) -> str | None:
    """The environment that a development environment is based on, None for the configuration without one. Raises ConfigError."""
    own = overlays[env]
    base, here = own[DEVELOPMENT_OF], f"{where}: `environments.{env}"
    if not isinstance(base, str) or (base not in overlays and base != DEFAULT):
        there = nearest(str(base), [*overlays, DEFAULT])
        raise ConfigError(
            f"{here}.{DEVELOPMENT_OF}` names an environment, or {DEFAULT!r} for the settings without one, not {base!r}. {there}"
        )
    if base == env:
        raise ConfigError(
            f"{here}.{DEVELOPMENT_OF}` names {env!r} itself. Name the environment whose tables are production's, or {DEFAULT!r}."
        )
    if DEVELOPMENT_OF in (overlays.get(base) or {}):
        raise ConfigError(f"{here}.{DEVELOPMENT_OF}` names {base!r}, which is a development environment itself. Name what that one does.")
    if not {"target", "root"} & set(own):
        raise ConfigError(f"{here}` has no place of its own for its views. Give it a `target`, for example `target: {{path: {env}}}`.")
    if "tables" in own:
        raise ConfigError(
            f"{here}.tables`: a development environment reads production's tables. Declare new ones under `tables:` of the file."
        )
    return None if base == DEFAULT and base not in overlays else base


def inherited(data: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of production that a development environment begins with: all but the places that are written to."""
    found = {key: value for key, value in data.items() if key != "target"}
    for key, places in _WRITTEN.items():
        if isinstance(found.get(key), Mapping):
            found[key] = {name: value for name, value in found[key].items() if name not in places}
    return found


def refuse_places_of_production(config: Config, where: str) -> None:
    """Raise ConfigError where a development environment would write to a place of production, or above or below one."""
    production = config.production
    if production is None:
        return
    for view in production.views:
        if view in config.views and _place(config, view) == _place(production, view):
            raise ConfigError(
                f"{where}: `environments.{config.environment}` puts view {view!r} where production has it, {_place(config, view)}. "
                "Give the environment another `target`."
            )
    for what, own in _written(config):
        for whose, theirs in _kept_of(production):
            if f"{theirs}/".startswith(f"{own}/") or f"{own}/".startswith(f"{theirs}/"):
                raise ConfigError(
                    f"{where}: `environments.{config.environment}` has {own} for its {what}, and production has {theirs} for its {whose}. "
                    "Neither may be the other one, or in it. Give the environment another `target`."
                )


def _place(config: Config, view: str) -> str:
    path = config.view_path(view)
    return str(config.view_name(view)).lower() if path is None else _real(path)


def _written(config: Config) -> Iterator[tuple[str, str]]:
    """The folders that an environment writes to, by what they are for."""
    views = config.view_path("")
    if views is not None:
        yield "views", _real(views)
    yield "runs", _real(config.runs_path)
    yield "results of checks", _real(config.quality_path)


def _kept_of(production: Config) -> Iterator[tuple[str, str]]:
    """The folders of production that hold tables and other files, by what they are for."""
    yield from _written(production)
    for name in production.tables:
        path = production.path_of(name)
        if path is not None:
            yield f"table {name}", _real(path)


def _real(place: str) -> str:
    """A folder as one text: on this machine without links on the way."""
    local = re.fullmatch(r"(?:file:(?://)?)?(/.*)", place)
    return os.path.realpath(local[1]) if local else place.rstrip("/")
