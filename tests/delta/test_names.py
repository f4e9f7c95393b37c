"""Tables in folders with any characters in their names are read, published, compacted and vacuumed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lake.core.sql import quoted
from lake.delta.newest_version import newest_version
from lake.delta.tables import Table
from lake.errors import TargetError
from lake.operations.maintenance import maintain
from tests.lakes import TestLake


def test_a_view_in_a_folder_that_delta_can_not_create_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    lake = TestLake(spark, tmp_path)
    lake.others = {"target": str(tmp_path / "a`b")}
    lake.table("t", "SELECT 1 AS id", key=["id"])
    lake.view("v", "SELECT id FROM t")
    with pytest.raises(TargetError, match=r"path has a backtick\. Set another target"):
        lake.open.refresh("v")


@pytest.mark.parametrize("name", ["a`b", "a%20b", "a b``c `#d%"])
def test_a_view_on_tables_in_such_a_folder_is_exact(spark: SparkSession, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    lake = TestLake(spark, folder)
    lake.others = {"target": str(tmp_path / name.replace("`", ""))}
    path = f"delta.{quoted(str(folder / 't'))}"
    spark.sql(f"CREATE TABLE {path} USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true) AS SELECT id, id % 3 AS x FROM range(9)")
    lake.tables["t"] = {"path": "t", "primary_key": ["id"]}
    lake.view("v", "SELECT x, count(*) AS n FROM t GROUP BY x")
    opened = lake.open
    assert opened.refresh("v").mode == "build"
    spark.sql(f"UPDATE {path} SET x = 7 WHERE id = 4")
    assert opened.refresh("v").mode == "incremental"
    assert opened.verify("v").exact
    assert newest_version(str(folder / "t")) == newest_version(str(folder / "t"), 0) == 1
    for each in (Table("t", str(folder / "t"), None), opened.path.table("v")):
        assert maintain(spark, each, {}, datetime.now(UTC), dry_run=False).kept == ""
    assert opened.verify("v").exact
