"""The warehouse as a lakehouse: the views of lakejoin.yml, over the tables of some folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import SparkSession

from lake import Lakehouse, open_lake

_CONFIG = Path(__file__).with_name("lakejoin.yml")


def _settings() -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load(_CONFIG.read_text())
    return settings


def queries() -> dict[str, str]:
    """The text of each view's query."""
    return {view: (_CONFIG.parent / body["query_file"]).read_text() for view, body in _settings()["views"].items()}


def opened(root: Path, spark_settings: Mapping[str, str] | None = None, spark: SparkSession | None = None) -> Lakehouse:
    """The lakehouse over the tables in a folder, in a session if one is given."""
    settings, texts = _settings(), queries()
    views = {
        view: {"query": texts[view], **{name: value for name, value in body.items() if name != "query_file"}}
        for view, body in settings["views"].items()
    }
    return open_lake({**settings, "root": str(root), "views": views, "spark": dict(spark_settings or {})}, spark=spark)
