"""Compares the rows of a view with those that a test expects, as multisets of the columns that the test names.

Both are few, and are compared in Python. Floating-point numbers are compared by their first digits, as a person writes them; everything
else as Spark has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
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


@dataclass(frozen=True)
class Collected:
    """Rows in Python: the columns that a reader sees, timestamps as texts."""

    columns: T.StructType
    rows: Sequence[tuple[Any, ...]]

    @staticmethod
    def of(frame: DataFrame) -> Collected:
        """The rows of a frame. Python would show timestamps in the time zone of this machine, not in that of the session."""
        columns = plain(frame.schema)
        moments = {f.name for f in columns.fields if isinstance(f.dataType, T.TimestampType)}
        chosen = [frame[quoted(n)].cast("string").alias(n) if n in moments else frame[quoted(n)] for n in columns.names]
        return Collected(columns, [tuple(row) for row in frame.select(*chosen).collect()])

    def only(self, names: Collection[str]) -> Collected:
        """The same with these columns only (in small letters), in their order here."""
        chosen = [i for i, f in enumerate(self.columns.fields) if f.name.lower() in names]
        columns = T.StructType([self.columns.fields[i] for i in chosen])
        return Collected(columns, [tuple(row[i] for i in chosen) for row in self.rows])

    def counted(self, exactly: bool) -> Counter[Any]:
        """How often each row is there."""
        return Counter(_comparable(row, self.columns, exactly) for row in self.rows)


def same(a: Collected, b: Collected) -> bool:
    """Whether two multisets of rows are the same in every bit."""
    return len(a.columns) == len(b.columns) and a.counted(exactly=True) == b.counted(exactly=True)


def compared(expected: Rows, view: Collected) -> Difference | None:
    """How the view's rows differ from the expected ones; None if they do not. Raises ConfigError for a column that it does not have."""
    expected.refuse_unknown(view.columns)
    named = {name.lower() for name in expected.named() or view.columns.names}
    there = view.only(named)
    return difference(Collected.of(expected.frame(there.columns)), there)


def difference(wanted: Collected, there: Collected) -> Difference | None:
    """How two multisets of rows of the same columns differ; None if they do not."""
    known = {_comparable(row, side.columns, False): row for side in (wanted, there) for row in side.rows}
    counted = [side.counted(exactly=False) for side in (wanted, there)]
    missing, unexpected = (
        tuple(tuple(shown(cell) for cell in known[row]) for row in counter.elements())
        for counter in (counted[0] - counted[1], counted[1] - counted[0])
    )
    return Difference(tuple(there.columns.names), missing, unexpected) if missing or unexpected else None


def _comparable(value: Any, of: T.DataType, exactly: bool) -> Any:
    """A value that can be counted. `exactly`: all digits of floating-point numbers, and the order of a map's entries, make a difference."""
    if value is None:
        return None
    match of:
        case T.DoubleType() | T.FloatType():
            return repr(value) if exactly else f"{value or 0.0:.{_DIGITS[type(of)]}g}"  # -0.0 is 0.0
        case T.StructType():
            return tuple(_comparable(cell, f.dataType, exactly) for cell, f in zip(value, of.fields, strict=True))
        case T.ArrayType():
            return tuple(_comparable(cell, of.elementType, exactly) for cell in value)
        case T.MapType():
            items = [(_comparable(k, of.keyType, exactly), _comparable(v, of.valueType, exactly)) for k, v in value.items()]
            return tuple(items) if exactly else frozenset(items)
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
