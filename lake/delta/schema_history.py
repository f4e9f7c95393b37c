"""Whether the current definition of a table can read the files that were written before it was changed.

file_changes.py reads all files by the newest definition. That is wrong, or fails, if one of these has changed, though no file need have
been added or removed:

a column's place in the files   a column was dropped and added again, names were exchanged, column mapping was removed
a column's type                 by an overwrite of the schema, also if it was changed back (widening leaves old files readable)
the partitioning                by an overwrite with other partition columns
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    LongType,
    MapType,
    ShortType,
    StructType,
    TimestampNTZType,
)

from lake.delta.listing import physical_name
from lake.delta.pinned import Pinned, schema_of
from lake.spark.failures import CALL_ERRORS


def redefined(pinned: Pinned, since: int) -> bool:
    """Whether rows of version `since`, or of a later one, can't be read by the pinned version's definition; true if the definition of
    `since` is no longer in the log."""
    try:
        before = pinned.log.at(since)
        said = [commit.metadata for commit in pinned.commits(since) if commit.metadata is not None]
    except CALL_ERRORS:
        return True
    between = [(list(each.get("partitionColumns", ())), schema_of(each["schemaString"])) for each in said]
    return any(
        partitioned_by != pinned.partitioned_by or not _alike(schema, pinned.schema, pinned.widens_types)
        for partitioned_by, schema in [(before.partitioned_by, before.schema), *between]
    )


def _alike(before: DataType, now: DataType, widened: bool) -> bool:
    """Whether the columns of both have the same physical names and the same types, or (`widened`) wider ones."""
    match before, now:
        case StructType(), StructType():
            there = {field.name.lower(): field for field in now.fields}
            pairs = [(field, there[field.name.lower()]) for field in before.fields if field.name.lower() in there]
            return all(physical_name(a).lower() == physical_name(b).lower() and _alike(a.dataType, b.dataType, widened) for a, b in pairs)
        case ArrayType(), ArrayType():
            return _alike(before.elementType, now.elementType, widened)
        case MapType(), MapType():
            return _alike(before.keyType, now.keyType, widened) and _alike(before.valueType, now.valueType, widened)
        case _:
            return before == now or (widened and _holds(now, before))


def _holds(wide: DataType, narrow: DataType) -> bool:
    """Whether Delta reads values of the narrow type as the wide one (its type widening)."""
    match narrow, wide:
        case IntegralType(), IntegralType():
            return _WHOLE.index(type(narrow)) < _WHOLE.index(type(wide))
        case ((ByteType() | ShortType() | IntegerType() | FloatType()), DoubleType()):
            return True
        case IntegralType(), DecimalType():
            return wide.precision - wide.scale >= (20 if isinstance(narrow, LongType) else 10)
        case DecimalType(), DecimalType():
            return wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale
        case DateType(), TimestampNTZType():
            return True
        case _:
            return False


_WHOLE: list[type[DataType]] = [ByteType, ShortType, IntegerType, LongType]
