"""Rows deleted by position, against Delta's own DELETE of the same rows."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F

from lake.deltacommit import FILE, POSITION, Transaction, with_positions
from lake.tables import Table
from tests.lakes import TestLake, multiset

STEPS = ("id % 10 = 3", "id BETWEEN 200 AND 299", "id % 10 IN (3, 4) OR id = 250", "id < 100", "true")
"""Some rows of each of three files; a whole file; rows of which some are gone already; a whole file under a vector; all that is left."""


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_rows_go_by_position_as_delta_deletes_them(lake: TestLake, mapping: str) -> None:
    options = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": mapping}
    for name in ("own", "deltas"):
        rows = lake.spark.range(0, 300, 1, 3).selectExpr("id", "id % 7 AS v")
        rows.write.format("delta").options(**options).save(lake.path(name))
        lake.tables[name] = {"path": name}
    log = Table("own", lake.path("own"), None).log(lake.spark)
    for number, step in enumerate(STEPS):
        head = log.head()
        before = head.rows().count()
        doomed = with_positions(head.rows()).where(step).select(FILE, POSITION)
        places = [tuple(row) for row in doomed.collect()]
        doomed = lake.spark.createDataFrame(places, "f string, p long").toDF(FILE, POSITION)
        transaction = Transaction(head)
        assert transaction.delete(doomed, local=number % 2 == 0) == len(places)
        transaction.commit("test", number, "{}", {"deleted": len(places)})
        lake.sql(f"DELETE FROM {{deltas}} WHERE {step}")
        left = log.head()
        expected = lake.spark.read.format("delta").load(lake.path("deltas"))
        assert multiset(left.rows()) == multiset(expected)
        assert left.rows().count() == before - len(places) == left.count
        assert left.files == len(expected.select(F.input_file_name()).distinct().collect())
        if mapping == "none" and left.files:
            assert DeltaTable(lake.path("own")).version() == left.version.number  # another reader opens what was written
