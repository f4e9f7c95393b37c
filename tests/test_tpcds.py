"""TPC-DS's tables and queries: the generator's rows fit the declared columns and keys, and explain says what it said of some queries.

All queries, and their refreshes, are benchmarks/tpcds.py's, which takes longer than a test may.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import yaml
from pyspark.sql import SparkSession

from examples.tpcds.draw import rows, schema
from examples.tpcds.lake import Explaining, queries
from examples.tpcds.sales import Sizes
from examples.tpcds.schema import COLUMNS, KEYS
from examples.tpcds.tables import dimensions, facts, later

EXAMPLE = Path(__file__).parents[1] / "examples" / "tpcds"
SIZES = Sizes(tickets=60, catalog_orders=40, web_orders=40, inventory=500)
POINTS_TO = {
    "store_sales": {"ss_item_sk": "item", "ss_customer_sk": "customer", "ss_sold_date_sk": "date_dim", "ss_store_sk": "store"},
    "catalog_sales": {"cs_item_sk": "item", "cs_bill_customer_sk": "customer", "cs_sold_date_sk": "date_dim", "cs_promo_sk": "promotion"},
    "web_sales": {"ws_item_sk": "item", "ws_bill_customer_sk": "customer", "ws_ship_date_sk": "date_dim", "ws_web_site_sk": "web_site"},
    "customer": {"c_current_addr_sk": "customer_address", "c_current_cdemo_sk": "customer_demographics"},
    "household_demographics": {"hd_income_band_sk": "income_band"},
}


@pytest.fixture(scope="module")
def tables() -> Mapping[str, pa.Table]:
    return {**dimensions(SIZES), **facts(SIZES)}


def _set(table: pa.Table, column: str) -> set[object]:
    return set(table[column].drop_null().to_pylist())


def test_the_generator_makes_every_table_with_its_columns(tables: Mapping[str, pa.Table]) -> None:
    assert set(tables) == set(COLUMNS)
    assert {name: table.schema for name, table in tables.items()} == {name: schema(name) for name in COLUMNS}
    assert [name for name, table in tables.items() if not table.num_rows] == []


def test_primary_keys_are_unique_and_never_null(tables: Mapping[str, pa.Table]) -> None:
    for name, key in KEYS.items():
        found = tables[name].select(list(key))
        assert sum(column.null_count for column in found.columns) == 0, name
        assert found.group_by(list(key)).aggregate([]).num_rows == found.num_rows, name


def test_later_sales_have_new_keys_and_returns_are_of_sales(tables: Mapping[str, pa.Table]) -> None:
    new = facts(later(SIZES, 1))
    for kind, number in (("store", "ticket_number"), ("catalog", "order_number"), ("web", "order_number")):
        sold, back, column = f"{kind}_sales", f"{kind}_returns", f"{kind[0]}s_{number}"
        assert not _set(tables[sold], column) & _set(new[sold], column)
        for made in (tables, new):
            keys = [set(zip(*(made[t][c].to_pylist() for c in KEYS[t]), strict=True)) for t in (sold, back)]
            assert keys[1] <= keys[0]


def test_foreign_keys_name_rows_and_are_null_in_some(tables: Mapping[str, pa.Table]) -> None:
    for name, columns in POINTS_TO.items():
        for column, target in columns.items():
            assert _set(tables[name], column) <= _set(tables[target], KEYS[target][0]), (name, column)
    assert tables["store_sales"]["ss_promo_sk"].null_count > 0
    assert pc.count_distinct(tables["customer"]["c_last_name"]).as_py() < tables["customer"].num_rows / 10


def test_the_same_rows_are_made_again(tables: Mapping[str, pa.Table]) -> None:
    assert facts(SIZES)["web_returns"].equals(tables["web_returns"])


def test_columns_that_a_table_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match="no columns"):
        rows("reason", {"r_reason_sk": [1], "r_reasons": ["x"]})


def test_every_query_is_a_view_over_declared_tables() -> None:
    found = queries()
    assert {int(re.findall(r"\d+", name)[0]) for name in found} == set(range(1, 100))
    assert len(found) == 103
    declared = yaml.safe_load((EXAMPLE / "lakejoin.yml").read_text())
    assert {name: tuple(body["primary_key"]) for name, body in declared["tables"].items()} == KEYS
    assert set(declared["views"]) == {file.stem for file in (EXAMPLE / "queries").glob("*.sql")}


INCREMENTAL = ("q01", "q03", "q06")
"""Averages compared with each row, an aggregate of a join, a subquery of one row by DISTINCT."""


@pytest.mark.slow
@pytest.mark.parametrize("query", INCREMENTAL)
def test_explain_calls_these_incremental(spark: SparkSession, query: str) -> None:
    found = Explaining(spark).explained(query)
    assert (found.answer, found.reason) == ("incremental", "")
