"""Decides when a refresh falls back to a full recompute: what the recompute costs, what is left of it, and the reason in words.

Costs are in bytes that a query reads (core/cost.py). Example: a recompute costs 250 MB.

    >>> budget = Budget(recompute=250 << 20, limit=250 << 20)
    >>> budget.spend(80 << 20, "reading changes")
    >>> budget.left >> 20
    170
    >>> budget.require(200 << 20, "a refresh")
    Traceback (most recent call last):
    lake.relations.budget.FallBackToRecompute: fell back to a full recompute by estimate: a refresh costs 280 MB, more than the 250 MB ...
    >>> budget.go_on(200 << 20, "reading tables for lookups")
    >>> budget.go_on(100 << 20, "reading tables for lookups")
    Traceback (most recent call last):
    lake.relations.budget.FallBackToRecompute: fell back to a full recompute by estimate: reading tables for lookups costs 380 MB, ...
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NoReturn

_BEGUN = 1.5
"""What a refresh that has begun may cost, as a multiple of the recompute. On TPC-H at scale 1 none of those that it lets go on was dearer
than to recompute after all (docs/decisions/0010)."""
_BOTH_ENDS = 3
"""What a recomputed operator costs, as a multiple of the tables below it: two ends, and changes subtracted from the newer for the older."""


class FallBackToRecompute(Exception):
    """The refresh falls back to a full recompute, whose rows are compared with the stored rows; the text says why."""


@dataclass
class Budget:
    """What one refresh may cost.

    `recompute`: the cost of a full recompute by estimate, 0 where it is not known; `limit`: what the refresh may cost before it falls back,
    0 for no limit; `share`: the changes it may have, as a share of all rows.

    `spent`: its cost so far; `reasons`: why operators, or the whole query, were recomputed.
    """

    recompute: int = 0
    limit: int = 0
    share: float = math.inf
    spent: int = 0
    reasons: list[str] = field(default_factory=list)

    @property
    def why(self) -> str:
        """Why operators, or the whole query, were recomputed, in one text; empty where none was."""
        return "; ".join(dict.fromkeys(self.reasons))

    @property
    def unlimited(self) -> bool:
        """Whether the refresh never falls back for its cost."""
        return not self.recompute and not self.limit and self.share == math.inf

    @property
    def left(self) -> float:
        """What the refresh may still cost."""
        return self.limit - self.spent if self.limit else math.inf

    def spend(self, cost: int, what: str) -> None:
        """Count a cost. Raises FallBackToRecompute where that is more than is left."""
        self.require(cost, what)
        self.spent += cost

    def require(self, cost: int, what: str) -> None:
        """Raise FallBackToRecompute where an expected cost is more than is left; nothing is spent. `what`: what costs that much."""
        if cost > self.left:
            total, limit = self.spent + cost, self.limit
            self.refuse(f" by estimate: {what} costs {total >> 20:,} MB, more than the {limit >> 20:,} MB of the recompute")

    def go_on(self, cost: int, what: str) -> None:
        """Count a cost of a refresh that has begun. What it has spent is lost either way: it falls back only where it comes to cost half as
        much again as the recompute."""
        total, limit = self.spent + cost, self.limit
        if limit and total > _BEGUN * limit:
            self.refuse(f" by estimate: {what} costs {total >> 20:,} MB, more than {_BEGUN} times the {limit >> 20:,} MB of the recompute")
        self.spent = total

    def require_share(self, changed: int, rows: int) -> None:
        """Raise FallBackToRecompute where the changes are too large a share of all rows."""
        if changed > self.share * rows:
            self.refuse(f": {changed:,} changes of {rows:,} rows are more than {self.share:.0%} (recompute_above)")

    def recompute_operator(self, size: int, why: str, times: int = _BOTH_ENDS) -> None:
        """Count an operator that is recomputed over tables of `size` bytes, read so many times. Raises FallBackToRecompute where the whole
        query is cheaper."""
        if times * size > self.recompute > 0:
            raise FallBackToRecompute(why)
        self.reasons.append(why)

    def refuse(self, why: str) -> NoReturn:
        """Raise FallBackToRecompute with the reason, which continues "fell back to a full recompute"."""
        raise FallBackToRecompute(f"fell back to a full recompute{why}")

    def fall_back(self, why: FallBackToRecompute) -> None:
        """From here on the query is recomputed, whatever it costs, for this reason alone."""
        self.reasons[:] = [str(why)]
        self.recompute, self.limit, self.share = 0, 0, math.inf
