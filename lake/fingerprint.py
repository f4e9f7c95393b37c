"""A view's fingerprint: what its rows depend on besides its sources (trap 19). Another one is another view."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from lake.config import Config, ViewConfig
from lake.queries import load_function

_SETTINGS = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.timestampType",
)


def fingerprint(
    spark: SparkSession,
    view: ViewConfig,
    config: Config,
    normal: str,
    columns: Sequence[str],
    primary_keys: Mapping[str, Sequence[str]],
) -> dict[str, str]:
    """What rows of the view depend on besides its sources: name → value, the long ones hashed.

    `normal`: the query in normal form; `columns`: name and type of each.
    """
    parts = {"query": digest(normal), "columns": digest("\n".join(columns)), "spark": spark.version}
    parts["keys"] = "; ".join(f"{t}({', '.join(k)})" for t, k in sorted(primary_keys.items()) if k)
    if view.function is not None:
        parts["function"] = digest(inspect.getsource(load_function(view, config)))
    parts |= {key: str(spark.conf.get(key)) for key in _SETTINGS}
    legacy = {k: v for k, v in spark.conf.getAll.items() if k.startswith("spark.sql.legacy.")}
    return parts | legacy


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
