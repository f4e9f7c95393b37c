"""A Nexmark stream as DataFrames: persons, auctions and bids with Nexmark's columns, reproducible by seed.

Event n belongs to epoch n // (p + a + b) and is a person, an auction or a bid by its place in the epoch (1:3:46 unless set). All
values are functions of (seed, n), computed by Spark. Nexmark bids on a hot auction half of the time; so does this.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

_CITIES = ("Phoenix", "Palo Alto", "Seattle", "Portland", "Bend", "Boise", "Cheyenne", "Kent")
_STATES = ("AZ", "CA", "WA", "OR", "OR", "ID", "WY", "WA")
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_EPOCH_MICROS = 1_700_000_000_000_000
_GAP_MICROS = 10_000


@dataclass(frozen=True)
class Nexmark:
    """The stream's shape: events of each kind per epoch, and the seed."""

    persons: int = 1
    auctions: int = 3
    bids: int = 46
    seed: int = 42

    @property
    def epoch(self) -> int:
        return self.persons + self.auctions + self.bids

    def person(self, spark: SparkSession, first: int, last: int) -> DataFrame:
        """Persons among events first..last-1; key (id)."""
        events = self._events(spark, first, last, 0, self.persons)
        pick = self._random("city", len(_CITIES))
        name = F.concat(F.lit("person-"), F.col("id"))
        return events.select(
            "id",
            name.alias("name"),
            F.concat(name, F.lit("@example.com")).alias("email_address"),
            F.lpad(self._random("card", 10**15).cast("string"), 16, "4").alias("credit_card"),
            _among(_CITIES, pick).alias("city"),
            _among(_STATES, pick).alias("state"),
            "date_time",
            self._text("extra").alias("extra"),
        )

    def auction(self, spark: SparkSession, first: int, last: int) -> DataFrame:
        """Auctions among events first..last-1; key (id)."""
        events = self._events(spark, first, last, self.persons, self.auctions)
        price = 1 + self._random("price", 1000)
        return events.select(
            "id",
            F.concat(F.lit("item-"), F.col("id")).alias("item_name"),
            self._text("description").alias("description"),
            price.alias("initial_bid"),
            (price + self._random("reserve", 1000)).alias("reserve"),
            "date_time",
            F.timestamp_micros(_micros() + 60_000_000 * (1 + self._random("expires", 60))).alias("expires"),
            self._recent("seller", self.persons, 1000).alias("seller"),
            (10 + self._random("category", 5)).alias("category"),
            self._text("extra").alias("extra"),
        )

    def bid(self, spark: SparkSession, first: int, last: int) -> DataFrame:
        """Bids among events first..last-1; key (auction, bidder): the last bid of a bidder on an auction stands."""
        return self.bids_by_second(spark, first, last, last - first).drop("second")

    def bids_by_second(self, spark: SparkSession, first: int, last: int, rate: int) -> DataFrame:
        """The same of each second of so many events by themselves: key (auction, bidder, second)."""
        events = self._events(spark, first, last, self.persons + self.auctions, self.bids)
        hot = self._random("hot", 2) == 0
        auction = F.when(hot, self._hot_auction()).otherwise(self._recent("auction", self.auctions, 300))
        channel = _among(_CHANNELS, self._random("channel", len(_CHANNELS)))
        bids = events.select(
            auction.alias("auction"),
            self._recent("bidder", self.persons, 1000).alias("bidder"),
            (1 + self._random("bid", 10_000)).alias("price"),
            channel.alias("channel"),
            F.concat(F.lit("https://example.com/"), F.lower(channel), F.lit("/"), self._random("url", 10**6)).alias("url"),
            "date_time",
            self._text("extra").alias("extra"),
            F.col("n"),
            self.second(first, rate).alias("second"),
        )
        names = [c for c in bids.columns if c not in ("auction", "bidder", "n", "second")]
        last_bid = F.max_by(F.struct(*names), "n").alias("last")
        return bids.groupBy("auction", "bidder", "second").agg(last_bid).select("auction", "bidder", "last.*", "second")

    def second(self, first: int, rate: int) -> Column:
        """In which second, of so many events each from `first` on, an event with this `date_time` comes."""
        event = (F.unix_micros("date_time") - _EPOCH_MICROS) / _GAP_MICROS
        return F.floor((event - first) / rate).cast("int")

    def _events(self, spark: SparkSession, first: int, last: int, start: int, count: int) -> DataFrame:
        """The events of one kind: n (event number), id (number among its kind), date_time."""
        place = F.col("n") % self.epoch
        own = (F.floor(F.col("n") / self.epoch) * count + place - start).cast("long")
        events = spark.range(first, last).select(F.col("id").alias("n")).where((place >= start) & (place < start + count))
        return events.select("n", own.alias("id"), F.timestamp_micros(_micros()).alias("date_time"))

    def _random(self, what: str, below: int) -> Column:
        return F.pmod(F.xxhash64(F.lit(self.seed), F.lit(what), F.col("n")), F.lit(below))

    def _recent(self, what: str, per_epoch: int, window: int) -> Column:
        """The id of something made lately: at random among the newest `window` of its kind."""
        newest = F.floor(F.col("n") / self.epoch) * per_epoch
        return F.greatest(F.lit(0), newest - self._random(what, window)).cast("long")

    def _hot_auction(self) -> Column:
        return (F.floor(F.floor(F.col("n") / self.epoch) * self.auctions / 100) * 100).cast("long")

    def _text(self, what: str) -> Column:
        return F.substring(F.md5(F.concat_ws("-", F.lit(self.seed), F.lit(what), F.col("n"))), 1, 20)


def _micros() -> Column:
    return F.lit(_EPOCH_MICROS) + F.col("n") * _GAP_MICROS


def _among(values: tuple[str, ...], index: Column) -> Column:
    return F.element_at(F.array(*[F.lit(v) for v in values]), (index + 1).cast("int"))
