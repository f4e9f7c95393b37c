"""Pairs the rows of an old and a new side by key, counts by aggregation what is on one side only or differs, and takes some of them.

Keys and values are told apart by `sameness`, bit by bit: NULL is a key like any other, and so are NaN and -0.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Literal

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.window import Window

from lake.core.planned import RowChanges
from lake.operations.rounding import NONE, Tolerance
from lake.spark import sameness
from lake.spark.ulps import ulps_apart

_OLD, _NEW, _RANK, _COPY = "_old", "_new", "_rank", "_copy"
_KEYS = 3
Kind = Literal["added", "removed", "changed"]


@dataclass(frozen=True)
class Counts:
    """How many rows only the new side has, only the old side, and both with other values; of these, how many differ in each column."""

    added: int
    removed: int
    changed: int
    by_column: Mapping[str, int]


@dataclass(frozen=True)
class Pairs:
    """The paired rows. `places`: by column, its name in the frames; `key`: the columns that pair rows."""

    frame: DataFrame
    places: Mapping[str, str]
    key: Sequence[str]
    allowed: Tolerance

    @property
    def conditions(self) -> dict[Kind, Column]:
        """When a row of the frame is of a kind."""
        changed = reduce(or_, (self._in_both & self._other(place) for place in self._values.values()), F.lit(False))
        return {"added": F.col(_OLD).isNull(), "removed": F.col(_NEW).isNull(), "changed": changed}

    @property
    def differs(self) -> dict[str, Column]:
        """By each column that is not of the key, whether the two rows of a pair differ in it, by more than rounding."""
        return {name: self._in_both & self._other(place) & ~self._rounded(place) for name, place in self._values.items()}

    @property
    def _values(self) -> dict[str, str]:
        return {name: place for name, place in self.places.items() if name not in self.key}

    @property
    def _in_both(self) -> Column:
        return F.col(_OLD).isNotNull() & F.col(_NEW).isNotNull()

    def _other(self, place: str) -> Column:
        return F.col(f"{_OLD}_{place}") != F.col(f"{_NEW}_{place}")

    def _rounded(self, place: str) -> Column:
        if place not in self.allowed.apart:
            return F.lit(False)
        row = self.frame.schema[_OLD].dataType
        assert isinstance(row, T.StructType)
        return ulps_apart(F.col(_OLD)[place], F.col(_NEW)[place], row[place].dataType, self.allowed.apart[place]).isNotNull()

    def counts(self) -> Counts:
        """How many rows there are of each kind: one job."""
        found = self.frame.agg(*map(F.count_if, (*self.conditions.values(), *self.differs.values()))).head() or ()
        numbers = [int(n or 0) for n in found]
        by_column = {name: n for name, n in zip(self.differs, numbers[3:], strict=True) if n}
        return Counts(numbers[0], numbers[1], numbers[2], by_column)

    def row_changes(self) -> RowChanges:
        """The same, with the keys of some rows."""
        found = self.counts()
        return RowChanges(found.added, found.removed, found.changed, found.by_column, self.keys(_KEYS))

    def keys(self, most: int) -> tuple[dict[str, Any], ...]:
        """The keys of some rows that are on one side only, or differ."""
        one = [F.coalesce(F.col(_NEW)[self.places[name]], F.col(_OLD)[self.places[name]]) for name in self.key]
        some = self.frame.where(reduce(or_, self.conditions.values())).select(*one).take(most)
        return tuple(dict(zip(self.key, row, strict=True)) for row in some)

    def rows(self, kind: Kind, most: int) -> list[tuple[dict[str, Any] | None, dict[str, Any] | None, tuple[str, ...]]]:
        """Some rows of a kind: of the old side, of the new side, and the columns in which they differ."""
        flags = F.array(*self.differs.values(), F.lit(False))
        some = self.frame.where(self.conditions[kind]).select(_OLD, _NEW, flags).take(most)
        return [(self._named(old), self._named(new), self._marked(marks)) for old, new, marks in some]

    def _named(self, row: Row | None) -> dict[str, Any] | None:
        values = None if row is None else row.asDict(recursive=True)
        return None if values is None else {name: values[place] for name, place in self.places.items()}

    def _marked(self, marks: Sequence[bool]) -> tuple[str, ...]:
        return tuple(name for name, differs in zip(self.differs, marks, strict=False) if differs)


@contextmanager
def paired(old: DataFrame, new: DataFrame, places: Mapping[str, str], key: Sequence[str], allowed: Tolerance = NONE) -> Iterator[Pairs]:
    """Within it, the rows of two sides beside each other where they have the same key; kept until then, not on the driver.

    Several rows of a key are paired each with each, unless the sides are `ranked`. `allowed`: what counts as equal, by the frames' names.
    """
    on = [*[places[name] for name in key], *[c for c in (_RANK,) if c in old.columns]]
    same_key = [F.col(f"{_OLD}_{c}") == F.col(f"{_NEW}_{c}") for c in on]
    both = _beside(old, _OLD).join(_beside(new, _NEW), on=same_key, how="full").persist()
    try:
        yield Pairs(both, places, key, allowed)
    finally:
        both.unpersist()


def ranked(rows: DataFrame, columns: Sequence[str], times: Column, key: Sequence[str]) -> DataFrame:
    """Some columns of each row, as often as `times` says, numbered among the rows of the same key: `paired` then pairs the first row of a
    key on one side with the first on the other one, and so on."""
    copies = rows.select(*columns, F.explode(F.sequence(F.lit(1), times)).alias(_COPY))
    of_key = Window.partitionBy(*[sameness.marked(copies, c) for c in key]).orderBy(sameness.hashed(copies, columns), _COPY)
    return copies.select(*columns, F.row_number().over(of_key).alias(_RANK))


def _beside(frame: DataFrame, name: str) -> DataFrame:
    """The rows as a struct of this name, and beside it what each column's values are told apart by."""
    marks = [sameness.marked(frame, c).alias(f"{name}_{c}") for c in frame.columns]
    return frame.select(F.struct(*frame.columns).alias(name), *marks)
