"""What a refresh keeps of what it computed: once, on the driver where it is little."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lake.catalyst import Catalyst
from lake.relations.reading import Reading
from lake.session import own_session
from tests.relations.laws import ListedSources


@pytest.mark.parametrize(("rows", "local"), [(10, False), (2, True), (0, True)])
def test_after_many_rows_whatever_is_kept_is_computed_once(spark: SparkSession, rows: int, local: bool) -> None:
    seen = spark.sparkContext.accumulator(0)

    def note(value: int) -> int:
        seen.add(1)
        return value

    own = own_session(spark)
    frame = own.range(rows).select(F.udf(note, "long")("id").alias("c1"))
    with Reading(Catalyst(own), ListedSources(own, {}, {}, {}), local_limit=3) as reading:
        reading.expect_many()
        kept = reading.keep(frame)
        found = [] if kept is None else sorted(row[0] for row in [*kept.frame.collect(), *kept.frame.collect()])
    assert found == sorted([*range(rows), *range(rows)])
    assert seen.value == rows
    assert (kept is None) == (rows == 0)
    assert kept is None or (kept.count, kept.local) == (rows, local)
