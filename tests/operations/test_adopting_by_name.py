"""Tables that are adopted by their names in Spark's catalog: where they are, renamed, or refused with statements that are then run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lake.core.adoption import Adoption
from lake.errors import ConcurrencyError, LakeError, TargetError
from tests.lakes import TestLake, multiset

QUERY = "SELECT k, sum(n) AS s FROM t GROUP BY k"
AT = {"t": 0}


@pytest.fixture
def named(lake: TestLake) -> Iterator[TestLake]:
    """Views in one schema, and a job's in another one; a table with NULLs and duplicates."""
    lake.table("t", "SELECT CAST(nullif(id % 4, 3) AS INT) AS k, nullif(id % 5, 3) AS n FROM range(16)")
    for schema in ("adopted_views", "jobs"):
        lake.spark.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        lake.spark.sql(f"CREATE SCHEMA {schema}")
    lake.others["target"] = {"schema": "adopted_views"}
    yield lake
    for schema in ("adopted_views", "jobs"):
        lake.spark.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def job(lake: TestLake, name: str, folder: str = "") -> None:
    """A table of the view's rows, as a job makes it."""
    where = f"LOCATION '{folder}'" if folder else ""
    lake.spark.sql(f"CREATE TABLE {name} USING delta {where} AS {QUERY.replace(' t ', ' delta.`' + lake.path('t') + '` ')}")


def goes_on(lake: TestLake, view: str) -> None:
    """The view is exact after another commit."""
    lake.sql("INSERT INTO {t} VALUES (NULL, 7), (9, NULL)")
    assert lake.refresh(view).mode == "incremental"
    assert multiset(lake.open.read(view)) == lake.truth(view)


def test_a_table_is_adopted_where_it_is_or_renamed_within_its_schema(named: TestLake) -> None:
    job(named, "adopted_views.there")
    job(named, "adopted_views.other", named.path("jobs/other"))
    named.view("there", QUERY)
    named.view("renamed", QUERY)
    lake = named.open

    def written(_: Adoption) -> bool:
        named.spark.sql("INSERT INTO adopted_views.there VALUES (77, 7)")
        return True

    with pytest.raises(ConcurrencyError, match=r"wrote into adopted_views.there .* was at version 0, and is at 1"):
        lake.adopt("there", at=AT, may=written)
    named.spark.sql("DELETE FROM adopted_views.there WHERE k = 77")
    found = lake.adopt("there", "spark_catalog.adopted_views.there", AT)
    assert (found.state, found.moves, found.rows_rewritten) == ("adopted", False, 4)
    found = lake.adopt("renamed", "adopted_views.other", AT)
    assert (found.state, found.moves, found.place) == ("adopted", True, "adopted_views.renamed")
    tables = {row.tableName for row in named.spark.sql("SHOW TABLES IN adopted_views").collect()}
    assert tables == {"there", "renamed"}
    assert Path(named.path("jobs/other/_delta_log")).exists()  # the folder of an external table stays
    goes_on(named, "there")
    assert named.refresh("renamed").mode == "incremental"
    assert multiset(lake.read("renamed")) == named.truth("renamed")


def statements(refused: str) -> list[str]:
    """The SQL statements that a message names, in their order."""
    return re.findall(r"(?:CREATE|DROP) TABLE [\w.]+(?: USING delta (?:LOCATION '[^']+'|AS SELECT \* FROM [\w.]+))?", refused)


def refused(named: TestLake, view: str, table: str) -> str:
    with pytest.raises(TargetError) as error:
        named.open.adopt(view, table, AT, dry_run=True)
    return str(error.value)


def test_what_can_not_be_moved_in_one_step_is_refused_with_statements_that_work(named: TestLake) -> None:
    """A managed and an external table of another schema; a folder, for views in a schema; a managed table, for views in folders."""
    job(named, "jobs.managed")
    job(named, "jobs.external", named.path("jobs/external"))
    job(named, f"delta.`{named.path('jobs/folder')}`")
    for view in ("managed", "external", "folder", "moved"):
        named.view(view, QUERY)
    lake: Any = named.open
    said = refused(named, "managed", "jobs.managed")
    assert (
        "jobs.managed can't become adopted_views.managed: Spark renames no table from one schema to another. Nothing was written." in said
    )
    (copied,) = statements(said)
    named.spark.sql(copied)
    assert lake.adopt("managed", at=AT).state == "adopted"
    made, dropped = statements(refused(named, "external", "jobs.external"))
    named.spark.sql(made)
    assert lake.adopt("external", at=AT).state == "adopted"
    named.spark.sql(dropped)
    (made,) = statements(refused(named, "folder", named.path("jobs/folder")))
    named.spark.sql(made)
    assert lake.adopt("folder", at=AT).state == "adopted"
    for view in ("managed", "external", "folder"):
        assert multiset(lake.read(view)) == named.truth(view)

    named.others = {}
    named._open = None
    said = refused(named, "moved", "jobs.managed")
    assert "After that (not before: it would delete the rows), let the name lead to the view" in said
    folder = re.search(r"--table (\S+)\. After", said)
    assert folder is not None
    assert named.open.adopt("moved", folder[1], AT).state == "adopted"
    for statement in statements(said):
        named.spark.sql(statement)
    goes_on(named, "moved")
    assert named.spark.table("jobs.managed").count() == named.open.read("moved").count() == 5


def test_names_of_no_delta_table_are_refused(named: TestLake) -> None:
    named.view("v", QUERY)
    named.spark.sql("CREATE TABLE jobs.files USING parquet AS SELECT 1 AS k, 2L AS s")
    named.spark.sql("CREATE VIEW jobs.seen AS SELECT 1 AS k, 2L AS s")
    named.spark.sql("CREATE TABLE default.adopted_one_word (k INT, s BIGINT) USING delta")
    refusals: list[tuple[str, type[LakeError], str]] = [
        ("jobs.files", TargetError, "There is no Delta table at jobs.files.*CONVERT TO DELTA jobs.files"),
        ("jobs.seen", TargetError, "jobs.seen is a view of the catalog, not a table"),
        ("jobs.none", TargetError, "There is no Delta table at .*/jobs.none.*The catalog has no table of that name either"),
        ("adopted_one_word", TargetError, "There is no Delta table at .*write --table default.adopted_one_word"),
    ]
    try:
        for table, kind, message in refusals:
            with pytest.raises(kind, match=message):
                named.open.adopt("v", table, AT)
    finally:
        named.spark.sql("DROP TABLE default.adopted_one_word")
