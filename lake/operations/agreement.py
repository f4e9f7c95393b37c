"""The real-time table against the strong view, each difference in a class, judged from the snapshots that both were published with.

    real time − strong  =  (real time − truth)  +  (truth − strong)        truth: the query run from scratch at the real-time snapshot

The second part is what one path has processed and the other not yet: `ahead` where the real-time snapshot is the newer one, `behind`
where it is the older one, `undecidable` where it is newer of some tables and older of others, or where its versions can't be read any
more. The first part is wrong, and what it is follows from how often the table holds a row (h) and the truth has it (t), and from the
rows of the same key:

    h > t > 0                                       duplicate
    h > t = 0, another row of the key is lacking    left_over where it is null_extended and that one is not, lost_padded where that one is
                                                    null_extended and it is not, else wrong_value (the two rows count once)
    h > t = 0, the strong view holds it, or held it missed_delete
    h > t = 0 otherwise                             left_over: an intermediate result, which no published answer ever had
    h < t                                           lost_padded where an outer join found no match for it, else lost

Without a key an altered row is told as what it is then: a row lost, and another one too many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.window import Window

from lake.core.results import Classified, Position, Rounding
from lake.core.snapshots import Snapshot
from lake.operations.rounding import NONE, Tolerance, settled
from lake.spark import sameness

_SAMPLES = 5
_HELD, _WANTED, _STRONG, _WAS = "_h", "_t", "_s", "_was"
_CLASS, _ROWS, _OTHER, _PADDED = "_class", "_rows", "_other", "_padded"


@dataclass(frozen=True)
class Sides:
    """The frames that are compared, all with the same columns: rows of the real-time table, of the strong view, and the truth.

    `truth`: the query's rows at the snapshot of the real-time table, None where the strong view's rows are the truth; `key`: columns;
    `null_extended`: the columns that an outer join null-extends together; `was`: rows that the strong view had before, None where
    these can't be read; `tolerance`: which columns may differ by rounding.
    """

    held: DataFrame
    strong: DataFrame
    truth: DataFrame | None
    key: tuple[str, ...] = ()
    null_extended: Sequence[Sequence[str]] = ()
    was: DataFrame | None = None
    tolerance: Tolerance = NONE


def position(eventual: Snapshot, strong: Snapshot) -> Position:
    """Where the real-time path is, seen from the strong one."""
    if eventual == strong:
        return "equal"
    same = set(eventual) == set(strong) and all(eventual.versions[t].table_id == v.table_id for t, v in strong.versions.items())
    if same and all(eventual[t] >= strong[t] for t in strong):
        return "ahead"
    if same and all(eventual[t] <= strong[t] for t in strong):
        return "behind"
    return "undecidable"


def differing(sides: Sides) -> tuple[DataFrame, Rounding]:
    """The rows of which not all sides hold the same number, once each, with those numbers, and what is rounding and left out; persist
    it before `classified`."""
    if sides.truth is None:
        found = sameness.tallied(**{_HELD: _numbered(sides.held), _STRONG: _numbered(sides.strong)}).withColumn(_WANTED, F.col(_STRONG))
    else:
        frames = {_HELD: sides.held, _STRONG: sides.strong, _WANTED: sides.truth}
        found = sameness.tallied(**{name: _numbered(frame) for name, frame in frames.items()})
    differs, allowed = (F.col(_HELD) != F.col(_WANTED)) | (F.col(_STRONG) != F.col(_WANTED)), sides.tolerance.of(_names(sides))
    if not allowed:
        return found.where(differs), Rounding()
    others = (_HELD, _STRONG) if sides.truth is not None else (_HELD,)
    left, rounding = settled(found.where(differs), dict.fromkeys(others, _WANTED), allowed)
    return left.where((F.col(_HELD) != F.col(_WANTED)) | (F.col(_STRONG) != F.col(_WANTED))), rounding


def classes(sides: Sides, where: Position, was: Callable[[], DataFrame | None]) -> tuple[tuple[Classified, ...], Rounding]:
    """How many rows there are of each class, with some of them. `was`: reads `Sides.was`, where it is needed."""
    if where == "equal" and sameness.same_rows(sides.held, sides.strong if sides.truth is None else sides.truth) is not None:
        return (), Rounding()
    found, rounding = differing(sides)
    found = found.persist()
    try:
        surplus = found.where((F.col(_HELD) > 0) & (F.col(_WANTED) == 0))
        return classified(found, replace(sides, was=None if surplus.isEmpty() else was()), where), rounding
    finally:
        found.unpersist()


def classified(differing: DataFrame, sides: Sides, where: Position) -> tuple[Classified, ...]:
    """The classes of some differences."""
    wrong = _wrong(differing.where(F.col(_HELD) != F.col(_WANTED)), sides)
    if where == "equal":  # what the strong view has wrong is no difference that time would mend
        return _counted(wrong)
    return _counted(wrong.unionByName(_moved(differing, sides, where, F.col(_STRONG) - F.col(_WANTED))))


def undecided(sides: Sides) -> tuple[tuple[Classified, ...], Rounding]:
    """The rows in which the paths differ, where nothing tells why."""
    found, rounding = differing(Sides(sides.held, sides.strong, None, tolerance=sides.tolerance))
    return _counted(_moved(found, sides, "undecidable", F.col(_HELD) - F.col(_STRONG))), rounding


def _moved(rows: DataFrame, sides: Sides, name: str, by: Column) -> DataFrame:
    """Rows of one class that have no counterpart."""
    counterpart = F.lit(None).cast(_row_type(rows, sides)).alias(_OTHER)
    return rows.where(by != 0).select(F.lit(name).alias(_CLASS), F.abs(by).alias(_ROWS), _row(sides), counterpart)


def _wrong(rows: DataFrame, sides: Sides) -> DataFrame:
    """The rows that the real-time table holds more or less often than the truth has them, with their classes."""
    names, extra = _names(sides), F.col(_HELD) > F.col(_WANTED)
    rows = _once_held(rows, sides).withColumn(_PADDED, _padded(sides))
    paired = F.lit(False)
    if sides.key:
        same = Window.partitionBy(*[sameness.marked(rows, names[k]) for k in sides.key])
        one = F.struct(_PADDED, F.struct(*[F.col(c).alias(n) for n, c in names.items()]).alias("row"))
        for name, side in (("_lacking", ~extra), ("_surplus", extra & (F.col(_WANTED) == 0))):
            rows = rows.withColumn(name, F.first(F.when(side, one), ignorenulls=True).over(same))
        paired = F.col("_lacking").isNotNull() & F.col("_surplus").isNotNull()
    else:
        one_type = T.StructType([T.StructField(_PADDED, T.BooleanType()), T.StructField("row", _row_type(rows, sides))])
        rows = rows.withColumn("_lacking", F.lit(None).cast(one_type))
    other = F.col("_lacking")[_PADDED]
    alone = F.when(F.col(_WAS), "missed_delete").otherwise("left_over")  # also where the log no longer tells: wrong it is
    pair = F.when(F.col(_PADDED) & ~other, "left_over").when(~F.col(_PADDED) & other, "lost_padded").otherwise("wrong_value")
    surplus = F.when(F.col(_WANTED) > 0, "duplicate").when(paired, pair).otherwise(alone)
    lacking = F.when(paired & (F.col(_HELD) == 0), None).when(F.col(_PADDED), "lost_padded").otherwise("lost")
    found = rows.withColumn(_CLASS, F.when(extra, surplus).otherwise(lacking)).where(F.col(_CLASS).isNotNull())
    counterpart = F.when(extra & paired & (F.col(_WANTED) == 0), F.col("_lacking")["row"]).alias(_OTHER)
    return found.select(_CLASS, F.abs(F.col(_HELD) - F.col(_WANTED)).alias(_ROWS), _row(sides), counterpart)


def _once_held(rows: DataFrame, sides: Sides) -> DataFrame:
    """With whether the strong view holds the row, or has held it; NULL where that can't be known."""
    if sides.was is None:
        return rows.withColumn(_WAS, F.when(F.col(_STRONG) > 0, F.lit(True)))
    columns = list(_names(sides).values())
    was = _numbered(sides.was)
    before = was.select(*[sameness.marked(was, c).alias(f"_b{i}") for i, c in enumerate(columns)])
    same = [sameness.marked(rows, c).eqNullSafe(F.col(f"_b{i}")) for i, c in enumerate(columns)]
    condition = same[0]
    for part in same[1:]:
        condition = condition & part
    seen = before.distinct().withColumn(_WAS, F.lit(True))
    joined = rows.join(seen, condition, how="left").drop(*[f"_b{i}" for i in range(len(columns))])
    return joined.withColumn(_WAS, F.coalesce(F.col(_WAS), F.col(_STRONG) > 0))


def _padded(sides: Sides) -> Column:
    """Whether an outer join found no match for the row: all columns of a side are NULL."""
    names, found = _names(sides), F.lit(False)
    for group in sides.null_extended:
        empty = F.lit(True)
        for name in group:
            empty = empty & F.col(names[name]).isNull()
        found = found | empty
    return found


def _numbered(frame: DataFrame) -> DataFrame:
    return frame.toDF(*[f"c{i}" for i in range(len(frame.columns))])


def _names(sides: Sides) -> dict[str, str]:
    return {name: f"c{i}" for i, name in enumerate(sides.held.columns)}


def _row(sides: Sides) -> Column:
    return F.struct(*[F.col(c).alias(n) for n, c in _names(sides).items()]).alias("row")


def _row_type(frame: DataFrame, sides: Sides) -> T.DataType:
    return frame.select(_row(sides)).schema["row"].dataType


def _counted(found: DataFrame) -> tuple[Classified, ...]:
    counts = found.groupBy(_CLASS).agg(F.sum(_ROWS)).collect()
    some = {name: found.where(F.col(_CLASS) == name).select("row", _OTHER).take(_SAMPLES) for name, _ in counts}
    pairs = {name: tuple((row.asDict(), other.asDict() if other else None) for row, other in rows) for name, rows in some.items()}
    return tuple(Classified(name, int(rows), pairs[name]) for name, rows in sorted(counts))
