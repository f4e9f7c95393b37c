"""Caches the rows that lookups found, from batch to batch of the real-time path: a bounded part of a source table, by key.

The cached rows of a key are all rows of the table with it, also where there are none. Lookups fill the cache, and the table's own changes
update it, before the first lookup of a batch:

    cached rows of a key at until = cached rows of the key at since + changes of the table with that key

so that a lookup in the cache gives the rows of the table at `until`. The least recently used keys are evicted first.

Caching has a cost: rows pass through Python, and a lookup with some missing keys reads the table anyway. Where keys do not repeat, none are
cached.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from lake.catalyst.nodes import Attribute, Expression
from lake.core.snapshots import Snapshot
from lake.relations.lookup_keys import Keys
from lake.relations.reading import Reading
from lake.spark import zset
from lake.spark.key_ranges import decoded, lossless, ranges_of
from lake.spark.session import made_frame
from lake.spark.types import arrow_schema

_KEY = "k"
_MOST_ROWS = 1_000
"""A key with more rows is not cached: it would take the place of many."""
_ROWS_A_KEY = 20
"""The most rows in total, as a multiple of the most keys."""
_JUDGED_BY = 1_000
"""After this many keys it is decided whether they repeat."""
Row = tuple[Any, ...]


class Repeats:
    """Whether keys repeat: whether at least half of the recent lookups were of one of the `most` keys before them. No Spark.

    Until a thousand keys have been looked up, the answer is yes.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._last: OrderedDict[Hashable, None] = OrderedDict()
        self._wanted = self._again = 0.0

    def note(self, wanted: Collection[Hashable]) -> bool:
        """Count a lookup's keys; whether keys repeat."""
        if self._wanted > 2 * _JUDGED_BY:
            self._wanted, self._again = self._wanted / 2, self._again / 2
        self._wanted += len(wanted)
        self._again += sum(key in self._last for key in wanted)
        for key in wanted:
            self._last[key] = None
            self._last.move_to_end(key)
        while len(self._last) > self.most:
            self._last.popitem(last=False)
        return self._wanted < _JUDGED_BY or 2 * self._again >= self._wanted


@dataclass
class _KeyRows:
    """The rows of one key, each with its number of copies; `size`: the sum of these."""

    rows: dict[Hashable, tuple[Row, int]] = field(default_factory=dict)
    size: int = 0

    def add(self, row: Row, weight: int) -> bool:
        """Add `weight` copies of a row; False where its number of copies is negative then."""
        identity = tuple(repr(value) if isinstance(value, float) else value for value in row)  # NaN is itself, -0.0 is not 0.0
        count = self.rows.pop(identity, (row, 0))[1] + weight
        if count:
            self.rows[identity] = row, count
        self.size += weight
        return count >= 0


class KeyedRows:
    """The rows of the most recently used keys of one table: at most `most` keys, and twenty times as many rows. No Spark."""

    def __init__(self, most: int) -> None:
        self.most, self.size = most, 0
        self._rows: OrderedDict[Hashable, _KeyRows] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._rows

    def find(self, wanted: Iterable[Hashable]) -> tuple[list[Row], list[Hashable]]:
        """The rows of the cached keys among these, and the other keys."""
        found: list[Row] = []
        missing = []
        for key in wanted:
            cached = self._rows.get(key)
            if cached is None:
                missing.append(key)
                continue
            self._rows.move_to_end(key)
            found += [row for row, count in cached.rows.values() for _ in range(count)]
        return found, missing

    def fill(self, keys: Iterable[Hashable], rows: Iterable[tuple[Hashable, Row]]) -> None:
        """Cache the rows that a lookup of keys found, without keys of many rows."""
        made = {key: _KeyRows() for key in keys}
        for key, row in rows:
            made[key].add(row, 1)
        for key, cached in made.items():
            if cached.size <= _MOST_ROWS:
                self._rows[key] = cached
                self.size += cached.size
        self._evict()

    def apply(self, changes: Iterable[tuple[Hashable, Row, int]]) -> None:
        """Update the cached keys by the table's changes. A key with a negative number of copies, or many rows, is evicted."""
        for key, row, weight in changes:
            cached = self._rows.get(key)
            if cached is None:
                continue
            self.size += weight
            if not cached.add(row, weight) or cached.size > _MOST_ROWS:
                self.size -= self._rows.pop(key).size
        self._evict()

    def clear(self) -> None:
        self._rows.clear()
        self.size = 0

    def _evict(self) -> None:
        while len(self._rows) > self.most or self.size > self.most * _ROWS_A_KEY:
            self.size -= self._rows.popitem(last=False)[1].size


class _Table(Protocol):
    """What the cache asks of a source relation (leaves.Source)."""

    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def read(self) -> Sequence[Attribute]: ...


@dataclass
class _Side:
    """The cached rows of one table for lookups by one key."""

    source: str
    columns: list[str]
    names: list[str]
    on: Expression
    schema: T.StructType
    rows: KeyedRows


@dataclass
class LookupCache:
    """The cache of one view's real-time path. `sizes`: the most keys, by source; `at`: the snapshot of the rows."""

    sizes: Mapping[str, int]
    at: Snapshot | None = None
    hits: Counter[str] = field(default_factory=Counter)
    misses: Counter[str] = field(default_factory=Counter)
    _sides: dict[object, _Side | None] = field(default_factory=dict)
    _repeats: dict[object, Repeats] = field(default_factory=dict)
    _before: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def lookups(self) -> dict[str, tuple[int, int]]:
        """By source, how many keys were found in the cache, and how many were looked up in its table."""
        return {source: (self.hits[source], self.misses[source]) for source in self.sizes}

    @property
    def lookups_of_batch(self) -> dict[str, tuple[int, int]]:
        """The same since `begin`, of the sources in which there were any."""
        pairs = {source: (self._before[source], now) for source, now in self.lookups.items()}
        return {source: (now[0] - before[0], now[1] - before[1]) for source, (before, now) in pairs.items() if now != before}

    def __len__(self) -> int:
        return sum(len(side.rows) for side in self._sides.values() if side is not None)

    def begin(self, since: Snapshot, reading: Reading) -> None:
        """Update the cache from `since` by this reading's changes; clear it where it is at another snapshot."""
        if self.at != since:
            self.clear()
        self.at, self._before = None, self.lookups
        for side in self._sides.values():
            if side is not None and len(side.rows):
                self._advance(side, reading)

    def end(self, until: Snapshot) -> None:
        """The cache is at this snapshot now; after a failed batch it is at none."""
        self.at = until

    def clear(self) -> None:
        for side in self._sides.values():
            if side is not None:
                side.rows.clear()

    def lookup(self, source: _Table, keys: Keys, reading: Reading, looked_up: Callable[[Keys], DataFrame]) -> DataFrame | None:
        """The rows (in the columns `source.read`) with one of the keys; None where such keys are not cached, or do not repeat.

        `looked_up`: exactly the rows of some keys, from the table.
        """
        wanted = keys.values
        if wanted is None or not keys.local or source.name not in self.sizes or len(wanted) > self.sizes[source.name]:
            return None
        known = (source.name, *source.columns, str(keys.on[0]), keys.on[0].attribute)
        side = self._sides.get(known)
        if not self._repeats.setdefault(known, Repeats(self.sizes[source.name])).note(wanted):
            self.misses[source.name] += len(wanted)
            if side is not None:
                side.rows.clear()
            return None
        first = None
        if known not in self._sides:
            first = looked_up(keys)
            side = self._sides[known] = self._side(source, keys.on[0], first)
        if side is None:
            return first
        found, missing = side.rows.find(wanted)
        self.hits[source.name] += len(wanted) - len(missing)
        self.misses[source.name] += len(missing)
        if missing:
            if first is None:
                first = looked_up(keys if len(missing) == len(wanted) else _only(keys, missing, reading))
            table = reading.frames.keep_rows(first)
            if not table.local:  # too many for the driver
                return table.frame.select(*side.names).unionByName(_frame(found, side, reading))
            read = _read(table.frame, side, reading)
            if read is None:
                self._drop(side)
                return None
            side.rows.fill(missing, [(key, row) for key, row, _ in read])
            found += [row for _, row, _ in read]
        return _frame(found, side, reading)

    def _side(self, source: _Table, on: Expression, rows: DataFrame) -> _Side | None:
        """Room for lookups of a table by one key, of which `rows` are the first; None where such rows can't be cached."""
        names = [a.column for a in source.read]
        schema = rows.select(*names).schema
        if not _cacheable(schema):
            return None
        return _Side(source.name, source.columns, names, on, schema, KeyedRows(self.sizes[source.name]))

    def _advance(self, side: _Side, reading: Reading) -> None:
        changes = reading.tables.changes(side.source, side.columns)
        if changes is None:
            return
        if not changes.local:
            side.rows.clear()
            return
        read = _read(reading.catalyst.with_names(changes.frame, [*side.names, zset.WEIGHT]), side, reading)
        if read is None:
            self._drop(side)
        else:
            side.rows.apply(read)

    def _drop(self, side: _Side) -> None:
        """Cache nothing of a side from now on."""
        self._sides = {known: None if one is side else one for known, one in self._sides.items()}


def _read(frame: DataFrame, side: _Side, reading: Reading) -> list[tuple[Hashable, Row, int]] | None:
    """(key as `keys.values` has it, row, weight) of each row of `side.names` and, where it is weighted, the weight last; None where a value
    would not come back as it was."""
    found: list[Row] = [
        tuple(bytes(v) if isinstance(v, bytearray) else v for v in row)
        for row in reading.catalyst.values(reading.catalyst.project(frame, {_KEY: side.on}, keep=True))
    ]
    if not lossless([value for row in found for value in row]):
        return None
    width = len(side.names)
    return [(row[-1], row[:width], row[width] if len(row) > width + 1 else 1) for row in found]


def _cacheable(schema: T.StructType) -> bool:
    """Whether such rows can go through Python and come back bit by bit."""
    types = [f.dataType for f in schema]
    return all(isinstance(t, _CACHEABLE) and (not isinstance(t, T.StringType) or t.collation == "UTF8_BINARY") for t in types)


_CACHEABLE = (T.IntegralType, T.FractionalType, T.StringType, T.BooleanType, T.BinaryType, T.DateType, T.TimestampType)


def _frame(rows: Sequence[Row], side: _Side, reading: Reading) -> DataFrame:
    schema = arrow_schema(side.schema)
    columns = list(zip(*rows, strict=True)) or [()] * len(side.names)
    arrays = [decoded(values, f.type) for values, f in zip(columns, schema, strict=True)]
    return made_frame(reading.catalyst.spark, pa.Table.from_arrays(arrays, names=side.names), side.schema)


def _only(keys: Keys, some: Sequence[Hashable], reading: Reading) -> Keys:
    """Some of the keys."""
    ranges = keys.ranges[0]
    assert ranges is not None
    schema = T.StructType([T.StructField("k0", ranges.data_type)])
    values = decoded(some, arrow_schema(schema)[0].type)
    frame = made_frame(reading.catalyst.spark, pa.Table.from_arrays([values], names=["k0"]), schema)
    return replace(keys, frame=frame, ranges=ranges_of(frame, True))
