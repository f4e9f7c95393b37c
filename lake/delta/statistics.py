"""Which columns Delta has to collect statistics of, so that files can be skipped by the columns that are looked up.

By default Delta collects them of the first 32 leaf columns: each field of a struct counts, and so does a column of a type that has none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pyspark.sql import types as T

from lake.core.sql import quoted

STATISTICS_COLUMNS = "delta.dataSkippingStatsColumns"
_DEFAULT = 32
HAVE_STATISTICS = (T.NumericType, T.DateType, T.TimestampType, T.TimestampNTZType, T.StringType)
"""The types of which Delta collects smallest and largest values; it refuses to be asked for those of others."""


def statistics_columns(schema: T.StructType, wanted: Collection[str]) -> str:
    """The value of Delta's property for statistics of the wanted columns; empty if the default has them.

    Wanted columns of types without statistics are left out. Others of the first columns follow, up to Delta's default number.
    """
    by_default, leaves = set[str](), 0
    for field in schema.fields:
        leaves += sum(1 for _ in _leaves(field.dataType))
        if leaves <= _DEFAULT:
            by_default.add(field.name)
    possible = [field.name for field in schema.fields if isinstance(field.dataType, HAVE_STATISTICS)]
    needed = [name for name in dict.fromkeys(wanted) if name in possible]
    if by_default.issuperset(needed):
        return ""
    others = [name for name in possible if name not in needed]
    return ",".join(map(quoted, [*needed, *others[: max(0, _DEFAULT - len(needed))]]))


def _leaves(data_type: T.DataType) -> Iterator[T.DataType]:
    """The columns that Delta counts: the fields of structs at any depth; an array or a map is one."""
    if isinstance(data_type, T.StructType):
        for field in data_type.fields:
            yield from _leaves(field.dataType)
    else:
        yield data_type
