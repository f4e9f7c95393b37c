"""Tables and views may have a schema in their names, as dbt and catalogs have: silver.accounts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lake.config.models import Config
from lake.config.reads import reads
from lake.core.results import RefreshResult
from tests.lakes import TestLake, multiset

QUERIES = {
    "alone": "SELECT owner, count(*) AS n FROM silver.accounts GROUP BY owner",
    "by its whole name": "SELECT silver.accounts.id, accounts.owner FROM Silver.Accounts WHERE silver.accounts.id > 1",
    "under an alias": "SELECT a.id, o.id AS other FROM silver.accounts a LEFT JOIN bronze.accounts AS o ON a.owner = o.owner",
    "of two schemas": "SELECT silver.accounts.id, bronze.accounts.owner FROM silver.accounts JOIN bronze.accounts USING (id)",
    "in a subquery": "SELECT id FROM accounts WHERE id IN (SELECT id FROM silver.accounts WHERE owner = 'a')",
    "in a CTE": "WITH accounts AS (SELECT id FROM silver.accounts) SELECT a.id, count(b.id) AS n FROM accounts a "
    "LEFT JOIN bronze.accounts b ON a.id = b.id GROUP BY a.id",
    "as all of its columns": "SELECT accounts.* FROM silver.accounts "
    "WHERE EXISTS (SELECT 1 FROM main.bronze.accounts b WHERE b.id = accounts.id)",
}


@pytest.fixture
def accounts(lake: TestLake) -> TestLake:
    rows = "SELECT * FROM VALUES (1, 'a'), (2, 'a'), (2, 'b'), (NULL, 'b') AS t(id, owner)"
    for name in ("silver", "bronze", "plain"):
        lake.table(name, rows)
    lake.tables = {"silver.accounts": {"path": "silver"}, "bronze.accounts": {"path": "bronze"}, "accounts": {"path": "plain"}}
    lake.tables["main.bronze.accounts"] = {"path": "bronze"}
    return lake


def change(lake: TestLake) -> None:
    for table in ("silver", "bronze", "plain"):
        lake.spark.sql(f"INSERT INTO delta.`{lake.path(table)}` VALUES (3, 'a'), (NULL, 'a')")
        lake.spark.sql(f"UPDATE delta.`{lake.path(table)}` SET id = 4, owner = 'c' WHERE id = 2 AND owner = 'b'")
        lake.spark.sql(f"DELETE FROM delta.`{lake.path(table)}` WHERE id = 1")


@pytest.mark.slow
@pytest.mark.parametrize("which", QUERIES)
def test_a_query_names_tables_with_their_schema(accounts: TestLake, which: str) -> None:
    accounts.view("gold.v", QUERIES[which])
    modes = [accounts.refresh("gold.v").mode]
    change(accounts)
    modes.append(accounts.refresh("gold.v").mode)
    assert modes == ["build", "incremental"]
    assert accounts.open.verify("gold.v").exact
    assert multiset(accounts.open.read("gold.v")) == plain(accounts, QUERIES[which])


def plain(lake: TestLake, query: str) -> object:
    """The query by Spark alone, on schemas of its own catalog that hold views of the tables."""
    session = lake.spark.newSession()
    names = {"silver": "silver", "bronze": "bronze"}
    try:
        for schema, table in names.items():
            session.sql(f"CREATE SCHEMA {schema}")
            session.sql(f"CREATE VIEW {schema}.accounts AS SELECT * FROM delta.`{lake.path(table)}`")
        session.read.format("delta").load(lake.path("plain")).createOrReplaceTempView("accounts")
        return multiset(session.sql(query.replace("main.bronze", "spark_catalog.bronze")))
    finally:
        for schema in names:
            session.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def test_a_view_reads_a_view_of_another_schema(accounts: TestLake, module: Callable[[str, str], None]) -> None:
    module("of_schemas", "def f(silver_accounts, gold_v):\n    return gold_v.join(silver_accounts, 'owner', 'left_semi')\n")
    accounts.view("gold.v", QUERIES["alone"])
    accounts.view("top.v", "SELECT max(n) AS most FROM gold.v WHERE gold.v.n > 0 GROUP BY owner")
    accounts.view("top.f", function="of_schemas:f")
    accounts.open.refresh_all()
    change(accounts)
    results: list[RefreshResult] = accounts.open.refresh_all()
    assert [(r.view, r.mode) for r in results] == [("gold.v", "incremental"), ("top.v", "incremental"), ("top.f", "incremental")]
    for view in accounts.views:
        assert accounts.open.verify(view).exact
    assert {s.source for s in accounts.open.status("top.f")} == {"silver.accounts", "gold.v"}


def test_a_view_with_a_schema_has_a_table_in_that_schema() -> None:
    config = Config(target="main.views", views={"v": {"query": "SELECT 1"}, "gold.v": {"query": "SELECT 1"}})
    assert (config.view_name("v"), config.view_name("gold.v")) == ("main.views.v", "main.gold.v")
    with pytest.raises(ValueError, match=r"has more parts than schema\.view"):
        Config(views={"a.b.c": {"query": "SELECT 1"}})


def test_airflow_finds_what_a_view_reads_without_a_jvm(accounts: TestLake) -> None:
    accounts.view("gold.v", QUERIES["in a CTE"])
    accounts.view("top.v", "SELECT x.n FROM gold.v AS x JOIN silver.accounts USING (id)")
    config = Config.model_validate(accounts.config)
    assert {"silver.accounts", "bronze.accounts"} <= {*reads("gold.v", config).names}
    assert {*reads("top.v", config).names} == {"silver.accounts", "gold.v"}
