"""The source tables of the warehouse as Delta tables, and its batches: a historical load, then as many increments as wanted.

The data model is TPC-DI's, a brokerage's; the rows are our own, in the same proportions. Beyond the specification, employees move, prices
are corrected and the newswire goes on in the increments, so that every dimension changes.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from examples.delta import write
from examples.warehouse import market, people, trading
from examples.warehouse.shape import Shape

_MADE = {
    "hr": people.employees,
    "customer_mgmt": people.customer_actions,
    "prospect": people.prospects,
    "finwire": market.finwire,
    "daily_market": market.daily_market,
    "trade": trading.trades,
    "trade_history": trading.trade_history,
    "cash_transaction": trading.cash_transactions,
    "holding_history": trading.holding_history,
    "watch_history": trading.watch_history,
}
"""The tables that change: their rows by batch."""


class Warehouse:
    """The tables under a folder, and what happens to them."""

    def __init__(self, spark: SparkSession, root: Path, shape: Shape) -> None:
        self.spark, self.root, self.shape = spark, root, shape

    def load(self) -> None:
        """Batch 1, the historical load: make all tables, with their change data feed on."""
        for table, query in market.reference(self.shape).items():
            write(self.spark.sql(query).coalesce(1), str(self.root / table))
        for table, rows in _MADE.items():
            write(self.spark.sql(rows(self.shape, 1)).coalesce(1 + self.shape.trades // 100_000), str(self.root / table))

    def bring(self, batch: int) -> None:
        """An increment (2, 3, ...): a hundredth of new rows in each table that changes, and updates and deletes of rows there."""
        if batch < 2:
            raise ValueError(f"An increment's number is 2 or more, not {batch}; `load` makes the first batch.")
        self._change(batch)
        for table, rows in _MADE.items():
            write(self.spark.sql(rows(self.shape, batch)).coalesce(1), str(self.root / table), "append")

    def _change(self, batch: int) -> None:
        """What happens to rows that were there: trades end, employees move, prospects are known better or go, prices are corrected."""
        self._merge("trade", trading.ended_trades(self.shape, batch), "there.t_id = new.t_id", "UPDATE SET *")
        self._merge("hr", people.moved_employees(self.shape, batch), "employee_id = id", "UPDATE SET employee_branch = branch")
        agency = "agency_id = concat('AG', lpad(id, 9, '0'))"
        known = "UPDATE SET there.income = new.income, there.net_worth = new.net_worth, there.credit_rating = new.credit_rating"
        self._merge("prospect", people.marketed_again(self.shape, batch), agency, known)
        self._merge("prospect", people.gone_prospects(self.shape, batch), agency, "DELETE")
        priced = "there.dm_date = new.dm_date AND there.dm_s_symb = new.dm_s_symb"
        corrected = "UPDATE SET there.dm_close = there.dm_close + 1, there.dm_high = there.dm_high + 2"
        self._merge("daily_market", market.corrected_prices(self.shape, batch), priced, corrected)

    def _merge(self, table: str, rows: str, condition: str, change: str) -> None:
        self.spark.sql(f"MERGE INTO delta.`{self.root / table}` AS there USING ({rows}) AS new ON {condition} WHEN MATCHED THEN {change}")
