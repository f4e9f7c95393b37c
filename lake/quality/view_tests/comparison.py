"""Compares the rows of a view with those that a test expects, as multisets of the columns that the test names.

Both are few, and are compared in Python. Floating-point numbers are compared by their first digits, as a person writes them; everything
else as Spark has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from lake.core.sql import quoted
from lake.quality.view_tests.rows import Rows, plain

_DIGITS: dict[type[T.DataType], int] = {T.DoubleType: 12, T.FloatType: 6}


@dataclass(frozen=True)
class Difference:
    """The rows that are expected and are not there, and those that are there and are not expected, as values of the columns."""

    columns: tuple[str, ...]
    missing: tuple[tuple[Any, ...], ...]
    unexpected: tuple[tuple[Any, ...], ...]

    @property
    def text(self) -> str:
        """What differs, in a few words."""
        counts = {"missing": len(self.missing), "unexpected": len(self.unexpected)}
        return ", ".join(f"{number:,} {'row is' if number == 1 else 'rows are'} {what}" for what, number in counts.items() if number)


def compared(expected: Rows, frame: DataFrame) -> Difference | None:
    """How the view's rows differ from the expected ones; None if they do not. Raises ConfigError for a column that it does not have."""
    view = plain(frame.schema)
    expected.refuse_unknown(view)
    named = {name.lower() for name in expected.named()}
    chosen = T.StructType([f for f in view.fields if f.name.lower() in named] or view.fields)
    wanted, there = (_with_texts(rows, chosen) for rows in (expected.frame(chosen), frame))
    return difference(plain(wanted.schema), wanted.collect(), there.collect())


def _with_texts(frame: DataFrame, columns: T.StructType) -> DataFrame:
    """The columns with timestamps as texts: Python would show them in the time zone of this machine, not in that of the session."""
    moments = {f.name for f in columns.fields if isinstance(f.dataType, T.TimestampType)}
    chosen = [frame[quoted(name)] for name in columns.names]
    return frame.select(*[c.cast("string").alias(n) if n in moments else c for c, n in zip(chosen, columns.names, strict=True)])


def difference(columns: T.StructType, wanted: Iterable[Any], there: Iterable[Any]) -> Difference | None:
    """How two multisets of rows of some columns differ; None if they do not."""
    sides = [[tuple(row) for row in rows] for rows in (wanted, there)]
    shown_as = {comparable(row, columns): row for rows in sides for row in rows}
    counted = [Counter(comparable(row, columns) for row in rows) for rows in sides]
    left = [sorted(counter.elements(), key=str) for counter in (counted[0] - counted[1], counted[1] - counted[0])]
    if not any(left):
        return None
    missing, unexpected = (tuple(tuple(shown(cell) for cell in shown_as[row]) for row in rows) for rows in left)
    return Difference(tuple(columns.names), missing, unexpected)


def comparable(value: Any, of: T.DataType) -> Any:
    """A value that can be counted."""
    if value is None:
        return None
    match of:
        case T.DoubleType() | T.FloatType():
            return f"{value or 0.0:.{_DIGITS[type(of)]}g}"  # -0.0 is 0.0
        case T.StructType():
            return tuple(comparable(cell, f.dataType) for cell, f in zip(value, of.fields, strict=True))
        case T.ArrayType():
            return tuple(comparable(cell, of.elementType) for cell in value)
        case T.MapType():
            return frozenset((comparable(k, of.keyType), comparable(v, of.valueType)) for k, v in value.items())
        case T.VariantType():
            return value.toJson()
        case _:
            return bytes(value) if isinstance(value, bytearray) else value


def shown(value: Any) -> Any:
    """A value as JSON has it: numbers, texts and NULL as they are, anything else as a text."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(shown(k)): shown(v) for k, v in value.items()}
        case tuple() if hasattr(value, "asDict"):
            return shown(value.asDict())
        case list() | tuple():
            return [shown(each) for each in value]
        case _:
            return value.toJson() if hasattr(value, "toJson") else str(value)
