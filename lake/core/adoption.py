"""What `lakejoin adopt` found and did: the snapshots that were tried, what differs, what adopting changes in the table. No Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from lake.core.planned import RowChanges
from lake.core.snapshots import Snapshot

AdoptionState = Literal["adopted", "equal", "differs", "declined"]
"""The view has the table; it could have it (a dry run); their rows differ; it could, and was not wanted."""


@dataclass(frozen=True)
class RowsApart:
    """How the rows of a table differ from those of a query: how many the query has and the table lacks (`missing`), and the other way round
    (`surplus`), with some of them; `by_key`: the same by key and column, where the key is among the columns; `rounding`: rows that count as
    equal, though sums of floating-point numbers in them differ in the last digits."""

    rows: int
    missing: int
    surplus: int
    samples: tuple[tuple[int, Mapping[str, Any]], ...] = ()
    by_key: RowChanges | None = None
    rounding: str = ""

    @property
    def equal(self) -> bool:
        return self.missing == self.surplus == 0

    def __str__(self) -> str:
        if self.equal:
            return f"{self.rows:,} rows are equal{f' ({self.rounding})' if self.rounding else ''}"
        found = f"it lacks {self.missing:,} rows of the query, and {self.surplus:,} of its {self.rows:,} rows are not among the query's"
        if self.by_key is not None:
            return f"{found}. By key, from the table to the query: {self.by_key}"
        shown = "; ".join(f"{weight:+d} {dict(row)}" for weight, row in self.samples)
        return found + (f". Such as (+: lacking, -: too many) {shown}" if shown else "")


@dataclass(frozen=True)
class Tried:
    """A snapshot of the base tables for which the table was compared with the query, and what came of it."""

    snapshot: Mapping[str, int]
    fits: bool
    found: str

    def __str__(self) -> str:
        at = ", ".join(f"{table}@{version}" for table, version in sorted(self.snapshot.items()))
        return f"{at}: {self.found}"


@dataclass(frozen=True)
class Adoption:
    """`table`: where it was; `place`: where the view has it; `version`: the table's, whose rows were compared; `snapshot`: the versions of
    the sources at which they are the query's, and from which the next refresh goes on; `changes`: what adopting does to the table, besides
    the stamp; `apart`: how its rows differ; `rows_inserted`, `rows_deleted`: by `--repair`; `rows_rewritten`: written once more as they
    are, with hidden columns."""

    view: str
    state: AdoptionState
    table: str
    place: str
    version: int
    snapshot: Snapshot
    apart: RowsApart
    changes: tuple[str, ...] = ()
    rows_inserted: int = 0
    rows_deleted: int = 0
    rows_rewritten: int = 0
    tried: tuple[Tried, ...] = ()
    seconds: float = 0.0

    @property
    def moves(self) -> bool:
        """Whether the table gets another place."""
        return self.table != self.place

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"snapshot": dict(self.snapshot), "moves": self.moves}
