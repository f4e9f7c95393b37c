"""Settles differences that are rounding: in columns made of sums of floating-point numbers (`catalyst/rounding.py`), within some ulps.

An ulp (unit in the last place) is the distance from a floating-point number to the next one. Two multisets of rows differ by rounding
under some values of all other columns, if these agree bit by bit, each multiset has the same number of rows with them, and these rows,
each side in the order of its floating-point columns, differ one by one within the limit. Everything else is a difference: another number
of rows, another value of any other column, NULL, NaN or an infinity instead of a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from lake.core.results import Rounding
from lake.spark import sameness
from lake.spark.ulps import ulps_apart

_GROUP, _SIDE, _RANK, _ULPS, _PAIRS = "_group", "_side", "_rank", "_ulps", "_pairs"


@dataclass(frozen=True)
class Tolerance:
    """The columns that may differ by rounding, and by how many ulps at most; `zeros`: those that may differ in the sign of zero."""

    columns: Sequence[str]
    ulps: int
    zeros: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.apart)

    @property
    def apart(self) -> dict[str, int]:
        """Column → by how many ulps it may differ, 0 for the sign of zero only."""
        rounded = self.columns if self.ulps > 0 else ()
        return {**dict.fromkeys(self.zeros, 0), **dict.fromkeys(rounded, self.ulps)}

    @property
    def only_rounding(self) -> Tolerance:
        """The same, in which the sign of zero may not differ."""
        return Tolerance(self.columns, self.ulps)

    def of(self, names: Mapping[str, str]) -> Tolerance:
        """The same with the columns under other names."""
        columns, zeros = ([names[c] for c in listed if c in names] for listed in (self.columns, self.zeros))
        return Tolerance(columns, self.ulps, zeros)


NONE = Tolerance((), 0)


def settled(tallied: DataFrame, sides: Mapping[str, str], tolerance: Tolerance) -> tuple[DataFrame, Rounding]:
    """Tallied rows (sameness.tallied) in which one side's count is replaced by another's where the two differ by rounding only.

    `sides`: the column of a side's counts → that of the side that it is compared with. Also how many rows were settled so.
    """
    counts = {*sides, *sides.values()}
    others = [c for c in tallied.columns if c not in counts and c not in tolerance.apart]
    rows = tallied.withColumn(_GROUP, F.struct(F.lit(0), *[sameness.marked(tallied, c) for c in others]))
    total = Rounding()
    for side, other in sides.items():
        groups = _groups(rows, side, other, tolerance).persist()
        try:
            found = groups.agg(F.sum(_PAIRS), F.max(_ULPS)).head()
            if found is not None and found[0]:
                total = Rounding(total.rows + int(found[0]), max(total.ulps, int(found[1])))
                ours = groups.select(F.col(_GROUP).alias("_settled")).localCheckpoint()
                joined = rows.join(ours, F.col(_GROUP).eqNullSafe(F.col("_settled")), how="left")
                rows = joined.withColumn(side, F.when(F.col("_settled").isNotNull(), F.col(other)).otherwise(F.col(side))).drop("_settled")
        finally:
            groups.unpersist()
    return rows.drop(_GROUP), total


def _groups(rows: DataFrame, side: str, other: str, tolerance: Tolerance) -> DataFrame:
    """The groups in which two sides differ by rounding only: how many pairs of rows, and by how much."""
    more, columns = F.col(side) - F.col(other), [*tolerance.apart]
    surplus = rows.where(more != 0).select(_GROUP, *columns, (more > 0).alias(_SIDE), F.explode(F.sequence(F.lit(1), F.abs(more))))
    ranked = surplus.withColumn(_RANK, F.row_number().over(Window.partitionBy(_GROUP, _SIDE).orderBy(*columns)))
    one = F.struct(*columns)
    pairs = ranked.groupBy(_GROUP, _RANK).agg(
        *[F.first(F.when(F.col(_SIDE) == own, one), ignorenulls=True).alias(str(own)) for own in _OWN]
    )
    types = {c: rows.schema[c].dataType for c in columns}
    apart = [ulps_apart(F.col(_NAMES[0])[c], F.col(_NAMES[1])[c], types[c], most) for c, most in tolerance.apart.items()]
    both = reduce(lambda a, b: a & b, [F.col(n).isNotNull() for n in _NAMES] + [a.isNotNull() for a in apart])
    judged = pairs.select(_GROUP, F.when(both, F.greatest(*apart, F.lit(0))).alias(_ULPS))
    counted = judged.groupBy(_GROUP).agg(F.count(F.lit(1)).alias(_PAIRS), F.count(_ULPS).alias("_within"), F.max(_ULPS).alias(_ULPS))
    return counted.where(F.col(_PAIRS) == F.col("_within")).drop("_within")


_OWN = (True, False)
_NAMES = [str(own) for own in _OWN]
