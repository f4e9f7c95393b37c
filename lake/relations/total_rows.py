"""What the stamp keeps of operators from one refresh to the next: the rows of aggregates over all rows inside a query (total.py), the first
rows of LIMITs and of ranks inside it (first_rows.py), and the rows after the last one of a LIMIT at its root (top.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

Row = tuple[str | None, ...]
"""One row: a text for each value, None for NULL."""
_MOST_OF_ONE, _MOST, _FOR_TOTALS = 1_000, 32_000, 8_000
"""Characters of one row, of all rows of a stamp, and of these what first rows leave to totals."""


@dataclass
class TotalRows:
    """Rows by the names of their operators (`Node.total`, `Node.margin`). `since`: of the last stamp; `until`: of the next one."""

    since: Mapping[str, Row] = field(default_factory=dict)
    until: dict[str, Row] = field(default_factory=dict)
    _frames: dict[int, DataFrame] = field(default_factory=dict)

    def frame(self, relation: object, computed: Callable[[], DataFrame]) -> DataFrame:
        """A relation's row at `until`, computed once."""
        if id(relation) not in self._frames:
            self._frames[id(relation)] = computed()
        return self._frames[id(relation)]

    def keep(self, name: str, row: Row, at_most: int = _MOST_OF_ONE) -> None:
        """Note a row at `until`; one of more than so many characters is computed again at the next refresh."""
        self.until.pop(name, None)
        length = sum(len(value or "") for value in row)
        if length <= at_most and self._length + length + len(name) <= _MOST:
            self.until[name] = row

    def room(self, at_most: int) -> int:
        """How many characters first rows may still have, at the most so many."""
        return max(0, min(at_most, _MOST - _FOR_TOTALS - self._length))

    @property
    def _length(self) -> int:
        return sum(len(value or "") for name, kept in self.until.items() for value in (name, *kept))

    def carry(self, name: str) -> None:
        """Note the row that the stamp has, if it has one, for the next: nothing changed that it is made of."""
        known = self.since.get(name)
        if known is not None:
            self.keep(name, known, _MOST)

    def forget(self) -> None:
        """From here on all rows are computed from the tables."""
        self.since = {}
        self.until.clear()
        self._frames.clear()
