"""A view's fingerprint: what its rows depend on besides its sources (trap 19). Another one is another view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from lake.config.models import Config
from lake.core.plan import FUNCTION
from lake.spark.session import settings_of
from lake.spark.session_digest import SESSION_DIGEST, definition_digest, digest

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
    view: str,
    config: Config,
    normal: str,
    columns: Sequence[str],
    primary_keys: Mapping[str, Sequence[str]],
    functions: Mapping[str, str],
) -> dict[str, str]:
    """What rows of the view depend on besides its sources: name → value, the long ones hashed.

    `normal`: the query in normal form; `columns`: name and type of each; `functions`: the version of each function that a user wrote.
    `text`, a digest of what is written of all that, is no part of what the rows depend on: while it stays the same, the rest need not
    be computed (lake/views/up_to_date.py).
    """
    settings = config.view(view)
    parts = {"query": digest(normal), "columns": digest("\n".join(columns)), "spark": _minor(spark.version)}
    parts["keys"] = "; ".join(f"{t}({', '.join(k)})" for t, k in sorted(primary_keys.items()) if k)
    if settings.key:
        parts["key"] = ", ".join(settings.key)
    parts |= {key: str(spark.conf.get(key)) for key in _SETTINGS}
    parts |= {f"{FUNCTION}{name}": version for name, version in functions.items()}
    written = settings.function is None and not functions  # what a function does is written elsewhere
    if written and (session := spark.conf.get(SESSION_DIGEST, None)) is not None:
        parts["text"] = definition_digest(view, config, list(primary_keys), session)
    legacy = {k: v for k, v in settings_of(spark).items() if k.startswith("spark.sql.legacy.")}
    return parts | legacy


def _minor(version: str) -> str:
    """Spark's major and minor version: a patch release does not change results, and must not cost a rebuild of every view."""
    return ".".join(version.split(".")[:2])
