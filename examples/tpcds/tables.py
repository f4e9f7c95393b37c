"""TPC-DS's 24 tables, of our own generator: deterministic, without a network, at the scale of a test."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from examples.delta import write
from examples.tpcds import calendar, goods, people, places, sales
from examples.tpcds.changes import statements
from examples.tpcds.sales import Sizes
from examples.tpcds.schema import COLUMNS


def dimensions(sizes: Sizes) -> dict[str, pa.Table]:
    """The tables that sales point to, and the inventory."""
    return {
        "date_dim": calendar.dates(),
        "time_dim": calendar.times(),
        "item": goods.items(sizes.items),
        "customer": people.customers(sizes.customers, sizes.addresses),
        "customer_address": people.addresses(sizes.addresses),
        "customer_demographics": people.demographics(),
        "household_demographics": people.households(),
        "income_band": people.incomes(),
        "reason": places.reasons(),
        "ship_mode": places.ship_modes(),
        "store": places.stores(),
        "call_center": places.call_centers(),
        "web_site": places.web_sites(),
        "web_page": places.web_pages(),
        "warehouse": places.warehouses(),
        "catalog_page": places.catalog_pages(),
        "promotion": places.promotions(),
        "inventory": goods.inventory(sizes.inventory, sizes.items),
    }


def facts(sizes: Sizes) -> dict[str, pa.Table]:
    """Sales and returns of the three channels."""
    store = sales.store(sizes)
    return {**store, **sales.catalog(sizes, store["store_returns"]), **sales.web(sizes)}


def later(sizes: Sizes, step: int) -> Sizes:
    """The sizes of what is sold in a round of changes (1, 2, ...): a fiftieth, with numbers of its own."""
    orders = {name: max(2, getattr(sizes, name) // 50) for name in ("tickets", "catalog_orders", "web_orders")}
    return replace(sizes, start=1_000_000 * step, **orders)


class Tpcds:
    """Some of the Delta tables (by default all) under a folder, and what happens to them."""

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        tables: Collection[str] = tuple(COLUMNS),
        sizes: Sizes = Sizes(),  # noqa: B008 (it is immutable)
    ) -> None:
        self.spark, self.root, self.tables, self.sizes = spark, root, tables, sizes

    def load(self) -> None:
        """Make the tables."""
        for table, made in {**dimensions(self.sizes), **facts(self.sizes)}.items():
            self._write(table, made, "errorifexists")

    def change(self, step: int) -> None:
        """A round of changes (1, 2, ...): new sales and returns, then updates and deletes in facts and dimensions."""
        for table, made in facts(later(self.sizes, step)).items():
            self._write(table, made, "append")
        for table, statement in statements(step):
            if table in self.tables:
                self.spark.sql(statement.replace(f"{{{table}}}", f"delta.`{self.root / table}`"))

    def _write(self, table: str, made: pa.Table, mode: str) -> None:
        if table not in self.tables:
            return
        file = self.root / ".made" / f"{table}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(made, file)
        write(self.spark.read.parquet(str(file)), str(self.root / table), mode)
        file.unlink()
