"""A view with `renamed_from`: where the table of its earlier name is, until `apply` has taken it over."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lake.config.models import Config
from lake.delta.tables import Table
from lake.errors import DefinitionError
from lake.views.inputs import table_of, view_place
from lake.views.table import open_log


def earlier_table(spark: SparkSession, config: Config, view: str) -> Table | None:
    """The table of the view's earlier name, under which it is published; None where there is nothing to take over.

    It is at the view's own place where a process ended after it had moved the table, and before it had written the name into it.
    """
    earlier, own = config.view(view).renamed_from, table_of(config, view)
    if earlier is None:
        return None
    moved = Table(earlier, own.path, own.name)
    if (log := open_log(spark, own)) is not None:
        return moved if log.head().properties.get("lakejoin.view") == earlier else None
    there = view_place(config, earlier)
    log = open_log(spark, there)
    return there if log is not None and log.head().properties.get("lakejoin.view") == earlier else None


def refuse_renamed(spark: SparkSession, config: Config, view: str) -> None:
    """Raise DefinitionError where the view would be built a second time, beside the table of its earlier name."""
    found = earlier_table(spark, config, view)
    if found is not None:
        raise DefinitionError(
            f"View {view!r} is renamed from {found.label!r}, whose table is still under that name. Nothing was written. Run "
            f'"lakejoin apply {view}" to take it over, with its rows and its history, or remove `renamed_from` to build a new table.'
        )
