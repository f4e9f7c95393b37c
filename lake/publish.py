"""The only writer of view tables: rows, progress and idempotency pair in one commit.

Progress and rows can't disagree, whatever is killed whenever: either the commit is there, with its stamp, or nothing is. Two
refreshes at once carry the same or a lower number than what is there, so one is skipped or in conflict, and notices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lake.definition import Definition
from lake.deltalog import Log
from lake.edits import OP, SAMPLES, Edits, key_violation
from lake.errors import ConcurrencyError, InternalError, KeyViolationError, TargetError
from lake.stamp import Stamp
from lake.tables import Table, quoted, reason
from lake.view_table import app_id, schema

ATTEMPTS = 3
_KEY_FOUND, _ROW_MISSING = "LAKEJOIN_KEY_FOUND", "LAKEJOIN_ROW_MISSING"


class LostRaceError(ConcurrencyError):
    """Another writer committed first; the caller looks at what is published now and plans anew."""


@dataclass(frozen=True)
class Target:
    """Where one refresh publishes: the view's own session, its table and its definition."""

    spark: SparkSession
    table: Table
    log: Log
    definition: Definition

    def rows(self) -> DataFrame:
        """The rows that the table holds now."""
        return self.log.head().rows()


def publish(target: Target, stamp: Stamp, edits: Edits) -> None:
    """Write the edits and the stamp in one commit. Raises LostRaceError, KeyViolationError, InternalError; then nothing is written."""
    if edits.only_inserts and target.definition.key is not None and target.definition.key.declared and edits.inserted:
        _refuse_existing_keys(target, edits)
    if edits.only_inserts:
        _commit(target, stamp, lambda: _append(target, edits.new_rows))
    else:
        _commit(target, stamp, lambda: _merge(target, edits))


def publish_rows(target: Target, stamp: Stamp, rows: DataFrame, replace: bool = False) -> int:
    """Write whole rows and the stamp in one commit: the first build, or (replace) instead of all that the table holds.

    Returns how many rows were written.
    """
    seen = Observation()
    counted = rows.observe(seen, F.count(F.lit(1)).alias("rows"))
    _commit(target, stamp, lambda: _append(target, counted, replace))
    return int(seen.get["rows"])


def same_schema(definition: Definition, held: StructType) -> bool:
    """Whether the table has the columns that the definition wants, so that a difference can be published."""
    return [(f.name, f.dataType) for f in schema(definition).fields] == [(f.name, f.dataType) for f in held.fields]


def _commit(target: Target, stamp: Stamp, write: Callable[[], None]) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        before = target.log.head().version.number
        try:
            with _settings(target.spark, stamp):
                write()
        except (PySparkException, Py4JJavaError) as error:
            _raise_meant(target, error)
            if not _is_conflict(error):
                raise TargetError(f"Publishing view {stamp.view!r} failed: {reason(error)}. Nothing was written.") from error
            if _ours_or_another(target, before, stamp) or attempt == ATTEMPTS:
                raise LostRaceError(
                    f"View {stamp.view!r}: another writer committed first, {attempt} times. Nothing was written."
                ) from error
            continue
        if not _carries(target, before, stamp):
            raise LostRaceError(f"View {stamp.view!r}: another refresh published first. Nothing was written by this one.")
        return


def _raise_meant(target: Target, error: Exception) -> None:
    """Raise the errors that the MERGE raises on purpose."""
    text = str(error)
    if _KEY_FOUND in text:
        keys = text.split(_KEY_FOUND, 1)[1].splitlines()[0].split("SQLSTATE")[0].strip()
        raise KeyViolationError(
            f"The key ({', '.join(target.definition.key_names)}) of view {target.definition.view!r}, derived from the declared primary "
            f"keys of {', '.join(target.definition.sources)}, would have two rows for {keys}. Nothing was published."
        ) from error
    if _ROW_MISSING in text or "LAKEJOIN_INTERNAL" in text:
        raise InternalError(
            f"A refresh of view {target.definition.view!r} would change a row that its table does not hold. Nothing was written. Run "
            f'"lakejoin verify {target.definition.view}", then "lakejoin rebuild {target.definition.view}".'
        ) from error


def _is_conflict(error: Exception) -> bool:
    text = f"{type(error).__name__} {error}"
    return (
        "DELTA_CONCURRENT" in text
        or "ConcurrentModification" in text
        or "ConcurrentTransaction" in text
        or "Concurrent" in type(error).__name__
    )


def _ours_or_another(target: Target, before: int, stamp: Stamp) -> bool:
    """Whether a refresh (of this number or another) was published since, so that trying again would be wrong."""
    return any(Stamp.from_json(c.user_metadata) is not None for c in target.log.commits(before, target.log.head().version.number))


def _carries(target: Target, before: int, stamp: Stamp) -> bool:
    """Whether one of the commits since carries this attempt's run id (trap 14)."""
    for commit in target.log.commits(before, target.log.head().version.number):
        found = Stamp.from_json(commit.user_metadata)
        if found is not None and found.run_id == stamp.run_id:
            return True
    return False


@contextmanager
def _settings(spark: SparkSession, stamp: Stamp) -> Iterator[None]:
    """The commit's metadata and idempotency pair, on the view's own session only (trap 17)."""
    values = {
        "spark.databricks.delta.commitInfo.userMetadata": stamp.to_json(),
        "spark.databricks.delta.write.txnAppId": app_id(stamp.view),
        "spark.databricks.delta.write.txnVersion": str(stamp.number),
        "spark.databricks.delta.write.txnVersion.autoReset.enabled": "false",
    }
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in values:
            spark.conf.unset(key)


def _append(target: Target, rows: DataFrame, replace: bool = False) -> None:
    names = schema(target.definition).names
    writer = rows.select(*[F.col(quoted(n)) for n in names]).write.format("delta").mode("overwrite" if replace else "append")
    if replace:
        writer = writer.option("overwriteSchema", "true")
    if target.table.path is not None:
        writer.save(target.table.path)
    else:
        writer.saveAsTable(str(target.table.name))


def _merge(target: Target, edits: Edits) -> None:
    names = schema(target.definition).names
    condition = F.lit(True) if edits.narrowing is None else edits.narrowing
    for name in edits.identity:
        condition = condition & F.col(f"t.{quoted(name)}").eqNullSafe(F.col(f"s.{quoted(name)}"))
    keys = F.to_json(F.struct(*[F.col(f"s.{quoted(n)}").alias(n) for n in edits.identity]))
    types = {f.name: f.dataType for f in schema(target.definition).fields}
    first = edits.identity[0]
    found = F.raise_error(F.concat(F.lit(_KEY_FOUND), keys)).cast(types[first])
    missing = F.raise_error(F.lit(_ROW_MISSING)).cast(types[first])
    row: dict[str, str | Column] = {quoted(n): F.col(f"s.{quoted(n)}") for n in names}
    op = F.col(f"s.{OP}")
    table = target.table
    merge = DeltaTable.forPath(target.spark, table.path) if table.path else DeltaTable.forName(target.spark, str(table.name))
    (
        merge.alias("t")
        .merge(edits.rows.alias("s"), condition)
        .whenMatchedDelete(op == "D")
        .whenMatchedUpdate(op == "U", row)
        .whenMatchedUpdate(set=dict[str, str | Column]({quoted(first): found}))
        .whenNotMatchedInsert(op == "I", row)
        .whenNotMatchedInsert(values=dict[str, str | Column]({quoted(first): missing}))
        .execute()
    )


def _refuse_existing_keys(target: Target, edits: Edits) -> None:
    """A declared key is checked where rows are inserted, within the changes' range (trap 13)."""
    held = target.rows().alias("t")
    if edits.narrowing is not None:
        held = held.where(edits.narrowing)
    new = edits.rows.alias("s")
    same = F.lit(True)
    for name in edits.identity:
        same = same & F.col(f"t.{quoted(name)}").eqNullSafe(F.col(f"s.{quoted(name)}"))
    samples = (
        held.join(F.broadcast(new) if edits.local else new, on=same, how="left_semi")
        .select(*[F.col(quoted(n)) for n in edits.identity])
        .take(SAMPLES)
    )
    if samples:
        raise key_violation(target.definition, [tuple(s) for s in samples])
