"""The keys of a lookup: values of expressions over a relation, and ranges that bound them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Expression
from lake.spark import steps
from lake.spark.key_ranges import Ranges


@dataclass(frozen=True)
class Keys:
    """Rows to look up: the values in `frame` (column `k<i>` for `on[i]`; repeats allowed) of expressions over a relation.

    Values compare null-safe: NULL is a key like any other. `ranges[i]` bounds the values where that is known; where not `complete`, rows
    were removed from `frame` since, so that it may lack some of those values. `within`: ranges of columns outside of which the caller needs
    no rows, though it may get them; only those relations whose columns they are know of them.
    """

    on: tuple[Expression, ...]
    frame: DataFrame
    ranges: tuple[Ranges | None, ...]
    local: bool
    complete: bool = True
    within: tuple[tuple[Expression, Ranges], ...] = ()

    @classmethod
    def null(cls, on: Expression, catalyst: Catalyst) -> Keys:
        """The key NULL of one expression."""
        data_type = catalyst.type_of(on)
        frame = catalyst.spark.range(1).select(F.lit(None).cast(data_type).alias("k0"))
        return cls((on,), frame, (Ranges(data_type, (), null=True),), True)

    @property
    def columns(self) -> list[str]:
        return [f"k{i}" for i in range(len(self.on))]

    @property
    def values(self) -> frozenset[object] | None:
        """The keys themselves, NULL among them, where they are of one expression and few enough to be known."""
        (first, *more) = self.ranges
        if more or not self.complete or first is None or first.values is None:
            return None
        return frozenset((*first.values, None) if first.null else first.values)

    def hold_null(self) -> bool:
        """Whether one of the keys has a NULL in it."""
        if all(ranges is not None for ranges in self.ranges):
            return any(ranges.null for ranges in self.ranges if ranges is not None)
        return not self.frame.where(" OR ".join(f"{column} IS NULL" for column in self.columns)).isEmpty()

    def pick(self, picked: Mapping[int, Expression]) -> Keys:
        """The keys of some of the expressions, given as position → the same expression over another relation."""
        frame = self.frame
        if list(picked) != list(range(len(self.on))):
            frame = steps.over(frame, steps.select(f"k{i} AS k{n}" for n, i in enumerate(picked)))
        return replace(self, on=tuple(picked.values()), frame=frame, ranges=tuple(self.ranges[i] for i in picked), within=())

    @property
    def among(self) -> dict[int, Ranges]:
        """The ranges of those keys that are columns, by attribute id, so that files can be skipped."""
        found = [(e.attribute, ranges) for e, ranges in zip(self.on, self.ranges, strict=True) if e.plain]
        return {attribute: ranges for attribute, ranges in found if attribute is not None and ranges is not None}

    def without_nulls(self, null_safe: Sequence[bool]) -> Keys:
        """The keys that can match in a join: no NULL, but in columns that the join compares null-safe."""
        dropped = [i for i, safe in enumerate(null_safe) if not safe]
        ranges = [replace(r, null=False) if r is not None and i in dropped else r for i, r in enumerate(self.ranges)]
        # not dropna, for which NaN is no value either
        frame = self.frame.where(" AND ".join(f"k{i} IS NOT NULL" for i in dropped)) if dropped else self.frame
        complete = self.complete and (len(self.on) == 1 or not any(r is None or r.null for r in (self.ranges[i] for i in dropped)))
        return replace(self, frame=frame, ranges=tuple(ranges), complete=complete)
