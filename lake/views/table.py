"""A view's table: where it is, how it is made, and what it says was published last. Nothing here writes rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lake.config.models import HIDDEN_PREFIX, ViewConfig
from lake.core.phases import phase
from lake.core.sql import quoted
from lake.core.stamp import Stamp
from lake.delta.actions import Commit
from lake.delta.feed_properties import FEED
from lake.delta.file_changes import rows_of_feed
from lake.delta.log import Log
from lake.delta.pinned import Pinned
from lake.delta.statistics import HAVE_STATISTICS, STATISTICS_COLUMNS, statistics_columns
from lake.delta.tables import Table, reason
from lake.errors import ConfigError, TargetError
from lake.spark.failures import SPARK_ERRORS, advice, lacks_a_jar
from lake.spark.types import nullable
from lake.spark.zset import WEIGHT
from lake.views.definition import Definition
from lake.views.others import other_commit
from lake.views.recorded import recorded_property
from lake.views.stamps import newest_stamp

KEY = "lakejoin.key"
"""The columns of the view's key, as JSON, for views that read it; empty where there is none, or a column of it is hidden."""
DROPPING = "lakejoin.dropping"
"""The name of the view, from the first commit of its drop on (`lakejoin.view` is then empty)."""
MAPPING = "delta.columnMapping.mode"
_MARKS = {"delta.enableDeletionVectors": "true", MAPPING: "name"}  # by which a publish deletes rows, and an edit renames columns


@dataclass(frozen=True)
class Published:
    """The newest state of a view's table, and the stamp it was published with (None: made, but not built)."""

    view: str
    pinned: Pinned
    stamp: Stamp | None

    @property
    def next_number(self) -> int:
        """A refresh number greater than all that the table has seen (trap 14).

        Along the log numbers only grow, so the newest stamp has the greatest, unless somebody else wrote after it (RESTORE): there
        is then no stamp here, and the table's own transactions say.
        """
        return (self.stamp.number if self.stamp else max(self.pinned.transaction(app_id(self.view)), 0)) + 1


def refuse_ambiguous(spark: SparkSession, target: str | None, table: Table) -> None:
    """Raise TargetError if a target of one word could be a folder or a schema, and the view's table is not in the folder yet."""
    if target is not None and spark.catalog.databaseExists(target) and open_log(spark, table) is None:
        raise TargetError(
            f"`target: {target}` may be a folder or the schema {target!r}, which exists. Nothing was written. Write which: "
            f"`target: {{path: {target}}}` or `target: {{schema: {target}}}`."
        )


def app_id(view: str) -> str:
    """The idempotency pair's application id."""
    return f"lakejoin/{view}"


def open_log(spark: SparkSession, table: Table) -> Log | None:
    """The view table's log, None where there is no table yet."""
    try:
        log = Log(spark, table.path, table.name, table.refuse_writing)
        return log if log.exists else None
    except SPARK_ERRORS as error:
        if not lacks_a_jar(error) and ("NOT_FOUND" in str(error) or "not found" in str(error).lower()):
            return None
        raise TargetError(f"The table of view {table} can't be opened: {reason(error)}. {advice(error, '')}".rstrip()) from error


def refuse_dropping(table: Table, pinned: Pinned) -> None:
    """Raise TargetError if the table's drop was begun."""
    if pinned.properties.get(DROPPING) == table.label:
        raise TargetError(f'The drop of view {table} was begun, and has not ended. Run "lakejoin drop {table.label}" to finish it.')


def published(spark: SparkSession, table: Table) -> Published | None:
    """The newest state of the view's table, None where there is none.

    Raises TargetError where another writer changed its data since (trap 15), or where Lakejoin did not create it.
    """
    return _published(spark, table, partial(refuse_others, table))


def published_and_others(spark: SparkSession, table: Table) -> tuple[Published | None, list[Commit]]:
    """The same, also where another writer changed its data since, and the commits of others, oldest first."""
    found: list[Commit] = []
    current = _published(spark, table, lambda _, commit: found.append(commit))
    return current, sorted(found, key=lambda commit: commit.number)


@phase("read logs")
def _published(spark: SparkSession, table: Table, on_other: Callable[[Pinned, Commit], None]) -> Published | None:
    log = open_log(spark, table)
    if log is None:
        return None
    try:
        pinned = log.head()
    except SPARK_ERRORS as error:
        raise TargetError(f"The log of the table of view {table} can't be read: {reason(error)}.") from error
    refuse_dropping(table, pinned)
    if pinned.properties.get("lakejoin.view") != table.label:
        raise TargetError(
            f"There is a Delta table at {table.path or table.name} that Lakejoin did not make for view {table.label!r}. Move it away, set "
            f'another `target` in the configuration, or, if it has the rows of the view, let the view go on from it: "lakejoin adopt '
            f'{table.label} --verify-first".'
        )
    stamp = newest_stamp(pinned.version.number, lambda number: _commit(log, table, number), partial(on_other, pinned))
    return Published(table.label, pinned, stamp)


@dataclass(frozen=True)
class Publication:
    """One version of a view's table that a refresh published: when (seconds since 1970), with which stamp, and how many rows it changed."""

    version: int
    committed: float
    stamp: Stamp
    rows_inserted: int
    rows_deleted: int

    @property
    def seconds(self) -> float | None:
        """How long the refresh took, where that is known."""
        return self.committed - self.stamp.started if self.stamp.started is not None else None

    def to_json(self) -> dict[str, Any]:
        """`snapshot`: the version of each source that the rows were computed from; `reason`: why the query was recomputed, if it was."""
        return {
            "version": self.version,
            "published": datetime.fromtimestamp(self.committed, UTC).isoformat(),
            "mode": self.stamp.mode,
            "reason": self.stamp.reason,
            "rows_inserted": self.rows_inserted,
            "rows_deleted": self.rows_deleted,
            "snapshot": dict(self.stamp.snapshot),
            "seconds": None if self.seconds is None else round(self.seconds, 3),
        }


def publications(spark: SparkSession, table: Table) -> Iterator[Publication]:
    """The versions of the view's table with a stamp, oldest first; none where there is no table. Compaction repeats the newest stamp."""
    log = open_log(spark, table)
    for commit in log.history() if log is not None else ():
        stamp = Stamp.from_json(commit.get("userMetadata"))
        if stamp is None:
            continue
        counts = {name: int(n) for name, n in (commit.get("operationMetrics") or {}).items() if str(n).isdigit()}
        updated = counts.get("numTargetRowsUpdated", 0)
        inserted = counts.get("numTargetRowsInserted", counts.get("numOutputRows", 0)) + updated
        deleted = counts.get("numTargetRowsDeleted", 0) + updated
        yield Publication(int(commit["version"]), seconds_of(commit["timestamp"]), stamp, inserted, deleted)


def of_refreshes(found: Iterable[Publication]) -> list[Publication]:
    """Of publications, oldest first, those that a refresh made: the first with each stamp."""
    first: dict[int, Publication] = {}
    for publication in found:
        first.setdefault(publication.stamp.number, publication)
    return list(first.values())


def seconds_of(timestamp: object) -> float:
    """A time of Delta's history, in seconds since 1970."""
    return float(timestamp) / 1000 if isinstance(timestamp, int | float) else datetime.fromisoformat(str(timestamp)).timestamp()


def _commit(log: Log, table: Table, number: int) -> Commit:
    try:
        return next(log.commits(number - 1, number))
    except (StopIteration, *SPARK_ERRORS) as error:
        raise TargetError(
            f"Version {number} of the table of view {table} is no longer in its log, so what was published last can't be read. "
            f'Run "{table.recreate_command}".'
        ) from error


def refuse_others(table: Table, pinned: Pinned, commit: Commit) -> None:
    """Raise TargetError for a commit of somebody else."""
    said = other_commit(commit, [name for name in pinned.schema.names if not name.startswith(HIDDEN_PREFIX)]).quoting_nothing
    raise TargetError(
        f"Version {commit.number} of the table of view {table} was written by someone else ({commit.operation}), {said.details}. Lakejoin "
        f'can\'t know its rows. Nothing was written. Run "{table.recreate_command}" to make it exact again.'
    )


def schema(definition: Definition) -> T.StructType:
    """The table's columns: the query's, then the hidden ones; all nullable, at every level."""
    columns = [T.StructField(c.name, nullable(c.data_type), True) for c in definition.table_columns]
    return T.StructType(columns)


_STRONG = {
    FEED: "true",
    "delta.logRetentionDuration": "interval 3650 days",  # the stamp is in the log only (trap 16)
}
_RARE_CHECKPOINTS = {"delta.checkpointInterval": "30"}
"""Of tables made for views: a checkpoint takes twice as long as a refresh of few rows. Delta's default is one after 10 commits."""
_EVENTUAL = {  # a commit a second: its newest has the stamp, and nobody asks for an old one
    FEED: "false",
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
    "delta.checkpointInterval": "500",  # within a batch it takes as long as the batch; the real-time path writes one when no batch waits
}
_REPLAY = {**_STRONG, "delta.deletedFileRetentionDuration": "interval 3650 days"}  # each version stays readable


def _path_properties(table: Table) -> dict[str, str]:
    """The properties by which the tables of the paths differ."""
    return {"strong": _STRONG, "eventual": _EVENTUAL, "replay": _REPLAY}[table.kind]


def create(spark: SparkSession, table: Table, view: ViewConfig, definition: Definition) -> None:
    """Create the empty table. The first publish writes its rows and the stamp. Raises TargetError."""
    table.refuse_writing()
    if "`" in (table.path or ""):  # Delta's table builder pastes the path between backticks without doubling those in it
        raise TargetError(
            f"The table of view {table} can't be created: its path has a backtick, which Delta can't quote. Set another target."
        )
    builder = DeltaTable.createIfNotExists(spark)
    builder = builder.location(table.path) if table.path is not None else builder.tableName(str(table.name))
    builder = builder.addColumns(schema(definition))
    # a metastore keeps the properties with which a table is made, and may have little room for each
    recorded = recorded_property(definition, view) if table.kind == "strong" and table.path is not None else {}
    for name, value in (_RARE_CHECKPOINTS | _path_properties(table) | recorded | properties(view, definition)).items():
        builder = builder.property(name, value)
    if view.description:
        builder = builder.comment(view.description)
    clustering = () if table.eventual else clustered_by(view, definition)  # there every compaction would rewrite what is not clustered yet
    if clustering:
        builder = builder.clusterBy(*map(quoted, clustering))
    try:
        builder.execute()
    except SPARK_ERRORS as error:
        raise TargetError(f"The table of view {table} can't be created: {reason(error)}.") from error


def adopted_properties(view: ViewConfig, definition: Definition) -> dict[str, str]:
    """All properties of a view's table, for a table that it did not create."""
    return {**_STRONG, **recorded_property(definition, view), **properties(view, definition)}


def describe(spark: SparkSession, table: Table, view: ViewConfig, definition: Definition, pinned: Pinned) -> bool:
    """Set the table's description and properties to those of the configuration; returns whether any of them differed."""
    table.refuse_writing()
    recorded = recorded_property(definition, view) if table.kind == "strong" else {}
    wanted = {FEED: _path_properties(table)[FEED], **_MARKS} | recorded | _reader_properties(view, definition) | view.properties
    has = {_property(k): v for k, v in pinned.properties.items()}
    last = {_property(k): (k, v) for k, v in wanted.items()}  # the user's own come after ours
    changed = {k: v for name, (k, v) in last.items() if has.get(name) != v and not pinned.supports(k, v)}
    set_properties(spark, table, changed)
    removed = [k for k in ("lakejoin.owner", "lakejoin.tags") if k in pinned.properties and k not in wanted]
    if removed:
        spark.sql(f"ALTER TABLE {table.sql} UNSET TBLPROPERTIES IF EXISTS ({', '.join(map(_text, removed))})")
    described = (view.description or "") != pinned.description
    if described:
        spark.sql(f"COMMENT ON TABLE {table.sql} IS {_text(view.description or '')}")
    return bool(changed or removed or described)


def _property(name: str) -> str:
    """A property's name, by which it is known again: Delta writes those of its own in its own way."""
    return name.lower() if name.lower().startswith("delta.") else name


def set_properties(spark: SparkSession, table: Table, wanted: Mapping[str, str]) -> None:
    """Set properties of the table, in a commit of their own that changes no data."""
    table.refuse_writing()
    if wanted:
        shown = ", ".join(f"{_text(k)} = {_text(v)}" for k, v in wanted.items())
        spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({shown})")


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _reader_properties(view: ViewConfig, definition: Definition) -> dict[str, str]:
    """What configuration and definition tell readers of the table."""
    hidden = any(n.startswith(HIDDEN_PREFIX) for n in definition.key_names)
    found = {
        KEY: json.dumps([] if hidden else definition.key_names),
        "lakejoin.owner": view.owner,
        "lakejoin.tags": ",".join(view.tags),
    }
    return {k: v for k, v in found.items() if v}


def properties(view: ViewConfig, definition: Definition) -> dict[str, str]:
    """The table's properties; the user's own come last."""
    found = {
        "lakejoin.view": definition.view,
        **_MARKS,
    }
    statistics = statistics_columns(schema(definition), [*definition.key_names, *view.cluster_by])
    if statistics:
        found[STATISTICS_COLUMNS] = statistics
    return found | _reader_properties(view, definition) | view.properties


def clustered_by(view: ViewConfig, definition: Definition) -> tuple[str, ...]:
    """The columns that the table is clustered by: the configured ones, else the key; four at the most."""
    types = {f.name: f.dataType for f in schema(definition).fields}
    for name in view.cluster_by:
        if name not in types:
            raise ConfigError(f"`views.{definition.view}.cluster_by`: the view has no column {name!r}. It has: {', '.join(types)}.")
    wanted = view.cluster_by or definition.key_names
    return tuple(n for n in wanted if isinstance(types[n], HAVE_STATISTICS))[:4]


def deleted(pinned: Pinned, columns: Sequence[str]) -> DataFrame | None:
    """The rows that were deleted from the view's table, each as often as it was; None where its log no longer has them."""
    try:
        rows = rows_of_feed(pinned, 0, [f"{quoted(name)} AS {quoted(name)}" for name in columns])
        gone = rows.where(F.col(WEIGHT) < 0).drop(WEIGHT)
        gone.isEmpty()  # its files may no longer exist
    except SPARK_ERRORS:
        return None
    return gone


def visible(frame: DataFrame) -> DataFrame:
    """A view table's rows without the hidden columns."""
    return frame.drop(*[c for c in frame.columns if c.startswith(HIDDEN_PREFIX)])
