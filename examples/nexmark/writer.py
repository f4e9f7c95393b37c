"""Nexmark as a live stream: so many events a second written to Delta tables, beside Spark (by delta-rs), with what else sellers do.

Each second: its new persons and auctions; its bids, where a bidder who has bid on the auction before raises the bid; some auctions
change their reserve, and every few seconds some bids are withdrawn.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from examples.nexmark.generator import Nexmark

TABLES = ("person", "auction", "bid")
_LOT = 2_000
"""Auctions of one partition of the bids: half a minute's at 1,000 events a second."""


def make_tables(spark: SparkSession, stream: Nexmark, events: int, root: Path) -> None:
    """The tables before the stream begins, in folders of `root`. Without deletion vectors: delta-rs has none.

    Bids are kept by `lot`, some auctions each, so that a second's new and raised bids rewrite the files of the newest auctions only.
    """
    tables = {"person": stream.person(spark, 0, events), "auction": stream.auction(spark, 0, events)}
    writers = {name: rows.write for name, rows in tables.items()}
    writers["bid"] = _in_lots(stream.bid(spark, 0, events)).write.partitionBy("lot")
    for name, writer in writers.items():
        writer.format("delta").option("delta.enableChangeDataFeed", "true").save(str(root / name))


def _in_lots(bids: DataFrame) -> DataFrame:
    return bids.withColumn("lot", F.floor(F.col("auction") / _LOT))


class Writer(threading.Thread):
    """Writes the events first, first+1, ... at `rate` a second for some seconds, then ends, or when `ended` is set; `late`: seconds that it
    is behind."""

    def __init__(self, root: Path, stream: Nexmark, first: int, rate: int, seconds: int) -> None:
        super().__init__(name="writer", daemon=True)
        self.root, self.rate, self.seconds = root, rate, seconds
        self.written, self.late, self.ended = 0, 0.0, threading.Event()
        self._stream, self._first = stream, first
        self._events: dict[str, pa.Table] = {}

    def prepare(self, spark: SparkSession) -> None:
        """Generate all events, so that writing takes no Spark."""
        last = self._first + self.rate * self.seconds
        self._events = {"bid": _in_lots(self._stream.bids_by_second(spark, self._first, last, self.rate)).toArrow()}
        for table in ("person", "auction"):
            events = getattr(self._stream, table)(spark, self._first, last)
            self._events[table] = events.withColumn("second", self._stream.second(self._first, self.rate)).toArrow()

    def run(self) -> None:
        started = time.monotonic()
        for second in range(self.seconds):
            self.write(second)
            self.written += self.rate
            self.late = time.monotonic() - started - (second + 1)
            if self.ended.wait(max(0.0, -self.late)):
                return

    def write(self, second: int) -> None:
        """The commits of one second."""
        for table in ("person", "auction"):
            write_deltalake(self._path(table), self._of(table, second), mode="append")
        bids = self._of("bid", second)
        on = f"t.lot >= {pc.min(bids['lot'])} AND t.lot = s.lot AND t.auction = s.auction AND t.bidder = s.bidder"
        if bids:
            merge = DeltaTable(self._path("bid")).merge(bids, on, source_alias="s", target_alias="t")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
        DeltaTable(self._path("auction")).update(updates={"reserve": "reserve + 1"}, predicate=f"id % 997 = {second % 997}")
        if second % 5 == 4:
            DeltaTable(self._path("bid")).delete(f"bidder % 211 = {second % 211} AND auction % 7 = 3")

    def _of(self, table: str, second: int) -> pa.Table:
        events = self._events[table]
        return events.filter(pc.equal(events["second"], second)).drop_columns("second")

    def _path(self, table: str) -> str:
        return str(self.root / table)
