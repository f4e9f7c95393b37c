"""Random numbers and columns for TPC-DS's tables: the same seed makes the same rows, on any machine."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from examples.tpcds.schema import COLUMNS

Numbers = NDArray[np.int64]
FIRST_DAY, DAYS = date(1998, 1, 1), 2191
"""The days that date_dim has: six years."""
FIRST_SK = 2_450_815
"""The key of the first of them, which is its Julian day, as in the specification."""
_TYPES: Mapping[str, pa.DataType] = {"INT": pa.int32(), "BIGINT": pa.int64(), "STRING": pa.string(), "DATE": pa.date32()}


def day(sk: int) -> date:
    """The day of a key of date_dim."""
    return FIRST_DAY + timedelta(days=int(sk) - FIRST_SK)


def sk_of(text: str) -> int:
    """The key of a day in ISO format."""
    return FIRST_SK + (date.fromisoformat(text) - FIRST_DAY).days


def identifier(n: int) -> str:
    """A business key as the specification's: 16 letters."""
    return "A" * 8 + "".join(chr(ord("A") + (n >> 4 * place & 15)) for place in range(7, -1, -1))


def schema(table: str) -> pa.Schema:
    """The columns of a table as Arrow's types."""
    return pa.schema([(name, _type(kind)) for name, kind in re.findall(r"(\w+) (\w+(?:\(\d+,\d+\))?)", COLUMNS[table])])


def _type(kind: str) -> pa.DataType:
    if kind.startswith("DECIMAL"):
        precision, scale = map(int, re.findall(r"\d+", kind))
        return pa.decimal128(precision, scale)
    return _TYPES[kind]


def rows(table: str, columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> pa.Table:
    """A table of columns by name; decimals are given as hundredths, columns that are not given are NULL.

    Raises ValueError for a column that the table does not have.
    """
    wanted = schema(table)
    if unknown := set(columns) - set(wanted.names):
        raise ValueError(f"{table} has no columns {sorted(unknown)}; it has {wanted.names}")
    size = len(next(iter(columns.values())))
    return pa.table([_column(columns.get(f.name, [None] * size), f.type) for f in wanted], schema=wanted)


def _column(values: Sequence[Any] | NDArray[Any], kind: pa.DataType) -> pa.Array:
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if pa.types.is_decimal(kind):
        listed = [None if value is None else Decimal(value).scaleb(-2) for value in listed]
    return pa.array(listed, type=kind)


class Draw:
    """A stream of random values, one for each name and seed."""

    def __init__(self, name: str, seed: int = 42) -> None:
        self.random = np.random.default_rng([seed, zlib.crc32(name.encode())])

    def among(self, size: int, *values: Any, skew: float = 0.0) -> list[Any]:
        """Some of the values; with skew, the first ones more often than the last ones."""
        return [values[i] for i in self.skewed(size, len(values), skew)]

    def skewed(self, size: int, below: int, skew: float = 1.0) -> Numbers:
        """Numbers from 0 on, the small ones more often: n is drawn in proportion to 1 / (n + 3) ** skew."""
        return self.random.choice(below, size=size, p=weights(below, skew))

    def whole(self, size: int, low: int, high: int) -> Numbers:
        """Whole numbers from low to high, both included."""
        return self.random.integers(low, high + 1, size=size)

    def chance(self, size: int, share: float) -> NDArray[np.bool_]:
        """True in a share of the cases."""
        return self.random.random(size) < share

    def holes(self, values: Sequence[Any] | NDArray[Any], share: float = 0.03) -> list[Any]:
        """The values with NULL in place of a share of them."""
        listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
        return [None if hole else value for value, hole in zip(listed, self.chance(len(listed), share), strict=True)]


def weights(below: int, skew: float) -> NDArray[np.float64]:
    """The probabilities of `Draw.skewed`."""
    found = 1.0 / (np.arange(below) + 3.0) ** skew
    return found / found.sum()
