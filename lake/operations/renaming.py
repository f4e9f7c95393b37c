"""Takes over the table of a view's earlier name: moves it, then writes the new name into it, in one commit with a stamp of the new name."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lake.config.models import Config
from lake.core.plan import RefreshPlan
from lake.core.results import RefreshResult
from lake.delta import two_writers
from lake.delta.own_folder import MOVE_ERRORS, move_table
from lake.delta.statistics import STATISTICS_COLUMNS
from lake.delta.tables import Table, reason
from lake.delta.transaction import Transaction
from lake.errors import TargetError
from lake.refresh.outcome import result_of
from lake.refresh.query_edit import NO_ROWS, stamp_of_edit
from lake.views.inputs import table_of
from lake.views.table import app_id, published


def taken_over(spark: SparkSession, config: Config, view: str, earlier: Table) -> RefreshResult:
    """Move the table of a view's earlier name to the view's place, and name it after the view. A process that ends in between leaves a
    table that is found again.

    `earlier`: of `earlier_table`. Raises TargetError where the table can't be moved; it is then as it was.
    """
    own = table_of(config, view)
    two_writers.refuse(spark, own, config.single_writer)
    if (earlier.path, earlier.name) != (own.path, own.name):
        _move(spark, earlier, own)
    current = published(spark, Table(earlier.label, own.path, own.name))
    if current is None or current.stamp is None:
        raise TargetError(f"View {earlier.label!r} was never built. Nothing was written. Remove `renamed_from` from view {view!r}.")
    transaction = Transaction(current.pinned)
    statistics = {k: v for k, v in current.pinned.properties.items() if k == STATISTICS_COLUMNS}
    transaction.redefine({name: name for name in current.pinned.schema.names}, {**statistics, "lakejoin.view": view})
    stamp = stamp_of_edit(current, current.stamp, view=view)
    transaction.newest(app_id(earlier.label))  # a refresh under the earlier name at the same time is a conflict
    transaction.commit(app_id(view), stamp.number, stamp.to_json(), NO_ROWS)
    return result_of(RefreshPlan(view, "edit", stamp.snapshot, stamp.snapshot, f"the table of {earlier.label} was taken over"))


def _move(spark: SparkSession, earlier: Table, own: Table) -> None:
    try:
        move_table(spark, earlier, own)
    except MOVE_ERRORS as error:
        raise TargetError(
            f"The table of view {earlier.label!r} can't be moved from {earlier.path or earlier.name} to {own.path or own.name}: "
            f"{reason(error)}. It is as it was. Move it yourself while nothing refreshes it, or remove `renamed_from` to build a new table."
        ) from error
