"""The only writer of view tables: rows, progress and idempotency pair in one commit.

Progress and rows can't disagree, whatever process is killed at whatever time: either the commit exists, with its stamp, or nothing does.
Of two concurrent refreshes, one has a number that the table has already seen, or a conflict, and is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lake.config.models import ViewConfig
from lake.core.phases import phase
from lake.core.sql import quoted
from lake.core.stamp import Stamp
from lake.delta.feed_properties import FEED
from lake.delta.listing import CHAR_TYPE
from lake.delta.log import Log
from lake.delta.pinned import Pinned
from lake.delta.retention import is_of_a_file_gone
from lake.delta.tables import Table, reason
from lake.delta.transaction import FILE, POSITION, Transaction, with_positions
from lake.errors import ConcurrencyError, InternalError, TargetError
from lake.refresh.row_edits import Edits
from lake.relations.reading import Reading
from lake.spark import steps
from lake.spark.failures import SPARK_ERRORS, of_rows
from lake.spark.key_ranges import Ranges
from lake.spark.session import settings
from lake.spark.types import INHERITED_METADATA, allows_null, is_nested
from lake.views.definition import Definition
from lake.views.table import KEY, app_id, clustered_by, describe, refuse_dropping, schema, set_properties

ATTEMPTS = 3
_CONFLICTS = ("DELTA_CONCURRENT", "ConcurrentModification", "ConcurrentTransaction", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")
_MOST_ROWS, FILE_ROWS = "spark.sql.files.maxRecordsPerFile", "500000"
"""Rows of a file that a build writes, at the most, unless the session says so."""


class LostRaceError(ConcurrencyError):
    """Another writer committed first; the caller reads what is published now and plans again."""


@dataclass(frozen=True)
class Target:
    """Where one refresh publishes: the view's own session, its table and its definition."""

    spark: SparkSession
    table: Table
    log: Log
    definition: Definition
    view: ViewConfig

    def describe(self, pinned: Pinned) -> bool:
        """Bring the table's description and properties up to date; returns whether that needed a commit."""
        return describe(self.spark, self.table, self.view, self.definition, pinned)


@phase("publish")
def publish(target: Target, stamp: Stamp, edits: Edits | None, reading: Reading) -> None:
    """Write the edits (None: no row changed) and the stamp in one commit.

    Raises LostRaceError, KeyViolationError, InternalError or TargetError; nothing is then written.
    """

    def act(pinned: Pinned) -> None:
        transaction = _prepared(target, stamp, edits, reading, pinned)
        if target.describe(pinned):  # its commit is newer than the version on which the transaction was prepared
            transaction = _prepared(target, stamp, edits, reading, target.log.head())
        _commit(transaction, stamp, edits)

    attempted(target, stamp, act)


def attempted(target: Target, stamp: Stamp, act: Callable[[Pinned], None]) -> None:
    """Commit on the newest version of the table, again where the commit lost to one that did not change what the view says.

    Raises LostRaceError or TargetError; nothing is then written.
    """
    for attempt in range(1, ATTEMPTS + 1):
        pinned = target.log.head()
        try:
            act(pinned)
            return
        except SPARK_ERRORS as error:
            _refuse_unless_conflict(target, stamp, error, pinned.version.number, attempt)


def begun(target: Target, stamp: Stamp, pinned: Pinned) -> Transaction:
    """A transaction on one version of the table. Raises LostRaceError where another refresh has published since."""
    refuse_dropping(target.table, pinned)
    transaction = Transaction(pinned)
    _refuse_lost(target, stamp, transaction.newest(app_id(stamp.view)) >= stamp.number)
    return transaction


def _prepared(target: Target, stamp: Stamp, edits: Edits | None, reading: Reading, pinned: Pinned) -> Transaction:
    """The transaction on one version of the table, with everything but its commit."""
    transaction = begun(target, stamp, pinned)
    if edits is not None:
        if edits.found is not None and edits.found[0] == pinned.version:
            doomed = edits.found[1]
        else:
            doomed = edits.positions(stored_rows(pinned, reading, edits.ranges), reading)
        if doomed is not None:
            gone = transaction.delete(steps.over(doomed.frame, steps.select([FILE, POSITION])), doomed.local)
            wanted = edits.updated + edits.deleted
            if gone != wanted:
                raise InternalError(f"View {stamp.view!r}: {gone} rows would be deleted instead of {wanted}. Nothing was written.")
        if edits.inserted or edits.updated:
            transaction.insert(edits.new)
    return transaction


def stored_rows(pinned: Pinned, reading: Reading, among: Mapping[str, Ranges | None]) -> DataFrame:
    """The rows of a view's table with their positions: all, on the driver, where they are few, else at least those with some keys."""
    whole = reading.small_table(pinned.version, lambda: with_positions(pinned.rows_among({})), pinned.bytes)
    if whole is not None:
        return whole.frame
    return with_positions(pinned.rows_among({name: ranges for name, ranges in among.items() if ranges is not None}))


def _commit(transaction: Transaction, stamp: Stamp, edits: Edits | None) -> None:
    found = (edits.inserted, edits.updated, edits.deleted) if edits is not None else (0, 0, 0)
    counts = dict(zip(("inserted", "updated", "deleted"), found, strict=True))
    transaction.commit(app_id(stamp.view), stamp.number, stamp.to_json(), counts)


@phase("publish")
def publish_rows(target: Target, stamp: Stamp, rows: DataFrame, by: Sequence[str], replace: bool = False) -> int:
    """Write whole rows and the stamp in one commit: the first build, or (replace) instead of all stored rows.

    `by`: the columns that the table is clustered by. Each task sorts its rows by them and cuts them into files, so that a file has few
    keys, and a later publish has to look into few files. Returns how many rows were written. Raises as `publish` does.
    """
    seen = Observation()
    counted = rows.observe(seen, F.count(F.lit(1)).alias("rows"))

    def act(pinned: Pinned) -> None:
        with settings(target.spark, _settings(target.spark, stamp)):
            _write(target, counted, by, replace)
        _refuse_lost(target, stamp, not _carries(target, pinned.version.number, stamp))

    attempted(target, stamp, act)
    return int(seen.get["rows"])


def publish_all(target: Target, stamp: Stamp, rows: DataFrame, replace: bool, redefined: bool = False) -> tuple[int, int]:
    """Write all rows of a view and the stamp in one commit (`replace`: instead of the stored rows), and describe the table.

    `redefined`: the columns may be others. Returns how many rows were inserted, and how many deleted. Raises as `publish` does.
    """
    deleted = 0
    if replace:
        stored = target.log.head()  # counted by its statistics, since the rows may no longer be readable
        deleted = stored.rows().count() if stored.count is None else stored.count
    if redefined:
        # Delta refuses to drop a column and to write rows in one commit while the feed is on; a reader of it then takes the data files
        set_properties(target.spark, target.table, {FEED: "false"})
    inserted = publish_rows(target, stamp, rows, clustered_by(target.view, target.definition), replace)
    target.describe(target.log.head())
    return inserted, deleted


def other_shape(definition: Definition, stored: Pinned) -> str:
    """Why the stored rows can't be compared with the view's, empty where they can: other columns, or a key that they may not have."""
    if not same_schema(definition, stored.schema):
        return "the view's columns changed"
    key = json.dumps(list(definition.key_names))
    return "the view's declared key changed" if definition.key_given and stored.properties.get(KEY) != key else ""


def same_schema(definition: Definition, columns: StructType) -> bool:
    """Whether the table has the columns that the definition wants, so that a difference can be published."""
    return _shape(schema(definition)) == _shape(columns)


def _shape(columns: StructType) -> list[tuple[str, str, bool, object]]:
    """Names, types, and whether nested values may be NULL. Earlier releases kept NOT NULL of nested fields, and lengths of CHARs."""
    return [(f.name, f.dataType.simpleString(), allows_null(f.dataType), f.metadata.get(CHAR_TYPE)) for f in columns.fields]


def _refuse_lost(target: Target, stamp: Stamp, lost: bool) -> None:
    if lost:
        raise LostRaceError(f"View {stamp.view!r}: another refresh published first. Nothing was written by this one.")


def _refuse_unless_conflict(target: Target, stamp: Stamp, error: Exception, before: int, attempt: int) -> None:
    """Return where the commit lost to one that did not change what the view says (OPTIMIZE), so that it may be tried again."""
    if of_rows(error) or is_of_a_file_gone(error):  # worded by who knows the query and its tables
        raise error
    if not is_conflict(error):
        raise TargetError(f"Publishing view {stamp.view!r} failed: {reason(error)}. Nothing was written.") from error
    if _refreshed_since(target, before) or attempt == ATTEMPTS:
        raise LostRaceError(f"View {stamp.view!r}: another writer committed first, {attempt} times. Nothing was written.") from error


def is_conflict(error: Exception) -> bool:
    """Whether a commit failed because of another one that was first."""
    text = f"{type(error).__name__} {error}"
    return "Concurrent" in type(error).__name__ or any(kind in text for kind in _CONFLICTS)


def _refreshed_since(target: Target, before: int) -> bool:
    """Whether a refresh was published since, so that trying again would be wrong."""
    return any(Stamp.from_json(c.user_metadata) is not None for c in target.log.commits(before, target.log.head().version.number))


def _carries(target: Target, before: int, stamp: Stamp) -> bool:
    """Whether one of the commits since carries this attempt's run id (trap 14)."""
    for commit in target.log.commits(before, target.log.head().version.number):
        found = Stamp.from_json(commit.user_metadata)
        if found is not None and found.run_id == stamp.run_id:
            return True
    return False


def _settings(spark: SparkSession, stamp: Stamp) -> dict[str, str]:
    """For a write on the view's own session (trap 17): the commit's metadata and idempotency pair, and how many rows a file may have."""
    most = spark.conf.get(_MOST_ROWS)
    return {
        "spark.databricks.delta.commitInfo.userMetadata": stamp.to_json(),
        "spark.databricks.delta.write.txnAppId": app_id(stamp.view),
        "spark.databricks.delta.write.txnVersion": str(stamp.number),
        "spark.databricks.delta.write.txnVersion.autoReset.enabled": "false",
        _MOST_ROWS: FILE_ROWS if most in (None, "0") else most,
    }


def _write(target: Target, rows: DataFrame, by: Sequence[str], replace: bool) -> None:
    target.table.refuse_writing()
    columns = schema(target.definition)
    rows = rows.select(*map(_as_stored, columns.fields))
    if by:
        rows = rows.sortWithinPartitions(*[F.col(quoted(n)) for n in by])
    writer = rows.write.format("delta").mode("overwrite" if replace else "append")
    if replace:
        writer = writer.option("overwriteSchema", "true")
    if target.table.path is not None:
        writer.save(target.table.path)
    else:
        writer.saveAsTable(str(target.table.name))


def _as_stored(field: StructField) -> Column:
    """A column by its type in the table: without this, lengths of VARCHARs and metadata of nested fields would become the table's."""
    column = F.col(quoted(field.name))
    casts = INHERITED_METADATA or is_nested(field.dataType)
    return (column.cast(field.dataType) if casts else column).alias(field.name, metadata={})
