"""Begins a development environment's table of a view as a shallow clone of production's: its rows and its stamp, in one commit. No file is
copied.

The rows' files stay production's: they are readable until production's table no longer needs them and is vacuumed.
"""

from __future__ import annotations

from lake.delta.tables import Table, reason
from lake.errors import TargetError
from lake.refresh.decide import Decision
from lake.spark.failures import SPARK_ERRORS
from lake.spark.session import settings
from lake.views.table import Published


def clone(decision: Decision, place: Table, theirs: Published) -> None:
    """Make the environment's table of a view. `decision`: of the environment; `place`, `theirs`: production's table, and what is published
    there.

    Raises TargetError where it can't be made (Delta refuses a version whose commit is older than the table's retention).
    """
    decision.refuse_unwanted()
    assert theirs.stamp is not None
    stamp = theirs.stamp.taken_over(base=-1, mode="copy")
    version = theirs.pinned.version.number
    try:
        with settings(decision.spark, {"spark.databricks.delta.commitInfo.userMetadata": stamp.to_json()}):
            decision.spark.sql(f"CREATE TABLE {decision.table.sql} SHALLOW CLONE {place.sql} VERSION AS OF {version}")
    except SPARK_ERRORS as error:
        raise TargetError(f"The table of view {place} can't be cloned: {reason(error)}. Nothing was written.") from error
