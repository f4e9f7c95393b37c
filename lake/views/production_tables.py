"""Where the views of a development environment are: the environment's own table where it has one, else production's.

    production   a  b  c        the environment reads a and c of production, and b of its own
    own             b

Nothing else says which views are shared: an environment that has no table of a view shares production's.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from lake.config.models import Config
from lake.delta.tables import Table
from lake.delta.two_writers import location
from lake.errors import TargetError
from lake.views.inputs import production_place, view_place
from lake.views.table import open_log


def place_of(spark: SparkSession, config: Config, view: str) -> Table:
    """The table from which a view is read on the strong path; where there is none yet, that which will be made."""
    own, theirs = view_place(config, view), production_place(config, view)
    if theirs is None or open_log(spark, own) is not None or open_log(spark, theirs) is None:
        return own
    return theirs


def refuse_place_of_production(spark: SparkSession, config: Config, table: Table) -> None:
    """Raise TargetError where the catalogs of a development environment and of production put a view's table into one folder."""
    theirs = production_place(config, table.label)
    if theirs is not None and theirs.name is not None and table.name is not None and location(spark, table) == location(spark, theirs):
        raise TargetError(
            f"The table of view {table} of environment {config.environment!r} would be in the folder of production's, {theirs.name}. "
            "Nothing was written. Give the environment's schema another LOCATION, or the environment another `target`."
        )
