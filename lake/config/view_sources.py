"""Reads the texts of a view's definition: its query and its expectations. No Spark."""

from __future__ import annotations

import json

from lake.config.models import Config, ExpectationConfig, ViewConfig
from lake.errors import ConfigError


def query_text(view: ViewConfig, config: Config) -> str:
    """The view's SQL, from the configuration or its file."""
    if view.query is not None:
        return view.query
    file = config.directory / str(view.query_file)
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"The query file {file} can't be read ({error.strerror}).") from error


def one_query(text: str) -> str:
    return text.strip().rstrip(";")


def expectations_of(config: Config, view: str) -> tuple[ExpectationConfig, ...]:
    """The expectations of a view: its `expectations`, and those of its suite file, with `on_failure` in their `meta`.

    Raises ConfigError if the file is not a suite of Great Expectations.
    """
    settings = config.view(view)
    if settings.expectations_file is None:
        return settings.expectations
    file = config.directory / settings.expectations_file
    try:
        suite = json.loads(file.read_text(encoding="utf-8"))
        found = [
            ExpectationConfig(type=e["type"], kwargs=e.get("kwargs", {}), on_failure=(e.get("meta") or {}).get("on_failure", "warn"))
            for e in suite["expectations"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"`views.{view}.expectations_file`: {file} is no suite of Great Expectations ({error}). It is JSON with `expectations`, each "
            "with `type` and `kwargs`."
        ) from error
    return (*settings.expectations, *found)
