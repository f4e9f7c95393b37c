"""What a user would run instead of the real-time path: Spark's own stream-stream join, both sides in RocksDB.

python -m benchmarks.streamjoin LAKE CHECKPOINT TARGET: Nexmark's q20 over the change feeds of bid and auction, inserts and new values of
updates alone (a stream-stream join takes nothing back), appended to a Delta table every second until SIGTERM. What its state takes is
written to CHECKPOINT/progress.json. Its session is Lakejoin's, with two shuffle partitions and RocksDB with changelog checkpoints.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import yaml
from pyspark.sql import SparkSession

from lake.spark.session import make_session

ROCKSDB = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def stream_values(spark: SparkSession, lake: Path) -> None:
    """Temp views, named as the tables: what was inserted into them, and the new values of updates, as streams."""
    for table in ("bid", "auction"):
        stream = spark.readStream.format("delta").option("readChangeFeed", "true").option("startingVersion", "0").load(str(lake / table))
        stream.where("_change_type IN ('insert', 'update_postimage')").createOrReplaceTempView(table)


def main(lake: Path, checkpoint: Path, target: Path) -> int:
    """Run until SIGTERM."""
    stop, spark = threading.Event(), make_session({"spark.driver.memory": "4g", **ROCKSDB})
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    stream_values(spark, lake)
    joined = spark.sql(yaml.safe_load((lake / "lakejoin.yml").read_text())["views"]["q20"]["query"])
    writer = joined.writeStream.format("delta").option("checkpointLocation", str(checkpoint)).outputMode("append")
    query = writer.trigger(processingTime="1 second").start(str(target))
    while not stop.wait(0.5) and query.isActive:
        last = query.lastProgress
        if last is not None and last.numInputRows:
            (checkpoint / "progress.json").write_text(last.json)
    query.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
