"""Weighted rows (Z-sets): a DataFrame with a signed integer column `w` beside its other columns.

+1 is a row inserted, -1 a row deleted, an update is one of each. To consolidate is to add up the weights of equal rows and
drop the zeros. Rows are equal bit by bit here, not by Spark's equality: a case-insensitive collation, -0.0 and 0.0, the order
of a map's entries and a VARIANT would each lose an update otherwise (design.md, trap 11).

`canonical` is what refreshes compare rows by. Verification has an equality of its own (sameness.py).

Law: for frames a, b and a number n, consolidate(a + b) holds each distinct row once, with the sum of its weights, never zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lake.core.sql import quoted
from lake.spark import local_rows, steps
from lake.spark.jvm.invoked import variant_bytes

WEIGHT = "w"

_DEFAULT_COLLATION = "UTF8_BINARY"
_NO_TEXT = r"[^\w .,:/()-]"
"""Characters that a text in SQL may end with, or that Spark may replace by the value of a setting."""
_SAMPLE = 20_000
"""Rows that `repeats` looks at."""


def is_weighted(frame: DataFrame) -> bool:
    """Whether the frame carries weights; without them each row counts once."""
    return WEIGHT in frame.columns


def value_columns(frame: DataFrame) -> list[str]:
    """The frame's columns but the weight."""
    return [c for c in frame.columns if c != WEIGHT]


def weighted(frame: DataFrame, weight: int = 1) -> DataFrame:
    """The rows with a weight column: the rows' own weights times `weight` (+1 or -1)."""
    return steps.added([frame], "+" if weight == 1 else "-")


def negate(frame: DataFrame) -> DataFrame:
    """The same rows with the opposite weights."""
    return weighted(frame, -1)


def add(frames: Iterable[DataFrame]) -> DataFrame:
    """The sum of weighted frames of the same columns (any order), not consolidated."""
    some = list(frames)
    return steps.added(some, "+" * len(some))


def subtract(a: DataFrame, b: DataFrame) -> DataFrame:
    """a - b as weighted rows, not consolidated."""
    return steps.added([a, b], "+-")


def consolidate(frame: DataFrame) -> DataFrame:
    """Equal rows added up, zeros dropped: the frame's columns, each distinct row once."""
    return _total([frame], "+")


def difference(a: DataFrame, b: DataFrame) -> DataFrame:
    """a - b as weighted rows, consolidated."""
    return _total([a, b], "+-")


def _total(frames: Sequence[DataFrame], signs: str) -> DataFrame:
    """Frames of the same columns (in any order) added up by their signs, consolidated: on the driver where all their rows are there."""
    made = local_rows.added(frames, signs)
    return made if made is not None else _consolidated(frames[0] if signs == "+" else steps.added(frames, signs))


def _consolidated(frame: DataFrame) -> DataFrame:
    """The same of any frame, by Spark."""
    total = f"sum({WEIGHT if is_weighted(frame) else 1}) AS {WEIGHT}"
    fields = [f for f in frame.schema.fields if f.name != WEIGHT]
    others = [f for f in fields if not is_bitwise(f.dataType)]
    if not others:
        return steps.over(frame, steps.group([quoted(f.name) for f in fields], [total]), steps.where(f"{WEIGHT} <> 0"))
    # grouped by encodings of the others, which are carried beside
    encoded = frame.withColumns({f"_{f.name}": canonical(F.col(quoted(f.name)), f.dataType) for f in others})
    keys = [quoted(f"_{f.name}" if f in others else f.name) for f in fields]
    carried = [f"first({quoted(f.name)}) AS {quoted(f.name)}" for f in others]
    columns = steps.select([*[quoted(f.name) for f in fields], WEIGHT])
    return steps.over(encoded, steps.group(keys, [total, *carried]), columns, steps.where(f"{WEIGHT} <> 0"))


def hashed(values: Iterable[tuple[Column, T.DataType]]) -> Column:
    """64 bits of a row's values: the same for equal rows, seldom for others."""
    return F.xxhash64(*[canonical(value, data_type) for value, data_type in values])


def repeats(frame: DataFrame) -> bool:
    """Whether consolidated the rows would be a fifth fewer at the least, by the first of them: an update's two sides lie together."""
    values = [(F.col(f.name), f.dataType) for f in frame.schema.fields if f.name != WEIGHT]
    sample = frame.limit(_SAMPLE).select(hashed(values).alias("h"), WEIGHT)
    groups = sample.groupBy("h").agg(F.count(F.lit(1)).alias("n"), F.sum(WEIGHT).alias(WEIGHT))
    row = groups.agg(F.sum("n"), F.count_if(F.col(WEIGHT) != 0)).head()
    assert row is not None
    return bool(row[1] < 0.8 * (row[0] or 0))


def totals(frame: DataFrame, weight: Column) -> tuple[int, int]:
    """How many rows are inserted and how many deleted, by the rows' weights: one job."""
    row = frame.agg(*[F.sum(F.greatest(times, F.lit(0))) for times in (weight, -weight)]).head() or (0, 0)
    return int(row[0] or 0), int(row[1] or 0)


def to_rows(frame: DataFrame, what: str) -> DataFrame:
    """Consolidated weighted rows as plain rows, each as often as its weight says.

    Raises (inside Spark, as a failed job) where a weight is negative: the old side of a refresh held less than was deleted
    from it, which no history can cause; never filtered out (trap 9).
    """
    made = local_rows.repeated(frame, WEIGHT, 1, every=True)
    if made is not None:
        return made
    negative = f"LAKEJOIN_INTERNAL: negative weight among the rows of {re.sub(_NO_TEXT, '_', what)}"
    copies = f"IF({WEIGHT} > 0, sequence(1L, {WEIGHT}), CAST(raise_error('{negative}') AS ARRAY<BIGINT>))"
    columns = [quoted(name) for name in value_columns(frame)]
    return steps.over(frame, steps.select([*columns, f"explode({copies}) AS _copy"]), steps.select(columns))


def side(frame: DataFrame, sign: int, weight: str = WEIGHT) -> DataFrame:
    """The rows that are inserted (1) or deleted (-1), as often as the weights in a column say, without this column."""
    made = local_rows.repeated(frame, weight, sign, every=False)
    if made is not None:
        return made
    columns = [quoted(name) for name in frame.columns if name != weight]
    number = weight if sign > 0 else f"-{weight}"
    copies = f"explode(sequence(1L, {number})) AS {weight}_copy"
    return steps.over(frame, steps.where(f"{number} > 0"), steps.select([*columns, copies]), steps.select(columns))


def is_bitwise(data_type: T.DataType) -> bool:
    """Whether Spark's own equality of this type is equality bit by bit, so that it can be grouped on as it is."""
    match data_type:
        case T.FloatType() | T.DoubleType() | T.MapType() | T.VariantType() | T.CalendarIntervalType():
            return False
        case T.StringType():
            return data_type.collation == _DEFAULT_COLLATION
        case T.ArrayType():
            return is_bitwise(data_type.elementType)
        case T.StructType():
            return all(is_bitwise(f.dataType) for f in data_type.fields)
        case _:
            return True


def canonical(value: Column, data_type: T.DataType) -> Column:
    """An encoding of the value that Spark can group on, and that is equal exactly where the values are the same bit by bit."""
    match data_type:
        case _ if is_bitwise(data_type):
            return value
        case T.FloatType() | T.DoubleType():
            return value.cast("string")  # Java's shortest decimal: one text a value, "-0.0" apart from "0.0"
        case T.CalendarIntervalType():
            return value.cast("string")  # Spark has no order of them; the text names months, days and microseconds
        case T.StringType():
            return F.encode(value.cast(T.StringType()), "utf-8")
        case T.VariantType():
            # Spark writes a part of a VARIANT anew with the names that it uses, in one order: the whole of it is such a part
            return F.struct(*variant_bytes(F.variant_get(value, "$", "variant")))
        case T.ArrayType():
            return F.transform(value, _encoder(data_type.elementType))
        case T.MapType():
            return F.transform(F.map_entries(value), _encoder(_entry(data_type)))
        case T.StructType():
            inner = F.struct(*[canonical(value[f.name], f.dataType).alias(f"f{i}") for i, f in enumerate(data_type.fields)])
            return F.when(value.isNotNull(), inner)
        case _:
            return value


def _encoder(data_type: T.DataType) -> Callable[[Column], Column]:
    return lambda element: canonical(element, data_type)


def _entry(data_type: T.MapType) -> T.StructType:
    return T.StructType([T.StructField("key", data_type.keyType), T.StructField("value", data_type.valueType)])
