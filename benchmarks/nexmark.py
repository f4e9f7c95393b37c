"""Nexmark at a size, with the views that the benchmarks refresh, and changes of a kind and number."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import DataFrame

from benchmarks.measure import DATA, plain_session
from examples.delta import write
from examples.nexmark.generator import Nexmark
from lake import Lakehouse, open_lake

_VIEWS = Path(__file__).parent.parent / "examples" / "nexmark" / "lakejoin.yml"
QUERIES = {
    "q20": yaml.safe_load(_VIEWS.read_text())["views"]["q20"]["query"],
    "sellers": """SELECT b.auction, b.bidder, b.price, a.category, a.seller, p.name, p.city
                  FROM bid b JOIN auction a ON b.auction = a.id JOIN person p ON a.seller = p.id""",
    "unsold": """SELECT a.id, a.item_name, a.category, b.bidder, b.price, b.channel
                 FROM auction a LEFT JOIN bid b ON a.id = b.auction AND b.price >= a.reserve""",
    "highest": """SELECT a.id, a.category, count(*) AS bids, max(b.price) AS highest, sum(b.price) AS total
                  FROM bid b JOIN auction a ON b.auction = a.id GROUP BY a.id, a.category""",
}
"""A join, a join of three tables, a left join, and a join with an aggregate."""
IN_PLACE, SPREAD, CATCHING_UP = "in one place", "spread", "catching up"
CONFIG = DATA / "lakejoin.json"
BUILDS = 3
TABLES = {"person": ("id",), "auction": ("id",), "bid": ("auction", "bidder")}
FILES = 16


@dataclass(frozen=True)
class Change:
    """So many bids raised (below 1: that share of them), in one place (recent auctions, as data ordered by time has it) or spread over all;
    or what a service that was down for a while has to catch up with: 100,000 bids and 5,000 auctions."""

    number: float
    kind: str = IN_PLACE

    def __str__(self) -> str:
        if self.kind == CATCHING_UP:
            return "100,000 bids and 5,000 auctions"
        if not self.number:
            return "nothing changed"
        return f"{self.number:.0%} {self.kind}" if self.number < 1 else f"{self.number:,.0f} {self.kind}"


def twins(view: str) -> list[str]:
    """Names of views with the same query, to be built beside it."""
    return [f"{view}_{n}" for n in range(BUILDS)]


class Bench:
    """Persons, auctions and bids of a given size in files ordered by auction, and views over them."""

    def __init__(self, events: int, views: list[str]) -> None:
        shutil.rmtree(DATA, ignore_errors=True)
        DATA.mkdir(parents=True)
        tables = {name: {"path": name, "primary_key": list(key)} for name, key in TABLES.items()}
        self.config: dict[str, Any] = {"root": str(DATA), "spark": {"spark.driver.memory": "6g"}, "tables": tables}
        self.config["views"] = {view: {"query": QUERIES[view]} for view in views}
        CONFIG.write_text(json.dumps(self.config))
        again = {twin: {"query": QUERIES[view]} for view in views for twin in twins(view)}
        self.lake: Lakehouse = open_lake({**self.config, "views": self.config["views"] | again})
        self.spark = self.lake.spark
        stream = Nexmark()
        for table in TABLES:
            rows = getattr(stream, table)(self.spark, 0, events)
            write(rows.repartitionByRange(FILES, "auction" if table == "bid" else "id"), f"{DATA}/{table}")
        self.bids = self.spark.read.format("delta").load(f"{DATA}/bid").count()
        self.auctions = events // stream.epoch * stream.auctions
        self._step = 0

    def change(self, change: Change) -> None:
        """One commit on bids (and one on auctions, to catch up with)."""
        self._step += 1
        if change.kind == CATCHING_UP:
            self._raise_spread(100_000)
            self._update("auction", "reserve = reserve + 1", f"pmod(xxhash64(id, {self._step}), {max(1, self.auctions // 5_000)}) = 0")
        elif change.number:
            number = change.number * self.bids if change.number < 1 else change.number
            self._raise_in_place(number) if change.kind == IN_PLACE else self._raise_spread(number)

    def _raise_in_place(self, number: float) -> None:
        share = max(1, round(number / (self.bids / self.auctions)))
        places = max(1, (self.auctions // 10) // share)
        low = max(0, self.auctions - share * (1 + self._step % places))
        self._update("bid", "price = price + 1", f"auction BETWEEN {low} AND {low + share - 1}")

    def _raise_spread(self, number: float) -> None:
        parts = max(1, round(self.bids / number * 100))
        self._update("bid", "price = price + 1", f"pmod(xxhash64(auction, bidder, {self._step}), {parts}) < 100")

    def _update(self, table: str, what: str, where: str) -> None:
        self.spark.sql(f"UPDATE delta.`{DATA}/{table}` SET {what} WHERE {where}")

    def result(self, view: str) -> DataFrame:
        """The view's query, by plain Spark over the newest tables."""
        return plain_session(self.spark, DATA, TABLES).sql(QUERIES[view])
