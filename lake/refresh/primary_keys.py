"""Declared primary keys against the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from lake.config.models import HIDDEN_PREFIX
from lake.core.sql import quoted
from lake.errors import KeyViolationError
from lake.refresh.row_edits import SAMPLES
from lake.relations.reading import Sources
from lake.views.definition import Definition

_ROWS = f"{HIDDEN_PREFIX}rows"


def refuse_broken(definition: Definition, sources: Sources, primary_keys: Mapping[str, Sequence[str]]) -> None:
    """Raise KeyViolationError naming table, key and sample keys where a primary key that the view depends on has duplicates."""
    if not definition.depends_on_keys:
        return
    for table, key in primary_keys.items():
        if not key:
            continue
        columns = [F.col(quoted(c)) for c in key]
        broken = sources.rows(table).groupBy(*columns).agg(F.count(F.lit(1)).alias(_ROWS)).where(F.col(_ROWS) > 1).drop(_ROWS)
        if definition.catalyst.collected(broken, 0) is None:  # in one job; `take` would look into one partition after the other
            raise KeyViolationError(
                f"The declared primary key ({', '.join(key)}) of {table}",
                [row.asDict() for row in broken.take(SAMPLES)],
                f"Correct the data, or change `tables.{table}.primary_key` in the configuration.",
            )


def of_nulls(definition: Definition, sources: Sources, primary_keys: Mapping[str, Sequence[str]]) -> bool:
    """Whether two rows of the view may have a key of nothing but NULLs: a full join takes declared primary keys for not NULL, and one has
    such a row. Files whose statistics count no NULLs are not read."""
    if definition.key is None or not definition.key.of_no_null:
        return False
    nulls = {table: reduce(Column.__and__, [F.col(quoted(c)).isNull() for c in key]) for table, key in primary_keys.items() if key}
    return any(not sources.rows(table).where(null).isEmpty() for table, null in nulls.items())
