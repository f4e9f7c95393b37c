"""What a user would do instead of a refresh, with Spark's ordinary settings: adaptive execution, a shuffle partition a core."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Protocol

from delta.tables import DeltaTable
from pyspark.sql import DataFrame

from benchmarks.measure import DATA, plain_session
from benchmarks.nexmark import QUERIES, Bench, twins
from benchmarks.streamjoin import ROCKSDB, stream_values
from lake.refresh.publish import FILE_ROWS

_TARGETS = DATA / "peers"


class Peer(Protocol):
    """One that brings a table of its own up to date."""

    name: str

    def follow(self) -> None:
        """Take up what has changed since the last time."""


class Recompute:
    """The query written whole, in place of the table."""

    name = "recompute"

    def __init__(self, bench: Bench, view: str) -> None:
        self._bench, self._view = bench, view

    def follow(self) -> None:
        self._write(self._bench.result(self._view), "recomputed")

    def lay_out(self) -> None:
        """The query written as a build lays its files out (decision 17): rows of each task sorted by the key, cut into files."""
        rows = self._bench.result(self._view)
        detail = self._bench.spark.sql(f"DESCRIBE DETAIL delta.`{DATA}/views/{twins(self._view)[0]}`").head()
        assert detail is not None
        key = [column for column in detail["clusteringColumns"] if column in rows.columns]
        self._write(rows.sortWithinPartitions(*key), "laid_out", maxRecordsPerFile=FILE_ROWS)

    def _write(self, rows: DataFrame, folder: str, **options: str) -> None:
        rows.write.format("delta").mode("overwrite").options(**options).save(str(_TARGETS / folder / self._view))


class HandMerge:
    """A MERGE of the rows whose key is among the changes, as a careful person writes it: from the change feeds of bid and auction, deletes
    included, into a table with deletion vectors, clustered by the key. Where nothing changed it does nothing."""

    name = "MERGE by hand"
    views = ("q20", "highest")

    def __init__(self, bench: Bench, view: str) -> None:
        self._bench, self._view = bench, view
        self._path = _TARGETS / "merged" / view
        self._key = ("auction", "bidder") if view == "q20" else ("id",)
        rows, spark = bench.result(view), bench.spark
        table = DeltaTable.create(spark).location(str(self._path)).addColumns(rows.schema).clusterBy(*self._key)
        table.property("delta.enableDeletionVectors", "true").execute()
        rows.sortWithinPartitions(*self._key).write.format("delta").mode("append").save(str(self._path))
        self._read = {table: self._newest(table) for table in ("bid", "auction")}

    def follow(self) -> None:
        now = {table: self._newest(table) for table in self._read}
        moved = {table: since + 1 for table, since in self._read.items() if now[table] > since}
        if not moved:
            return
        session = plain_session(self._bench.spark, DATA)
        for table in ("bid", "auction"):
            session.read.format("delta").load(f"{DATA}/{table}").createOrReplaceTempView(f"whole_{table}")
            feed = session.read.format("delta").option("readChangeFeed", "true")
            changes = feed.option("startingVersion", moved.get(table, now[table])).option("endingVersion", now[table])
            changes.load(f"{DATA}/{table}").where("true" if table in moved else "false").createOrReplaceTempView(f"{table}_changes")
        both = "auction" in moved
        if self._view == "q20":
            also = "UNION SELECT auction, bidder FROM whole_bid WHERE auction IN (SELECT id FROM auction_changes)" if both else ""
            session.sql(f"SELECT auction, bidder FROM bid_changes {also}").distinct().createOrReplaceTempView("keys")
            near = "SELECT /*+ BROADCAST(keys) */ * FROM whole_bid LEFT SEMI JOIN keys USING (auction, bidder)"
        else:
            also = "UNION SELECT id FROM auction_changes" if both else ""
            session.sql(f"SELECT auction AS id FROM bid_changes {also}").distinct().createOrReplaceTempView("keys")
            near = "SELECT /*+ BROADCAST(keys) */ b.* FROM whole_bid b LEFT SEMI JOIN keys k ON b.auction = k.id"
        session.sql(near).createOrReplaceTempView("bid")
        session.table("whole_auction").createOrReplaceTempView("auction")
        session.sql(QUERIES[self._view]).createOrReplaceTempView("fresh")
        columns = session.table("fresh").columns
        shown = ", ".join(f"f.{c}" for c in columns if c not in self._key)
        joined = f"SELECT {', '.join(f'k.{c}' for c in self._key)}, {shown}, f.{self._key[0]} IS NOT NULL AS there"
        session.sql(f"{joined} FROM keys k LEFT JOIN fresh f USING ({', '.join(self._key)})").createOrReplaceTempView("source")
        on = " AND ".join(f"t.{c} = s.{c}" for c in self._key)
        values = ", ".join(f"s.{c}" for c in columns)
        session.sql(
            f"MERGE INTO delta.`{self._path}` t USING source s ON {on} WHEN MATCHED AND NOT s.there THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{c} = s.{c}' for c in columns)} "
            f"WHEN NOT MATCHED AND s.there THEN INSERT ({', '.join(columns)}) VALUES ({values})"
        )
        self._read = now

    def right(self) -> bool:
        """Whether its table holds the query's answer."""
        held, truth = self._bench.spark.read.format("delta").load(str(self._path)), self._bench.result(self._view)
        return held.exceptAll(truth).isEmpty() and truth.exceptAll(held).isEmpty()

    def _newest(self, table: str) -> int:
        found = self._bench.spark.sql(f"DESCRIBE HISTORY delta.`{DATA}/{table}` LIMIT 1").head()
        assert found is not None
        return int(found["version"])


class StreamJoin:
    """Spark's own stream-stream join, both sides in RocksDB, its result appended to a table; it takes inserts and new values alone, and
    what it has appended it does not take back."""

    name = "stream-stream join"

    def __init__(self, bench: Bench, view: str) -> None:
        self._view, self._session = view, bench.spark.newSession()
        for key, value in ROCKSDB.items():
            self._session.conf.set(key, value)
        self._folder = _TARGETS / "streamed" / view
        shutil.rmtree(self._folder, ignore_errors=True)

    def follow(self) -> None:
        stream_values(self._session, DATA)
        writer = self._session.sql(QUERIES[self._view]).writeStream.format("delta").outputMode("append")
        query = writer.option("checkpointLocation", str(self._folder / "checkpoint")).trigger(availableNow=True)
        query.start(str(self._folder / "table")).awaitTermination()

    def state_bytes(self) -> int:
        return sum(file.stat().st_size for file in Path(self._folder, "checkpoint").rglob("*") if file.is_file())
