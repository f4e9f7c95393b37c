"""TPC-H's tables from tpchgen-cli, and changes of them: the standard's two refresh functions, and updates that it does not have.

Orders use 8 of each 32 keys, so that the standard's new orders fit in between; so do these, made after orders that are there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from examples.delta import write

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
_ORDERED = (("lineitem", "l_orderkey"), ("orders", "o_orderkey"))


def generate(folder: Path, scale: float) -> None:
    """The eight tables as Parquet files at a scale factor (1 is about a gigabyte)."""
    tool = Path(sys.executable).with_name("tpchgen-cli")
    subprocess.run([str(tool), "parquet", "-s", str(scale), f"--output-dir={folder}"], check=True, capture_output=True)


class Tpch:
    """The Delta tables under a folder, and what happens to them."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root = spark, root

    def load(self, parquet: Path, files: int = 1) -> None:
        """Make the tables from the generated files, with their change data feed on; the big ones in so many files, by key."""
        for table in TABLES:
            frame = self.spark.read.parquet(f"{parquet}/{table}.parquet")
            if files > 1 and table in ("orders", "lineitem", "partsupp", "customer", "part"):
                frame = frame.repartitionByRange(files, frame.columns[0])
            write(frame, str(self.root / table))

    def path(self, table: str) -> str:
        return f"delta.`{self.root / table}`"

    def insert_orders(self, share: float, step: int) -> None:
        """Refresh function 1: new orders (a share of those there), each with its line items."""
        for table, key in _ORDERED:
            columns = f"{key} + {8 * (1 + step % 3)} AS {key}, * EXCEPT ({key})"
            self.spark.sql(f"INSERT INTO {self.path(table)} SELECT {columns} FROM {self.path(table)} WHERE {_made(key, share, step)}")

    def delete_orders(self, share: float, step: int) -> None:
        """Refresh function 2: a share of the orders goes, with its line items; others than those that new ones are made after."""
        for table, key in _ORDERED:
            self.spark.sql(f"DELETE FROM {self.path(table)} WHERE {_made(key, share, -1 - step)}")

    def update(self, share: float, step: int) -> None:
        """Prices of line items, segments and balances of customers, brands of parts and costs of their supply change."""
        for table, key, change in (
            ("lineitem", "l_orderkey", "l_extendedprice = l_extendedprice + 10, l_quantity = l_quantity + 1"),
            ("customer", "c_custkey", "c_mktsegment = 'BUILDING', c_acctbal = c_acctbal + 100, c_nationkey = (c_nationkey + 1) % 25"),
            ("part", "p_partkey", "p_brand = 'Brand#23', p_container = 'MED BOX', p_size = 15, p_type = 'STANDARD PLATED BRASS'"),
            ("partsupp", "ps_partkey", "ps_supplycost = ps_supplycost / 2, ps_availqty = ps_availqty + 1"),
        ):
            self.spark.sql(f"UPDATE {self.path(table)} SET {change} WHERE {_hashed(key, share, step + 2)}")


def _made(key: str, share: float, step: int) -> str:
    """A share of the orders that the generator made, another one at each step."""
    return f"({key} & 31) < 8 AND {_hashed(key, share, step)}"


def _hashed(key: str, share: float, step: int) -> str:
    return f"pmod(xxhash64({key}, {step}), 1000000) < {round(share * 1_000_000)}"
