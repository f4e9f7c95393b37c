"""Whether a table's files still hold, as it is defined now, the rows that they held when it was defined otherwise.

Changes are told from the files that came and went (deltafiles.py), all read by the newest definition. That is wrong, or can't be done, once
one of these has changed since, though no file need have come or gone:

a column's place in the files   dropped and added again, names exchanged, column mapping given up
a column's type                 by an overwrite of the schema (widening leaves old files readable), also if it came back since
what the table is split by      by an overwrite with another partitioning
"""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
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


def redefined(pinned: Pinned, since: int) -> bool:
    """Whether rows of version `since`, or of one between, can't be read by the pinned version's definition; so too where that of `since` is
    no longer known."""
    try:
        before = pinned.log.at(since)
        said = [commit.metadata for commit in pinned.commits(since) if commit.metadata is not None]
    except (PySparkException, Py4JJavaError):
        return True
    between = [(list(each.get("partitionColumns", ())), schema_of(each["schemaString"])) for each in said]
    return any(
        partitioned_by != pinned.partitioned_by or not _alike(schema, pinned.schema, pinned.widens_types)
        for partitioned_by, schema in [(before.partitioned_by, before.schema), *between]
    )


def _alike(before: DataType, now: DataType, widened: bool) -> bool:
    """Whether the columns of both are in the same places of the files, with the same types, or (`widened`) with types that hold them."""
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
