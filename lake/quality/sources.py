"""Measures a source table, once in a run, whichever views read it: its key, change data feed, age, number of rows and columns."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from pyspark.sql import functions as F

from lake import Lakehouse
from lake.core.redaction import Samples
from lake.core.sql import quoted
from lake.delta.pinned import Pinned
from lake.errors import LakeError, QueryError
from lake.quality.builtin import suite
from lake.quality.measurements import Measurement, Row

_SAMPLES = 5
_HISTORY = 20
_ENOUGH = 3
_OFF = "off: changes are read from the data files"


@dataclass(frozen=True)
class SourceChecks:
    """The checks of a source table. `before`: its earlier results, oldest first; `read`: the version that each view has read."""

    lake: Lakehouse
    name: str
    before: Sequence[Row]
    read: Mapping[str, int]

    def measures(self) -> list[Measurement]:
        """What each check measured, or why it could not run."""
        head = self.lake.source_head(self.name)
        found: list[Measurement] = []
        for check in (self._key, self._feed, self._age, self._volume, self._columns):
            found += guarded(lambda check=check: list(check(head)), self.name, "source", check.__name__.strip("_"), self.shown)  # type: ignore[misc]
        return [replace(m, snapshot={self.name: head.version.number}) for m in found]

    @property
    def shown(self) -> Samples:
        """How much of its rows may be shown."""
        return Samples(self.lake.config.samples, self.lake.config.tables[self.name].sensitive)

    def _key(self, head: Pinned) -> Iterator[Measurement]:
        """The declared primary key: unique, and never NULL."""
        key = self.lake.config.tables[self.name].primary_key
        if not key:
            return
        columns = [F.col(quoted(c)) for c in key]
        empty = F.lit(False)
        for column in columns:
            empty = empty | column.isNull()
        groups = head.rows().groupBy(*columns).agg(F.count(F.lit(1)).alias("__lakejoin_rows"))
        many = F.col("__lakejoin_rows") > 1
        total, rows, nulls = groups.agg(
            F.sum("__lakejoin_rows"), F.sum(F.when(many, F.col("__lakejoin_rows") - 1)), F.sum(F.when(empty, F.col("__lakejoin_rows")))
        ).collect()[0]
        for name, count, where in (("key_unique", rows or 0, many), ("key_not_null", nulls or 0, empty)):
            bad = [r.asDict() for r in groups.where(where).select(*columns).take(_SAMPLES)] if count else []
            shown = [s for s in (self.shown(row, key) for row in bad) if s is not None]
            yield self._measure(
                name,
                float(count),
                rows=int(count),
                share=count / total if total else 0.0,
                detail=f"the declared key ({', '.join(key)})",
                samples=tuple(shown),
            )

    def _feed(self, head: Pinned) -> Iterator[Measurement]:
        """The change data feed since the last version that a view has read: without gaps, and its files exist."""
        since = min(self.read.values(), default=head.version.number)
        known = [r for r in self.before if r.subject == "change feed" and r.status in ("passed", "failed")]
        switched = not head.has_feed and bool(known) and not known[-1].detail.startswith(_OFF)
        gap = self.lake.feed_gap(self.name, since) if head.has_feed else f"{_OFF}; it was enabled at the last check" if switched else ""
        yield self._measure("change_feed", float(bool(gap)), detail=gap or ("" if head.has_feed else _OFF))
        gone = self.lake.changes_gone(self.name, since)
        rebuild = "; ".join(f"lakejoin rebuild {view}" for view, read in self.read.items() if read == since)
        yield self._measure("unread_changes", float(bool(gone)), {"rebuild": rebuild}, detail=gone)

    def _age(self, head: Pinned) -> Iterator[Measurement]:
        """How old the newest commit is that changes rows."""
        age = datetime.now(UTC) - self.lake.changed_last(self.name)
        yield self._measure("age", age.total_seconds(), {"fresh_seconds": self.lake.config.tables[self.name].fresh_seconds})

    def _volume(self, head: Pinned) -> Iterator[Measurement]:
        """The number of rows, against the median of earlier checks."""
        count = head.count
        rows = head.rows().count() if count is None else count
        factor = self.lake.config.quality.volume_factor
        seen = [r.value for r in self.before if r.subject == "rows" and r.value is not None][-_HISTORY:]
        middle = statistics.median(seen) if len(seen) >= _ENOUGH else None
        usual = (None, None) if middle is None else (middle / factor, max(1.0, middle) * factor)
        detail = "" if middle is None else f"{middle:,.0f} is the median of {len(seen)} earlier checks"
        yield self._measure("rows", float(rows), {"fewest_rows": usual[0], "most_rows": usual[1]}, rows=rows, detail=detail)

    def _columns(self, head: Pinned) -> Iterator[Measurement]:
        """The columns, against those of the last check."""
        now = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in head.schema.fields)
        before = next((r.detail for r in reversed(self.before) if r.subject == "columns" and r.status != "broken"), now)
        changed = set(now.split(", ")) ^ set(before.split(", "))
        cause = f"these differ from the last check: {', '.join(sorted(changed))}" if changed else ""
        yield self._measure("columns", float(len(changed)), detail=now, cause=cause)

    def _measure(self, key: str, value: float, parameters: Mapping[str, Any] = MappingProxyType({}), **observed: Any) -> Measurement:
        """A measured value, to be judged by the built-in suite of source tables."""
        return suite("source").measurement(key, self.name, value, {"source": self.name, **parameters}, **observed)


def guarded(check: Callable[[], list[Measurement]], scope: str, name: str, subject: str, shown: Samples) -> list[Measurement]:
    """What a check measured, or a broken measurement if it could not run."""
    try:
        return check()
    except Exception as error:  # whatever fails, the other checks run
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        ours = isinstance(error, LakeError) and not isinstance(error, QueryError)  # which quotes names, not values
        return [Measurement(scope, name, subject, None, "", broken=(text if ours else shown.text(text))[:500])]
