"""Aggregates over all rows inside a query: scalar subqueries, totals that rows are compared with or divided by.

The stamp keeps the aggregate's row as it was at `since`: counts, sums, minima and maxima (additive.py). With Δ, the changes of the child,

    row(until) = row(since) + agg(Δ⁺) - agg(Δ⁻)
    changes    = row(until) - row(since)

so a refresh reads the changes only, and none of the tables where nothing changed below. The row is computed from the tables by a build, by
a recompute, where the stamp has none, and where additive.py says that it can't be added to (the minimum may be deleted).

Example: stored are the count 2 and the sum 30; 5 is inserted, 10 is deleted. The rows of the child are not read.

    >>> from tests.relations.twin import bag, difference, shown
    >>> since = (2, 30)
    >>> until = (since[0] + 1 - 1, since[1] + 5 - 10)
    >>> shown(difference(bag(until), bag(since)))
    {(2, 25): 1, (2, 30): -1}
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from lake.catalyst.nodes import Measure
from lake.relations.additive import Added
from lake.relations.frames import Changes
from lake.relations.reading import Reading
from lake.relations.total_rows import Row
from lake.spark import zset


class Total(Added):
    """An aggregate without groups, not at the view's root."""

    looks_up = False

    @property
    def rule(self) -> str:  # type: ignore[override]
        rule = "added to the row that the stamp keeps"
        return f"{rule}, recomputed where its minimum or maximum is deleted" if self.has_extremes else rule

    def own_changes(self, reading: Reading) -> Changes | None:
        if reading.changes_of(self.children[0]) is None:
            reading.totals.carry(self.node.total)
            return None
        known = reading.totals.since.get(self.node.total)
        if known is not None:
            old = self._row(known, reading)
        else:
            reading.budget.recompute_operator(reading.bytes_of(self), "Aggregate was recomputed: the stamp does not have its row yet")
            old = self.run(reading, [self.children[0].snapshot_since(reading)])
        return reading.frames.keep_consolidated(zset.subtract(self.snapshot(reading), old))

    def snapshot(self, reading: Reading) -> DataFrame:
        """The row at `until`, computed at once."""
        return reading.totals.frame(self, lambda: self._renewed(reading))

    def rows_of(self, stale: Changes, reading: Reading) -> DataFrame:
        """All rows of the child."""
        why = "Aggregate was recomputed: its minimum or maximum may be deleted, or its sum can't be added to"
        reading.budget.recompute_operator(reading.bytes_of(self), why, times=1)
        return super().rows_of(stale, reading)

    def _renewed(self, reading: Reading) -> DataFrame:
        done, known, (child,) = reading.totals.until.get(self.node.total), reading.totals.since.get(self.node.total), self.children
        if done is not None:  # by the same aggregate elsewhere in the query
            return reading.frames.keep_rows(self._row(done, reading)).frame
        if known is None:
            found = self.run(reading, [child.snapshot(reading)])
        else:
            found, delta = self._row(known, reading), reading.changes_of(child)
            found = found if delta is None else self.renewed(found, delta, reading)
        found = reading.frames.keep_rows(found).frame
        reading.totals.keep(self.node.total, self._texts(found, reading))
        return found

    def _row(self, texts: Row, reading: Reading) -> DataFrame:
        values = [f"{_value(text, m)} AS {m.column}" for text, m in zip(texts, self.measures, strict=True)]
        return reading.catalyst.spark.sql(f"SELECT {', '.join(values)}")

    def _texts(self, row: DataFrame, reading: Reading) -> Row:
        (values,) = reading.catalyst.values(row.selectExpr(*[_text(m) for m in self.measures]))
        return tuple(None if value is None else str(value) for value in values)


def _text(measure: Measure) -> str:
    """A measure as a text, as SQL: in characters that need no quotes, and independent of the session's time zone."""
    match measure.data_type:
        case "STRING":
            return f"hex({measure.column})"
        case "DATE":
            return f"CAST(unix_date({measure.column}) AS STRING)"
        case "TIMESTAMP":
            return f"CAST(unix_micros({measure.column}) AS STRING)"
        case _:
            return f"CAST({measure.column} AS STRING)"


def _value(text: str | None, measure: Measure) -> str:
    """The measure of which `_text` gives a text, as SQL."""
    if text is None:
        return f"CAST(NULL AS {measure.data_type})"
    match measure.data_type:
        case "STRING":
            return f"CAST(unhex('{text}') AS STRING)"
        case "DATE":
            return f"date_from_unix_date(CAST('{text}' AS INT))"
        case "TIMESTAMP":
            return f"timestamp_micros(CAST('{text}' AS BIGINT))"
        case _:
            return f"CAST('{text}' AS {measure.data_type})"
