"""Makes somebody else's table the table of a view: columns, properties, the rows that differ, and the stamp, in one commit.

Rows are deleted by writing the files that hold them again, since the table may not have deletion vectors before this commit:

    table - files + consolidate(files + changes) = table + changes        as multisets, where the files hold all that is deleted

The commit is on the version of the table that was compared with the query. Whoever commits in between is a conflict, and nothing is
written.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lake.core.phases import phase
from lake.core.snapshots import Snapshot
from lake.core.sql import quoted
from lake.core.stamp import Stamp
from lake.delta.feed_properties import FEED
from lake.delta.identity import marked
from lake.delta.listing import DataFiles
from lake.delta.pinned import Pinned
from lake.delta.sources import PinnedSources
from lake.delta.tables import reason, snapshot_of
from lake.delta.transaction import FILE, Transaction, names_in, with_files
from lake.errors import ConcurrencyError, TargetError
from lake.refresh.compute import Candidate, Gate
from lake.refresh.decide import Decision
from lake.refresh.primary_keys import of_nulls, refuse_broken
from lake.refresh.publish import Target, is_conflict
from lake.refresh.query_edit import NO_ROWS
from lake.refresh.row_edits import in_names, refuse_doubled_keys
from lake.relations.frames import Changes
from lake.relations.reading import Reading
from lake.spark import zset
from lake.spark.failures import SPARK_ERRORS, of_rows
from lake.views.definition import Definition
from lake.views.table import MAPPING, adopted_properties, app_id, schema, visible


@dataclass(frozen=True)
class _Replaced:
    """What the commit does to the rows: `files` go with all their rows, `rows` come; `inserted` and `deleted`: what a reader sees of it;
    `copied`: rows that only get hidden columns."""

    files: DataFiles | None = None
    rows: DataFrame | None = None
    inserted: int = 0
    deleted: int = 0
    copied: int = 0


@dataclass(frozen=True)
class AdoptRun:
    """A table, at the place of a view's, ready to become it. `pinned`: its version that was compared with the query; `whole`: all rows are
    written again; `repair`: those that differ are."""

    decision: Decision
    pinned: Pinned
    whole: bool
    repair: bool
    gate: Gate | None = None

    @property
    def definition(self) -> Definition:
        return self.decision.definition

    @phase("publish")
    def run(self) -> tuple[Stamp, int, int]:
        """Commit; returns the stamp, how many rows were inserted and how many deleted.

        Raises ConcurrencyError where another writer was first, BlockedError where the rows must not be published; nothing was written
        then. `refuse_doubled` has been asked before.
        """
        stamp = self.stamp()
        with self._reading() as reading:
            replaced = self._replaced(reading)
            if self.gate is not None:
                whole = replaced.rows if self.whole and replaced.rows is not None else self._will_be(reading)
                shown = visible(reading.frames.keep_rows(whole).frame)
                self.gate(Candidate(self.definition.view, stamp, shown, shown))
            try:
                self._commit(stamp, replaced)
            except SPARK_ERRORS as error:
                raise self._failed(error) from error
        table, log = self.decision.table, self.pinned.log
        Target(self.decision.spark, table, log, self.definition, self.decision.view).describe(log.head())
        return stamp, replaced.inserted, replaced.deleted

    def refuse_doubled(self) -> None:
        """Raise KeyViolationError where the rows that the view will have break a declared key: the view's, or one that its own depends on.
        Nothing is written."""
        definition, inputs = self.definition, self.decision.inputs
        with self._reading() as reading:
            declared = {t: inputs.primary_keys[t] for t in definition.sources if t in self.decision.path.config.tables}
            refuse_broken(definition, reading.sources, declared, inputs.pins)
            if definition.key_given or of_nulls(definition, reading.sources, inputs.primary_keys):
                refuse_doubled_keys(definition, self._will_be(reading))

    def _reading(self) -> Reading:
        inputs = self.decision.inputs
        return Reading(self.definition.catalyst, PinnedSources(inputs.tables, inputs.pins, None))

    def stamp(self) -> Stamp:
        """The stamp of the adoption: the snapshot at which the rows are the query's."""
        inputs, view, at = self.decision.inputs, self.definition.view, snapshot_of(self.decision.inputs.pins)
        number = max(self.pinned.transaction(app_id(view)), 0) + 1
        snapshot: Snapshot = marked(at, inputs.pins)
        base, bases = self.pinned.version.number, inputs.base_snapshot()
        return Stamp(view, number, uuid.uuid4().hex, base, snapshot, "adopt", self.definition.fingerprint, bases, time.time())

    # -- rows ---------------------------------------------------------------------------------------------------------------

    def _replaced(self, reading: Reading) -> _Replaced:
        if self.whole:
            rows = reading.frames.keep_rows(self._of_query(reading))
            counts = (rows.count or 0, self.pinned.rows().count(), 0) if self.repair else (0, 0, rows.count or 0)
            return _Replaced(self.pinned.listing.all_files(), rows.frame, *counts)
        return self._difference(reading) if self.repair else _Replaced()

    def _difference(self, reading: Reading) -> _Replaced:
        """The files that hold rows which the query does not give, and what is to be there instead."""
        stored = self._numbered(self.pinned.rows())
        found = reading.frames.keep(zset.consolidate(zset.subtract(self._numbered(self._of_query(reading)), stored)))
        if found is None:
            return _Replaced()
        inserted, deleted = zset.totals(found.frame, F.col(zset.WEIGHT))
        if not deleted:
            return _Replaced(None, self._named(zset.to_rows(found.frame, str(self.decision.table))), inserted, 0)
        files = self._files_of(found)
        after = zset.consolidate(zset.add([self._numbered(self.pinned.rows_of(files)), found.frame]))
        return _Replaced(files, self._named(zset.to_rows(after, str(self.decision.table))), inserted, deleted)

    def _files_of(self, changes: Changes) -> DataFiles:
        """The data files that hold a row which is as one that goes."""
        gone = changes.frame.where(F.col(zset.WEIGHT) < 0).drop(zset.WEIGHT)
        held = self._numbered(with_files(self.pinned.rows()), FILE)
        sought = gone.select(*[zset.canonical(F.col(f.name), f.dataType).alias(f"sought_{f.name}") for f in gone.schema.fields])
        same = F.lit(True)
        for field in gone.schema.fields:
            same = same & zset.canonical(F.col(field.name), field.dataType).eqNullSafe(F.col(f"sought_{field.name}"))
        return self.pinned.listing.holding(names_in(held.join(sought, on=same, how="left_semi")))

    def _of_query(self, reading: Reading) -> DataFrame:
        return in_names(self.definition, self.definition.unguarded.relation.snapshot(reading))

    def _numbered(self, rows: DataFrame, *more: str) -> DataFrame:
        columns = [F.col(quoted(c.name)).alias(f"c{i}") for i, c in enumerate(self.definition.table_columns)]
        return rows.select(*columns, *more)

    def _named(self, rows: DataFrame) -> DataFrame:
        return rows.toDF(*schema(self.definition).names)

    def _will_be(self, reading: Reading) -> DataFrame:
        """The rows that the view will have: where some are written again, those of the query, bit by bit."""
        return self._of_query(reading) if self.whole or self.repair else self.pinned.rows()

    # -- the commit ---------------------------------------------------------------------------------------------------------

    def _commit(self, stamp: Stamp, replaced: _Replaced) -> None:
        view, columns = self.decision.view, schema(self.definition)
        transaction = Transaction(self.pinned)
        transaction.read_all()
        transaction.newest(app_id(stamp.view))
        wanted = adopted_properties(view, self.definition)
        if replaced.rows is not None and not self._mapped:
            # Delta turns column mapping on in no commit that has rows for the change feed, or new columns; `describe` does it next
            wanted |= {FEED: "false"}
            if self.whole:
                del wanted[MAPPING]
        transaction.take(columns, wanted, view.description or "")
        if replaced.files is not None:
            transaction.remove(replaced.files)
        if replaced.rows is not None:
            transaction.insert(replaced.rows.select(*[F.col(quoted(n)) for n in columns.names]))
        seen = {"inserted": replaced.inserted, "deleted": replaced.deleted, "copied": replaced.copied}
        counts: Mapping[str, int] = {**NO_ROWS, **seen}
        transaction.commit(app_id(stamp.view), stamp.number, stamp.to_json(), counts)

    @property
    def _mapped(self) -> bool:
        return self.pinned.properties.get(MAPPING, "none").lower() == "name"

    def _failed(self, error: Exception) -> Exception:
        if of_rows(error):  # the query's own failure, worded as such
            return error
        place, view = self.decision.table.path or self.decision.table.name, self.definition.view
        if is_conflict(error):
            return ConcurrencyError(
                f"Another process wrote into {place} after its rows were compared with the query of view {view!r}. Nothing was written. "
                "Stop what writes into it, for example the nightly job, and run it again."
            )
        return TargetError(f"{place} could not become the table of view {view!r}: {reason(error)}. Nothing was written.")
