"""Stores the results of checks in `quality_results`, a Delta table beside the views with one row for each expectation and run.

Decisions about findings (snooze, accept) are rows of the same table, so that one query shows both.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import asdict, fields
from datetime import UTC, datetime

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lake import Lakehouse
from lake.quality.measurements import MOST_ROWS, PER_FINDING, READ_BACK, Row, in_order

_RANK = "__lakejoin_rank"
_adding = threading.Lock()
"""Held during an append: of two that make the table, one would fail."""
_TYPES = {"int | None": T.LongType(), "float | None": T.DoubleType(), "float": T.DoubleType(), "datetime": T.TimestampType()}
SCHEMA = T.StructType(
    [
        T.StructField(f.name, T.TimestampType() if "datetime" in str(f.type) else _TYPES.get(str(f.type), T.StringType()))
        for f in fields(Row)
    ]
)


class QualityResults:
    """The table of results of a lakehouse."""

    def __init__(self, lake: Lakehouse) -> None:
        self._lake = lake
        self.path = f"{lake.config.quality_path}/quality_results"

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows, in one commit."""
        found = [tuple(asdict(row).values()) for row in rows]
        if found:
            frame = self._lake.spark.createDataFrame(found, SCHEMA).coalesce(1)
            with _adding:
                frame.write.format("delta").mode("append").option("mergeSchema", "true").save(self.path)

    def frame(self) -> DataFrame | None:
        """All rows; None before the first check."""
        if not self._lake.folder(f"{self.path}/_delta_log").exists:
            return None
        return self._lake.spark.read.format("delta").load(self.path)

    def recent(self, per_finding: int = PER_FINDING) -> list[Row]:
        """The newest rows of each finding in the last ninety days, oldest first, and snoozes that have not ended.

        Of each finding at most `per_finding` results that passed or failed, as many others, and as many decisions of each kind; at most
        MOST_ROWS in all, the newest. Only the newest of each carries its samples.
        """
        frame = self.frame()
        if frame is None:
            return []
        now, names = datetime.now(UTC), [f.name for f in fields(Row)]
        found = frame.where((F.col("time") > F.lit(now - READ_BACK)) | ((F.col("kind") == "snooze") & (F.col("until") > F.lit(now))))
        missing = [F.lit(None).cast(SCHEMA[n].dataType).alias(n) for n in names if n not in frame.columns]  # unknown to an older Lakejoin
        decided = F.coalesce(F.col("status").isin("passed", "failed"), F.lit(False))
        newest = Window.partitionBy("finding", "kind", decided).orderBy(F.col("time").desc())
        ranked = found.select("*", *missing).withColumn(_RANK, F.row_number().over(newest)).where(F.col(_RANK) <= per_finding)
        slim = ranked.withColumn("samples", F.when(F.col(_RANK) == 1, F.col("samples")).otherwise(""))
        rows = slim.orderBy(F.col("time").desc()).limit(MOST_ROWS).select(*names).collect()
        return in_order(Row(**r.asDict()) for r in rows)
