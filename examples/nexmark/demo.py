"""make demo: Nexmark q20 on an embedded lake, built, changed on both sides, refreshed and proved, round by round."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from examples.delta import write
from examples.nexmark.generator import Nexmark
from examples.show import Rounds
from lake import Lakehouse, open_lake

CONFIG = Path(__file__).with_name("lakejoin.yml")
_KEYS = {"person": ("id",), "auction": ("id",), "bid": ("auction", "bidder")}


def upsert(spark: SparkSession, frame: DataFrame, path: str, key: tuple[str, ...]) -> None:
    """New rows, and new values of rows that are there."""
    frame.createOrReplaceTempView("upserted")
    on = " AND ".join(f"t.{k} = s.{k}" for k in key)
    spark.sql(f"MERGE INTO delta.`{path}` t USING upserted s ON {on} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")


def append_events(lake: Lakehouse, stream: Nexmark, first: int, last: int) -> None:
    """The stream goes on: new persons, auctions and bids."""
    for table, key in _KEYS.items():
        upsert(lake.spark, getattr(stream, table)(lake.spark, first, last), _path(lake, table), key)


def raise_bids(lake: Lakehouse) -> None:
    """Some bidders raise their bids."""
    lake.spark.sql(f"UPDATE delta.`{_path(lake, 'bid')}` SET price = price + 500 WHERE bidder % 23 = 0")


def change_auctions(lake: Lakehouse) -> None:
    """Sellers change category and reserve; some auctions are withdrawn, with some of their bids left behind."""
    lake.spark.sql(f"UPDATE delta.`{_path(lake, 'auction')}` SET category = category + 1, reserve = reserve * 2 WHERE id % 37 = 0")
    lake.spark.sql(f"DELETE FROM delta.`{_path(lake, 'auction')}` WHERE id % 101 = 5")
    lake.spark.sql(f"DELETE FROM delta.`{_path(lake, 'bid')}` WHERE auction % 101 = 5 AND bidder % 2 = 0")


def move_bids(lake: Lakehouse) -> None:
    """Some bids move to another auction: their key, and their partner in the join, change."""
    bid = _path(lake, "bid")
    lake.spark.sql(
        f"""MERGE INTO delta.`{bid}` t
            USING (SELECT m.auction, m.bidder FROM delta.`{bid}` m LEFT ANTI JOIN delta.`{bid}` o
                   ON o.auction = m.auction + 1 AND o.bidder = m.bidder WHERE m.bidder % 31 = 1) s
            ON t.auction = s.auction AND t.bidder = s.bidder
            WHEN MATCHED THEN UPDATE SET auction = t.auction + 1"""
    )


def _path(lake: Lakehouse, table: str) -> str:
    return lake.config.source_path(table)


def main(arguments: list[str]) -> int:
    """Run the demo; 0 where every round was exact."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="events of the first build")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--proportions", default="1:3:46", help="persons : auctions : bids")
    options = parser.parse_args(arguments)
    persons, auctions, bids = (int(n) for n in options.proportions.split(":"))
    stream, events = Nexmark(persons, auctions, bids, options.seed), options.events

    lake = open_lake(CONFIG)
    shutil.rmtree(lake.config.root_path, ignore_errors=True)
    rounds = Rounds(lake, "q20", f"q20 = bid ⋈ auction, from {events:,} Nexmark events (seed {options.seed})")
    rounds.console.print(f"Making the lake: {events:,} events as Delta tables in {lake.config.root_path}")
    for table in _KEYS:
        write(getattr(stream, table)(lake.spark, 0, events), _path(lake, table))
    rounds.refresh("build")
    append_events(lake, stream, events, events + events // 100)
    rounds.refresh("new events")
    raise_bids(lake)
    rounds.refresh("raised bids")
    change_auctions(lake)
    rounds.refresh("changed auctions, deletes")
    move_bids(lake)
    rounds.refresh("bids move to another auction")
    append_events(lake, stream, events + events // 100, events + events // 50)
    change_auctions(lake)
    raise_bids(lake)
    rounds.refresh("all of it at once")
    rounds.refresh("nothing")
    command = f".venv/bin/lakejoin --config {CONFIG.relative_to(Path.cwd()) if CONFIG.is_relative_to(Path.cwd()) else CONFIG}"
    return rounds.finish([f"{command} show q20 --limit 5", f"{command} explain q20", f"{command} status", "make demo-flights"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
