"""Whether two multisets of rows are the same, as verification sees it: an equality of its own, shared with nothing that publishes.

A refresh decides by `zset.canonical` which rows changed. If verification asked the same function, a fault in it would lose an update and
prove the view exact. So what is compared here is made by other means: the bits of floating-point numbers, bytes, and at every level how
many elements there are and which of them are NULL. tests/spark/test_equality.py holds both against one list of values that must be told
apart, and weakens one after the other.

Law: `marks` of two values of a type are equal exactly where the values are the same bit by bit. Read in order and without NULLs, they
are a code in which no value is the beginning of another one, so that a hash that passes over NULLs tells all values apart, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lake.spark.jvm.invoked import double_bits, float_bits, variant_bytes

_MARK = "_mark_"


def same_rows(a: DataFrame, b: DataFrame) -> int | None:
    """How many rows two frames have, if these are the same as multisets; None where they are not.

    Compared are the number of rows and 128 bits of sums of their hashes, one pass over each and no shuffle: different rows have the same by
    chance with a probability of 2^-128.
    """
    if a.schema.names != b.schema.names:
        return None
    found, other = (frame.agg(*_sums(frame)).collect()[0] for frame in (a, b))
    return int(found[0]) if tuple(found) == tuple(other) else None


def tallied(**frames: DataFrame) -> DataFrame:
    """Several multisets of rows of the same columns, each distinct row once, with a column a frame that says how often it has the row."""
    parts = [frame.select("*", *[F.lit(int(own == name)).cast("long").alias(own) for own in frames]) for name, frame in frames.items()]
    rows = reduce(lambda a, b: a.unionByName(b), parts)
    columns = [c for c in rows.columns if c not in frames]
    keys = [marked(rows, c).alias(f"{_MARK}{i}") for i, c in enumerate(columns)]
    counted = rows.groupBy(*keys).agg(*[F.first(c).alias(c) for c in columns], *[F.sum(n).alias(n) for n in frames])
    return counted.select(*columns, *frames)


def marked(frame: DataFrame, column: str) -> Column:
    """What to group or to join a column's values on; never NULL."""
    return _together(F.col(column), frame.schema[column].dataType)


def hashed(frame: DataFrame, columns: Sequence[str], seed: int = 0) -> Column:
    """64 bits of the values of some columns."""
    return F.xxhash64(F.lit(seed), *[part for c in columns for part in marks(F.col(c), frame.schema[c].dataType)])


def marks(value: Column, data_type: T.DataType) -> list[Column]:
    """What a value is told apart by: whether it is NULL, and what it is made of."""
    match data_type:
        case T.FloatType():
            parts = [float_bits(value)]
        case T.DoubleType():
            parts = [double_bits(value)]
        case T.StringType():
            parts = [value.cast(T.StringType()).cast("binary")]
        case T.CalendarIntervalType():  # no table holds it; date_part would count 24 hours as a day
            parts = [value.cast("string").cast("binary")]
        case T.VariantType():
            # within an object Spark writes it anew, with a dictionary of its own: how it was written before can't be seen any more
            parts = list(variant_bytes(F.to_variant_object(F.struct(value.alias("v")))))
        case T.ArrayType():
            parts = [F.size(value), F.transform(value, _each(data_type.elementType))]
        case T.MapType():
            keys, values = F.map_keys(value), F.map_values(value)
            parts = [F.size(value), F.transform(keys, _each(data_type.keyType)), F.transform(values, _each(data_type.valueType))]
        case T.StructType():
            parts = [_together(value.getField(f.name), f.dataType) for f in data_type.fields]
        case _:
            parts = [value]
    return [value.isNull(), *parts]


def _together(value: Column, data_type: T.DataType) -> Column:
    return F.struct(*[part.alias(f"m{i}") for i, part in enumerate(marks(value, data_type))])


def _each(data_type: T.DataType) -> Callable[[Column], Column]:
    return lambda element: _together(element, data_type)


def _sums(frame: DataFrame) -> list[Column]:
    halves = [half for seed in (1, 2) for half in _halves(hashed(frame, frame.columns, seed))]
    return [F.count(F.lit(1)), *[F.sum(half) for half in halves]]


def _halves(hashed: Column) -> tuple[Column, Column]:
    """32 bits each, so that their sums can't overflow."""
    return hashed.bitwiseAND(F.lit(0xFFFFFFFF)), F.shiftrightunsigned(hashed, 32)
