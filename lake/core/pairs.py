"""What differs between a view and its query, with the rows of both sides paired by the view's key. No Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from math import isfinite
from typing import Any

from lake.core.formatting import shortened
from lake.core.planned import RowChanges
from lake.core.redaction import Samples

_MOST_DIGITS = 100
_MOST_SHOWN = 60
_KEYS = 3


@dataclass(frozen=True)
class Pair:
    """The row of the query and the row of the view with the same key; `query` or `view` is None where only the other side has a row.

    `differs`: by each column in which the two differ, the size of the difference (the view's value minus the query's), None unless both
    are numbers.
    """

    query: Mapping[str, Any] | None
    view: Mapping[str, Any] | None
    differs: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """`missing` from the view, `surplus` in the view, or `different`."""
        return "missing" if self.view is None else "surplus" if self.query is None else "different"

    def sampled(self, shown: Samples, key: Sequence[str]) -> Pair | None:
        """The same with what may be shown of its rows; None where nothing may. Of sensitive columns not even a difference is shown."""
        query, view = (None if row is None else shown(row, key) for row in (self.query, self.view))
        if query is None and view is None:
            return None
        return Pair(query, view, {name: None if shown.hides(name) else by for name, by in self.differs.items()})

    def to_json(self) -> dict[str, Any]:
        return {
            "query": None if self.query is None else dict(self.query),
            "view": None if self.view is None else dict(self.view),
            "differs": dict(self.differs),
        }

    def text(self, key: Sequence[str]) -> str:
        """One line for people: `different: id=7: x 10 in the query, 98 in the view (+88)`. Columns whose values are hidden have none."""
        row = self.query if self.query is not None else self.view or {}
        names = [f"{name}={value_text(value)}" for name, value in row.items() if name in key]
        others = [f"{name}={value_text(value)}" for name, value in row.items() if name not in key]
        shown = [", ".join(part) for part in (names, others if self.kind != "different" else []) if part]
        return ": ".join([self.kind, *shown, *(["; ".join(self._each())] if self.differs else [])])

    def _each(self) -> Iterator[str]:
        assert self.query is not None
        assert self.view is not None
        for name, by in self.differs.items():
            size = "" if by is None else f" ({signed(by)})"
            values = name in self.query and name in self.view
            sides = f" {value_text(self.query[name])} in the query, {value_text(self.view[name])} in the view" if values else ""
            yield f"{name}{sides}{size}"


@dataclass(frozen=True)
class Paired:
    """Differing rows by the key of a view: how many only the query has (`missing`), only the view has (`surplus`), and both have with other
    values (`different`); of these, how many differ in each column; `samples`: some of each."""

    missing: int
    surplus: int
    different: int
    by_column: Mapping[str, int]
    samples: tuple[Pair, ...] = ()

    def sampled(self, shown: Samples, key: Sequence[str]) -> Paired:
        """The same with its samples reduced to what may be shown."""
        samples = (pair.sampled(shown, key) for pair in self.samples)
        return replace(self, samples=tuple(pair for pair in samples if pair is not None))

    def as_row_changes(self, key: Sequence[str]) -> RowChanges:
        """The same as changes from the view's rows to the query's, with the keys of some."""
        rows = [pair.query if pair.query is not None else pair.view or {} for pair in self.samples[:_KEYS]]
        keys = tuple({name: row[name] for name in key if name in row} for row in rows)
        return RowChanges(self.missing, self.surplus, self.different, self.by_column, keys)

    def to_json(self) -> dict[str, Any]:
        return {
            "missing": self.missing,
            "surplus": self.surplus,
            "different": self.different,
            "by_column": dict(self.by_column),
            "samples": [{"kind": pair.kind, **pair.to_json()} for pair in self.samples],
        }

    def text(self, key: Sequence[str]) -> str:
        """One line for people, without values."""
        columns = ", ".join(f"{name} {rows:,}" for name, rows in self.by_column.items())
        counts = f"{self.missing:,} missing, {self.surplus:,} surplus, {self.different:,} different"
        return f"by key ({', '.join(key)}): {counts}{f' (in {columns})' if columns else ''}"


def differs_text(differs: Mapping[str, Any]) -> str:
    """The columns in which two rows differ, without values: `x +88, name`."""
    return ", ".join(f"{name}{'' if by is None else f' {signed(by)}'}" for name, by in differs.items())


def signed(by: Any) -> str:
    """A number with its sign; one that was stored as JSON may be a text."""
    return f"+{by}" if isinstance(by, str) and not by.startswith("-") else by if isinstance(by, str) else f"{by:+}"


def size_of_difference(query: Any, view: Any) -> Any:
    """The view's number minus the query's; None unless both are finite numbers that are not equal."""
    kinds = {type(query), type(view)}
    if len(kinds) != 1 or not kinds <= {int, float, Decimal}:
        return None
    with localcontext() as context:
        context.prec = _MOST_DIGITS
        by = view - query
    return by if isfinite(by) and by else None


def value_text(value: Any) -> str:
    """A value for people, shortened."""
    text = "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)
    return shortened(text, _MOST_SHOWN)
