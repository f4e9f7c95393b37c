"""How large the warehouse is, when its batches are, and its random numbers: what all of its source tables are made from.

Every value is a function of (seed, id), computed by Spark: the same seed makes the same tables, at any number of cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

DAY = 86_400


def _epoch(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


FOUNDED, OPENED, STARTED, LOADED = map(_epoch, ("2007-07-07", "2013-07-07", "2014-07-07", "2017-07-07"))
"""Customers come from FOUNDED on, their other accounts from OPENED on; trades and the market from STARTED on, until the historical load."""
BATCH_DAYS = 8


@dataclass(frozen=True)
class Shape:
    """The number of rows by kind follows the number of trades; a batch after the historical load brings a hundredth of each."""

    trades: int = 50_000
    seed: int = 42

    @property
    def customers(self) -> int:
        return max(20, self.trades // 15)

    @property
    def people(self) -> int:
        """Employees, and as many prospects."""
        return max(20, self.trades // 25)

    @property
    def symbols(self) -> int:
        return max(6, self.trades // 400)

    @property
    def companies(self) -> int:
        return max(4, self.symbols * 4 // 5)

    def random(self, key: str, salt: str, below: int) -> str:
        """A number from 0 on for an expression; the same one for the same salt."""
        return f"pmod(xxhash64({key}, '{salt}', {self.seed}), {below})"

    def among(self, key: str, salt: str, *texts: str) -> str:
        """One of some texts for an expression."""
        return f"elt(1 + {self.random(key, salt, len(texts))}, {', '.join(repr(text) for text in texts)})"


def share(total: int) -> int:
    """How many of so many a batch brings, or changes."""
    return max(1, total // 100)


def born(total: int, batch: int) -> tuple[int, int]:
    """The ids (first, end) that come with a batch: in the first, the historical load, all but a hundredth each for later ones."""
    return (0, total) if batch == 1 else (total + (batch - 2) * share(total), total + (batch - 1) * share(total))


def ids(total: int, batch: int) -> str:
    """The same as a table function."""
    first, end = born(total, batch)
    return f"range({first}, {end})"


def chosen(total: int, batch: int, salt: int) -> str:
    """A hundredth of the ids of the historical load, others in each batch: rows (id)."""
    return f"(SELECT pmod(id * 7919 + {(batch * 31 + salt) * share(total)}, {total}) AS id FROM range({share(total)}))"


def period(batch: int) -> tuple[int, int]:
    """When a batch's trades are: (first second since 1970, seconds)."""
    return (STARTED, LOADED - STARTED) if batch == 1 else (LOADED + (batch - 2) * BATCH_DAYS * DAY, BATCH_DAYS * DAY)


def text_of(seconds: str) -> str:
    """Seconds since 1970 as the text of a timestamp, as the source files have it."""
    return f"CAST(timestamp_seconds({seconds}) AS STRING)"
