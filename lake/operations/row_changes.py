"""Says which rows of a view an edit of its query changes: the edited query, run by plain Spark at the view's snapshot, beside its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lake.core.planned import RowChanges
from lake.core.sql import quoted
from lake.operations.pairing import paired
from lake.operations.verify import Share, from_scratch, key_of
from lake.spark import sameness, zset
from lake.spark.session import own_session
from lake.views.registry import OpenViews
from lake.views.table import visible

_OLD, _NEW = "_old", "_new"


def row_changes(views: OpenViews, view: str, share: Share) -> RowChanges:
    """The rows that are added, removed and changed, in the columns that both queries have, at the snapshot of the published rows.

    Rows are told apart by the key of the view, where both queries have it; without one, a changed row counts as removed and added. Views
    that the query reads are taken as they are published. Raises ExpiredError where the versions can't be read any more.
    """
    spark = own_session(views.spark)
    current = views.built(spark, view)
    assert current.stamp is not None
    old = visible(current.pinned.rows())
    new = from_scratch(spark, view, views.config, views.frames_of(spark, current.stamp))
    return compared_rows(old, new, key_of(current), share)


def compared_rows(old: DataFrame, new: DataFrame, key_columns: Sequence[str], share: Share) -> RowChanges:
    """The rows that are added, removed and changed from one frame to the other, in the columns that both have."""
    types = {f.name: f.dataType.simpleString() for f in old.schema.fields}
    common = [f.name for f in new.schema.fields if types.get(f.name) == f.dataType.simpleString()]
    places = {name: f"c{i}" for i, name in enumerate(common)}
    key = [name for name in key_columns if name in common]
    key = key if len(key) == len(key_columns) else []
    told = [places[name] for name in key or common]
    sides = [frame.select(*map(_column, common)).toDF(*places.values()) for frame in (old, new)]
    before, after = (share.of_rows(side, told) for side in sides)
    if not key:
        return _by_row(before, after, str(share))
    return _by_key(before, after, places, key, str(share))


def _by_row(before: DataFrame, after: DataFrame, share: str) -> RowChanges:
    added, removed = zset.totals(sameness.tallied(**{_NEW: after, _OLD: before}), F.col(_NEW) - F.col(_OLD))
    return RowChanges(added, removed, 0, {}, (), share)


def _by_key(before: DataFrame, after: DataFrame, places: dict[str, str], key: list[str], share: str) -> RowChanges:
    with paired(before, after, places, key) as pairs:
        return replace(pairs.row_changes(), share=share)


def _column(name: str) -> Column:
    return F.col(quoted(name))
