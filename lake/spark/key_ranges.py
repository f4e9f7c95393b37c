"""Ranges of literals that bound a set of keys, so that Delta skips files and Parquet skips row groups.

    {3, 4, 9, 1000, NULL}  →  k BETWEEN 3 AND 9 OR k BETWEEN 1000 AND 1000 OR k IS NULL

A range contains no NULL; whether NULL is among the keys is stored beside it (trap 12). Floats (NaN, -0.0) and collated strings have no
ranges: the order of a file's statistics is not that of their comparison.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lake.spark.local_rows import values_of

MOST_RANGES = 8
"""More ranges would skip more files, but each is evaluated on the statistics of every file."""


@dataclass(frozen=True)
class Ranges:
    """Closed intervals, encoded by `_encoding`, that contain every non-NULL key. `null`: NULL is also a key.

    `values`: the keys, sorted, if they are few enough to be on the driver.
    """

    data_type: T.DataType
    intervals: tuple[tuple[Any, Any], ...]
    null: bool
    values: tuple[Any, ...] | None = None

    def may_be_in(self, statistics: Statistics) -> bool:
        """Whether a file with these statistics of the column may contain one of the keys."""
        if self.null and statistics.nulls:
            return True
        if statistics.low is None or statistics.high is None:
            return statistics.low is not None or statistics.high is not None or not statistics.only_nulls
        if self.values is None:
            return any(low <= statistics.high and statistics.low <= high for low, high in self.intervals)
        first = bisect_left(self.values, statistics.low)
        return first < len(self.values) and self.values[first] <= statistics.high

    def widened(self, before: int, after: int) -> Ranges:
        """The ranges of all values up to so far below one of these, or above, and NULL. Of whole numbers, dates and timestamps."""
        most = _LIMITS[type(self.data_type)]
        found: list[tuple[int, int]] = []
        for low, high in self.intervals:
            low, high = max(low - before, -most), min(high + after, most - 1)
            if found and low <= found[-1][1]:
                low, high = found[-1][0], max(high, found.pop()[1])
            found.append((low, high))
        return Ranges(self.data_type, tuple(found), null=True)

    def condition(self, column: str) -> str:
        """The condition, as SQL, on a (quoted) column of the same type, or of one that widens to it.

        The number of intervals is a power of two, so that few shapes of conditions occur and Spark reuses their generated code.
        """
        if not self.intervals:
            return f"{column} IS NULL" if self.null else "false"
        literal = _encoding(self.data_type)[1]  # type: ignore[index]
        padded = [*self.intervals, *[self.intervals[-1]] * (_shape(len(self.intervals)) - len(self.intervals))]
        parts = [f"{column} BETWEEN {literal(low)} AND {literal(high)}" for low, high in padded]
        return f"({' OR '.join([*parts, f'{column} IS NULL'] if self.null else parts)})"


@dataclass(frozen=True)
class Statistics:
    """A file's statistics of one column: bounds of its non-NULL values, encoded by `_encoding` (None: unknown); whether it may contain
    NULLs (`nulls`), and whether it contains nothing else (`only_nulls`)."""

    low: Any = None
    high: Any = None
    nulls: bool = True
    only_nulls: bool = False


def statistics(stats: dict[str, Any], column: str, data_type: T.DataType) -> Statistics:
    """A column's statistics from those of a Delta file (parsed with floats as Decimal); a string's bounds may be cut, outwards."""
    found, rows = stats.get("nullCount", {}).get(column), stats.get("numRecords")
    nulls, only = found is None or found > 0, found is not None and found == rows
    bounds = [stats.get(end, {}).get(column) for end in ("minValues", "maxValues")]
    decode = _DECODERS.get(type(data_type))
    if decode is not None and None not in bounds:
        with suppress(ValueError, TypeError):  # a date that Python can't hold: not known
            return Statistics(decode(bounds[0]), decode(bounds[1]), nulls, only)
    return Statistics(None, None, nulls, only)


_EPOCH = date(1970, 1, 1)
_DECODERS: dict[type[T.DataType], Callable[[Any], Any]] = {
    **dict.fromkeys((T.ByteType, T.ShortType, T.IntegerType, T.LongType), int),
    T.DecimalType: lambda value: Decimal(str(value)),
    T.StringType: str,
    T.DateType: lambda value: (date.fromisoformat(value) - _EPOCH).days,
}


_LIMITS: dict[type[T.DataType], int] = {
    T.ByteType: 2**7,
    T.ShortType: 2**15,
    T.IntegerType: 2**31,
    T.LongType: 2**63,
    T.DateType: 2**31,
    T.TimestampType: 2**63,
}
"""One more than the largest value of the types whose ranges can be widened."""


def null_safe(ranges: Ranges | None) -> bool:
    """Whether keys of these ranges are compared by null-safe equality: plain equality is cheaper, and enough where no key is NULL."""
    return ranges is None or ranges.null


def _shape(number: int) -> int:
    return 1 << (number - 1).bit_length()


def ranges_of(frame: DataFrame, local: bool, most: int = MOST_RANGES) -> tuple[Ranges | None, ...]:
    """The ranges of each column of a frame of keys; None for a type without ranges.

    `local`: the rows are few and on the driver, so the ranges are exact; otherwise there is one range from the smallest to the largest key,
    by one job.
    """
    fields = frame.schema.fields
    encodings = [_encoding(f.dataType) for f in fields]
    wanted = [i for i, encoding in enumerate(encodings) if encoding is not None]
    found: list[Ranges | None] = [None] * len(fields)
    if not wanted:
        return tuple(found)
    if not local or len(wanted) < len(fields):
        frame = frame.toDF(*[f"k{i}" for i in range(len(fields))]).select(*[f"k{i}" for i in wanted])
    if not local:
        encoded = [encodings[i][0](F.col(f"k{i}")) for i in wanted]  # type: ignore[index]
        row = frame.agg(*[f(value).alias(f"{f.__name__}{n}") for n, value in enumerate(encoded) for f in (F.min, F.max, _nulls)]).head()
        assert row is not None
        for n, i in enumerate(wanted):
            low, high, null = row[3 * n : 3 * n + 3]
            if lossless([low, high]):
                found[i] = Ranges(fields[i].dataType, ((low, high),) if low is not None else (), bool(null))
        return tuple(found)
    rows = values_of(frame)
    for n, i in enumerate(wanted):
        values = {row[n] for row in rows}
        present = sorted(v for v in values if v is not None)
        if lossless(present):
            found[i] = Ranges(fields[i].dataType, tuple(_clustered(present, most)), None in values, tuple(present))
    return tuple(found)


def decoded(values: Sequence[Any], data_type: pa.DataType) -> pa.Array:
    """Values in Spark's internal form (see `values_of`) as an Arrow array."""
    if pa.types.is_date(data_type) or pa.types.is_timestamp(data_type):
        return pa.array(values, pa.int32() if pa.types.is_date(data_type) else pa.int64()).cast(data_type)
    return pa.array(values, data_type)


def lossless(values: Sequence[Any]) -> bool:
    """Whether no value was altered on its way to Python: bytes of a string that are not UTF-8 become U+FFFD."""
    return not any(isinstance(v, str) and "\ufffd" in v for v in values)


def _nulls(column: Column) -> Column:
    return F.count_if(column.isNull())


def _clustered(values: Sequence[Any], most: int) -> list[tuple[Any, Any]]:
    """At most `most` closed intervals over sorted distinct values, cut at the widest gaps (strings: into equal numbers of keys).

    If these cover more than half of the distance from the smallest to the largest, one interval is returned: it is cheaper.
    """
    if len(values) <= most:
        return [(v, v) for v in values]
    positions = list(range(1, len(values)))
    numeric = not isinstance(values[0], str)
    if numeric:
        widest = sorted(positions, key=lambda p: values[p] - values[p - 1], reverse=True)
        cuts = sorted(widest[: most - 1])
    else:
        cuts = sorted({len(values) * n // most for n in range(1, most)})
    starts, ends = [0, *cuts], [*cuts, len(values)]
    found = [(values[a], values[b - 1]) for a, b in zip(starts, ends, strict=True)]
    if numeric and 2 * sum(high - low for low, high in found) > values[-1] - values[0]:
        return [(values[0], values[-1])]
    return found


def _encoding(data_type: T.DataType) -> tuple[Callable[[Column], Column], Callable[[Any], str]] | None:
    """The encoding of a column's values for Python, and the SQL literal of an encoded value; None for types whose ranges would be wrong."""
    match data_type:
        case T.ByteType() | T.ShortType() | T.IntegerType() | T.LongType() | T.DecimalType():
            return (lambda c: c), (lambda v: f"CAST('{v}' AS {data_type.simpleString()})")
        case T.StringType() if data_type.collation == "UTF8_BINARY":
            return (lambda c: c), (lambda v: f"CAST(X'{v.encode().hex()}' AS STRING)")
        case T.DateType():
            return F.unix_date, lambda v: f"DATE_FROM_UNIX_DATE({v})"
        case T.TimestampType():
            return F.unix_micros, lambda v: f"TIMESTAMP_MICROS(CAST('{v}' AS BIGINT))"
        case _:
            return None
