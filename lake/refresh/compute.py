"""Computes what a refresh changes in the view's table: from the view's changes, or from the recomputed query and the stored rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lake.catalyst.guards import INEXACT
from lake.core.cost import SMALL_TABLE
from lake.core.sql import quoted
from lake.core.stamp import Stamp
from lake.delta.pinned import Pinned
from lake.errors import DefinitionError
from lake.refresh import changes, publish
from lake.refresh.publish import Target
from lake.refresh.row_edits import WEIGHT, Edits, compared, in_names, keyed, keyed_apart, of_multiset, refuse_doubled_keys
from lake.relations.budget import FallBackToRecompute
from lake.relations.frames import Changes
from lake.relations.reading import Reading
from lake.spark import zset
from lake.spark.failures import SPARK_ERRORS, of_rows
from lake.spark.key_ranges import Ranges
from lake.views.definition import Definition
from lake.views.table import schema, visible


@dataclass(frozen=True)
class Candidate:
    """What a refresh is about to publish: the rows that it inserts, and all rows of the view after it, as a reader would see them."""

    view: str
    stamp: Stamp
    changed: DataFrame
    whole: DataFrame


class AllRows:
    """Instead of edits: all rows of the recomputed query are published in place of the stored rows."""


Gate = Callable[[Candidate], None]
"""Raises BlockedError where the rows must not be published."""


@dataclass(frozen=True)
class Computation:
    """The rows of one refresh. `pinned`: the version of the view's table on which it is planned; `gate`: checks the rows before they are
    published; `replaces`: where the query is recomputed, all rows are published."""

    target: Target
    pinned: Pinned
    stamp: Stamp
    reading: Reading
    gate: Gate | None
    replaces: bool = False

    @property
    def definition(self) -> Definition:
        return self.target.definition

    @property
    def final_stamp(self) -> Stamp:
        """The stamp to publish, once the rows are computed: with what it keeps of operators, and with what was recomputed."""
        reasons = self.reading.budget.why
        mode, reason = ("recompute", reasons) if reasons else (self.stamp.mode, self.stamp.reason)
        return replace(self.stamp, mode=mode, reason=reason, totals=dict(self.reading.totals.until))

    def of_changes(self) -> Edits | AllRows | None:
        """What the sources' changes change in the view's table, or, where the refresh falls back, what the recomputed query changes."""
        try:
            return self._of_changes()
        except FallBackToRecompute as why:
            self.reading.fall_back(why)
        except SPARK_ERRORS as error:
            # where several tables changed, some pairs of rows are in no snapshot, nor are sums of changes alone: these may be what failed
            failed = of_rows(error)
            if self.target.view.refresh_mode == "incremental" or not failed:
                raise
            why_failed = f"with rows of both ends of the interval the query failed ({failed})"
            self.reading.fall_back(FallBackToRecompute(f"fell back to a full recompute: {why_failed}"))
        return self.of_query()

    def _of_changes(self) -> Edits | None:
        def stored(among: Mapping[str, Ranges]) -> DataFrame:
            return publish.stored_rows(self.pinned, self.reading, among)

        try:
            frame = changes.changes(self.definition, stored, self.reading)
            return None if frame is None else self.edits_of(frame)
        except SPARK_ERRORS as error:
            if INEXACT not in str(error):
                raise
            self._refuse_inexact()
            frame = changes.changes_of_inexact(self.definition, stored, self.reading)
            return None if frame is None else self.edits_of(frame)

    def _refuse_inexact(self) -> None:
        """Raise DefinitionError where the rows at hand can only be recomputed in full, and the configuration forbids that."""
        unguarded, view = self.definition.unguarded, self.definition.view
        if self.target.view.refresh_mode == "incremental" and not unguarded.scope:
            raise DefinitionError(
                f"View {view!r} has `refresh_mode: incremental`, and can't be refreshed incrementally now: for its present rows it uses "
                f"{unguarded.relation.order_dependent}. Nothing was written. Change the query, or set `refresh_mode: auto`."
            )

    def of_query(self) -> Edits | AllRows:
        """Edits that bring the stored rows to those of the recomputed query."""
        if self.replaces:
            return AllRows()
        definition = self.definition
        if definition.key is not None and self.gate is None and self.pinned.bytes > SMALL_TABLE:
            rows = in_names(definition, changes.rows_of_query(definition, self.reading))
            edits = compared(definition, rows, self.pinned, self.reading)
            if edits is not None:
                return edits
        return self.edits_of(changes.difference(definition, publish.stored_rows(self.pinned, self.reading, {}), self.reading))

    def edits_of(self, frame: DataFrame) -> Edits:
        """What weighted rows (in the tree's columns) change in the view's table, after the gate has seen them.

        Many changes of one table seldom add up in the view: where these do not, they need not be consolidated.
        """
        definition = self.definition
        if (
            definition.key is not None
            and self.gate is None
            and self.reading.frames.many
            and not self.reading.budget.reasons
            and self._one_moved()
        ):
            kept = self.reading.frames.keep_rows(frame)
            edits = keyed_apart(definition, _named(definition, kept), self.reading)
            if edits is not None:
                return edits
            frame = kept.frame
        changed = _named(definition, self.reading.frames.keep_consolidated(frame) or Changes(frame.limit(0), 0))
        if self.gate is not None:
            self.gate(self._candidate(changed.frame))
        return (keyed if definition.key is not None else of_multiset)(definition, changed, self.reading)

    def _one_moved(self) -> bool:
        return sum(self.reading.sources.changed_bytes(source) > 0 for source in self.definition.sources) == 1

    def _candidate(self, changed: DataFrame) -> Candidate:
        """The rows that some changes (under the view's names) insert, and all rows of the view after them."""
        names = schema(self.definition).names
        numbered = [f"{quoted(n)} AS c{i}" for i, n in enumerate(names)]
        stored = zset.weighted(self.target.log.head().rows().selectExpr(*numbered))
        after = zset.add([stored, changed.selectExpr(*numbered, f"{WEIGHT} AS {zset.WEIGHT}")])
        whole = zset.to_rows(zset.consolidate(after), f"view {self.definition.view}").toDF(*names)
        return Candidate(self.definition.view, self.stamp, visible(changed.where(F.col(WEIGHT) > 0).drop(WEIGHT)), visible(whole))

    def of_other_rows(self, rows: Pinned) -> Edits | None:
        """Edits that bring the stored rows to those of another version of the table, or of another table; None where they are the same."""
        new, old = (changes.in_tree_columns(self.definition, pinned.rows()) for pinned in (rows, self.pinned))
        changed = self.reading.frames.keep(zset.consolidate(zset.subtract(new, old)))
        return self.edits_of(changed.frame) if changed else None

    def checked(self, rows: DataFrame, persist: bool, doubled: bool) -> DataFrame:
        """All rows of the view, after the gate has seen them. `persist`: compute them now; `doubled`: a key may have several of them.
        Raises KeyViolationError where it has."""
        if self.gate is not None or persist or doubled:
            rows = self.reading.frames.keep_rows(rows).frame
        if doubled:
            refuse_doubled_keys(self.definition, rows)
        if self.gate is not None:
            self.gate(Candidate(self.definition.view, self.stamp, visible(rows), visible(rows)))
        return rows


def _named(definition: Definition, changes: Changes) -> Changes:
    """Changes under the view's column names."""
    return replace(changes, frame=in_names(definition, changes.frame))
