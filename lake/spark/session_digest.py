"""Digests of the text of a view's definition and of its session's settings: while both are equal, the definition has not changed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from lake import __version__
from lake.config.models import Config
from lake.config.view_sources import one_query, query_text
from lake.spark.preflight import spark_home

SESSION_DIGEST = "spark.lakejoin.written"
"""The setting with the digest of a session: of one that was made by Lakejoin alone, or by the spark-submit of an Airflow task."""
_ENVIRONMENT = ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME", "TZ")


def definition_digest(view: str, config: Config, names: Sequence[str], session: str | None = None) -> str:
    """A digest of the text of a view's definition. `names`: the tables and views that it reads; `session`: the digest of its session.

    Raises ConfigError if the query can't be read.
    """
    settings = config.view(view)
    keys = {name: config.tables[name].primary_key for name in names if name in config.tables}
    written = [one_query(query_text(settings, config)), settings.refresh_mode, settings.key, keys, session or settings_digest(config.spark)]
    return digest(json.dumps(written, sort_keys=True))


def settings_digest(settings: Mapping[str, str]) -> str:
    """A digest of everything that determines the results of a session that Lakejoin makes with these settings."""
    environment = {name: os.environ.get(name) for name in _ENVIRONMENT} | {"file": defaults_text()}
    return digest(json.dumps([dict(settings), environment, version("pyspark"), __version__], sort_keys=True))


def defaults_text() -> str:
    """The text of spark-defaults.conf; empty if there is none."""
    file = Path(os.environ.get("SPARK_CONF_DIR") or spark_home() / "conf", "spark-defaults.conf")
    return file.read_text() if file.is_file() else ""


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
