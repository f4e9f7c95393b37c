"""TPC-DS as a lakehouse: its 99 queries over the tables of some folder, or over no tables at all, for what `explain` says of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from examples.tpcds.schema import COLUMNS, KEYS
from lake import Lakehouse, open_lake
from lake.config.loader import load
from lake.core.results import Explanation
from lake.errors import LakeError
from lake.spark.session import own_session
from lake.views.definition import define
from lake.views.explain import explain

_CONFIG = Path(__file__).with_name("lakejoin.yml")
ANSWERS = ("incremental", "partly recomputed", "recomputed", "refused")


def _settings() -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load(_CONFIG.read_text())
    return settings


def queries() -> dict[str, str]:
    """The text of each query."""
    return {view: (_CONFIG.parent / body["query_file"]).read_text() for view, body in _settings()["views"].items()}


def tables_of(names: Collection[str]) -> list[str]:
    """The tables that the named queries read (by their names in the text, so it may be more)."""
    words = {word for view, text in queries().items() if view in names for word in re.findall(r"\w+", text)}
    return [table for table in COLUMNS if table in words]


def opened(
    root: Path, names: Collection[str], spark_settings: Mapping[str, str] | None = None, spark: SparkSession | None = None
) -> Lakehouse:
    """The lakehouse with the named queries as views, over the tables in a folder that they read; in a session if one is given."""
    settings, wanted = _settings(), tables_of(names)
    tables = {table: body for table, body in settings["tables"].items() if table in wanted}
    views = {view: {"query": text} for view, text in queries().items() if view in names}
    return open_lake({**settings, "root": str(root), "tables": tables, "views": views, "spark": dict(spark_settings or {})}, spark=spark)


@dataclass(frozen=True)
class Explained:
    """What a refresh of a query will do, by its definition. `answer`: one of ANSWERS; `operators`: those that are recomputed, each with
    its reason; `reason`: why it is not (or not all of it) incremental, or refused."""

    query: str
    answer: str
    reason: str = ""
    operators: tuple[tuple[str, str], ...] = ()
    explanation: Explanation | None = None


class Explaining:
    """The definitions of the queries over empty placeholders: no table is read or made."""

    def __init__(self, spark: SparkSession) -> None:
        views = {view: {"query": text} for view, text in queries().items()}
        self.config = load({**_settings(), "root": "/nowhere", "views": views}, None)
        self.session = own_session(spark)
        self.schemas = {table: StructType.fromDDL(columns) for table, columns in COLUMNS.items()}

    def explained(self, query: str) -> Explained:
        """What a refresh of the query will do."""
        try:
            definition = define(self.session, query, self.config, self.schemas, KEYS)
        except LakeError as error:
            return Explained(query, "refused", str(error))
        found = explain(definition, {})
        operators = tuple(dict.fromkeys((step.operator, step.reason) for step in found.steps if step.reason))
        if definition.recomputed:
            return Explained(query, "recomputed", found.reason, operators, found)
        return Explained(query, "incremental" if found.incremental else "partly recomputed", found.reason, operators, found)
