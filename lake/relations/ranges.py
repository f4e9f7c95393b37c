"""Ranges of literals that bound a set of keys, so that Delta skips files and Parquet skips row groups.

    {3, 4, 9, 1000, NULL}  →  k BETWEEN 3 AND 9 OR k BETWEEN 1000 AND 1000 OR k IS NULL

A range never speaks of NULL: where a key is NULL, that is said beside it (trap 12). None on floats (NaN, -0.0) and on collated
strings, whose order in a file's statistics is not the order of the comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

MOST_RANGES = 8
"""More ranges would prune better, but each is evaluated against every file's statistics."""


@dataclass(frozen=True)
class Ranges:
    """Closed intervals, in the encoding of `_encoding`, that hold every non-NULL key; `null`: NULL is a key as well."""

    data_type: T.DataType
    intervals: tuple[tuple[Any, Any], ...]
    null: bool

    def condition(self, column: Column) -> Column:
        """The condition on a column of the same type, or of one that widens to it."""
        _, decode = _encoding(self.data_type) or (None, F.lit)
        found = F.lit(False)
        for low, high in self.intervals:
            inside = column == decode(low) if low == high else (column >= decode(low)) & (column <= decode(high))
            found = found | inside
        return found | column.isNull() if self.null else found


def of_frame(frame: DataFrame, local: bool, most: int = MOST_RANGES) -> tuple[Ranges | None, ...]:
    """Ranges for each column of a frame of keys; None where its type has none.

    `local`: the rows are few and on the driver, so their values can be told apart; else only their bounds are read, in one job.
    """
    fields = frame.schema.fields
    encodings = [_encoding(f.dataType) for f in fields]
    wanted = [i for i, encoding in enumerate(encodings) if encoding is not None]
    found: list[Ranges | None] = [None] * len(fields)
    if not wanted:
        return tuple(found)
    encoded = {i: encodings[i][0](F.col(fields[i].name)) for i in wanted}  # type: ignore[index]
    rows = frame.select(*[encoded[i].alias(str(i)) for i in wanted]).collect() if local else None
    if rows is None:
        row = frame.agg(*[f(encoded[i]).alias(f"{f.__name__}{i}") for i in wanted for f in (F.min, F.max, _nulls)]).head()
        assert row is not None
        for n, i in enumerate(wanted):
            low, high, null = row[3 * n : 3 * n + 3]
            found[i] = Ranges(fields[i].dataType, ((low, high),) if low is not None else (), bool(null))
        return tuple(found)
    for n, i in enumerate(wanted):
        values = {row[n] for row in rows}
        present = sorted(v for v in values if v is not None)
        found[i] = Ranges(fields[i].dataType, tuple(_clustered(present, most)), None in values)
    return tuple(found)


def _nulls(column: Column) -> Column:
    return F.count_if(column.isNull())


def _clustered(values: Sequence[Any], most: int) -> list[tuple[Any, Any]]:
    """At most `most` closed intervals over sorted distinct values, cut at the widest gaps (or evenly, where there are none)."""
    if len(values) <= most:
        return [(v, v) for v in values]
    positions = list(range(1, len(values)))
    if isinstance(values[0], str | bytes | bytearray):
        step = len(values) / most
        cuts = sorted({int(step * n) for n in range(1, most)})
    else:
        widest = sorted(positions, key=lambda p: values[p] - values[p - 1], reverse=True)
        cuts = sorted(widest[: most - 1])
    starts, ends = [0, *cuts], [*cuts, len(values)]
    return [(values[a], values[b - 1]) for a, b in zip(starts, ends, strict=True)]


def _encoding(data_type: T.DataType) -> tuple[Callable[[Column], Column], Callable[[Any], Column]] | None:
    """How a value reaches Python and comes back as a literal without loss; None where ranges are not sound."""
    match data_type:
        case T.ByteType() | T.ShortType() | T.IntegerType() | T.LongType() | T.DecimalType():
            return (lambda c: c), (lambda v: F.lit(v).cast(data_type))
        case T.StringType() if data_type.collation == "UTF8_BINARY":
            return (lambda c: c), F.lit
        case T.DateType():
            return F.unix_date, lambda v: F.date_from_unix_date(F.lit(v))
        case T.TimestampType():
            return F.unix_micros, lambda v: F.timestamp_micros(F.lit(v).cast("long"))
        case _:
            return None
