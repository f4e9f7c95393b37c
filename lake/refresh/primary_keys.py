"""Declared primary keys against the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from lake.config.models import HIDDEN_PREFIX
from lake.core.sql import quoted
from lake.delta.pinned import Pinned
from lake.errors import KeyViolationError
from lake.refresh.row_edits import SAMPLES
from lake.relations.reading import Sources
from lake.views.definition import Definition

_ROWS = f"{HIDDEN_PREFIX}rows"
_MOST = 10_000
_unique: set[tuple[object, ...]] = set()
"""Keys that this process has looked at, and found unique: the table's path, its version with the digest of the commit, the columns."""


def refuse_broken(definition: Definition, sources: Sources, primary_keys: Mapping[str, Sequence[str]], pins: Mapping[str, Pinned]) -> None:
    """Raise KeyViolationError naming table, key and sample keys where a primary key that the view depends on has duplicates.

    `pins`: the versions that `sources` reads. A key of one of them is looked at once, for however many views.
    """
    if not definition.depends_on_keys:
        return
    for table, key in primary_keys.items():
        looked_at = _identity(pins[table], key) if key else None
        if not key or looked_at in _unique:
            continue
        columns = [F.col(quoted(c)) for c in key]
        broken = sources.rows(table).groupBy(*columns).agg(F.count(F.lit(1)).alias(_ROWS)).where(F.col(_ROWS) > 1).drop(_ROWS)
        if definition.catalyst.collected(broken, 0) is None:  # in one job; `take` would look into one partition after the other
            raise KeyViolationError(
                f"The declared primary key ({', '.join(key)}) of {table}",
                [row.asDict() for row in broken.take(SAMPLES)],
                f"Correct the data, or change `tables.{table}.primary_key` in the configuration.",
            )
        if looked_at is not None and len(_unique) < _MOST:
            _unique.add(looked_at)


def _identity(pinned: Pinned, key: Sequence[str]) -> tuple[object, ...] | None:
    """The key of one version of one table; None where the log does not tell versions of the same number apart."""
    mark = pinned.log.mark(pinned.version.number)
    return (pinned.log.path, pinned.version, mark, *key) if mark else None


def of_nulls(definition: Definition, sources: Sources, primary_keys: Mapping[str, Sequence[str]]) -> bool:
    """Whether two rows of the view may have a key of nothing but NULLs: a full join takes declared primary keys for not NULL, and one has
    such a row. Files whose statistics count no NULLs are not read."""
    if definition.key is None or not definition.key.of_no_null:
        return False
    nulls = {table: reduce(Column.__and__, [F.col(quoted(c)).isNull() for c in key]) for table, key in primary_keys.items() if key}
    return any(not sources.rows(table).where(null).isEmpty() for table, null in nulls.items())
