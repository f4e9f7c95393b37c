"""The only user of Delta's internals: heads, pinned snapshots and commits of one table's log.

Public readers can't hold a snapshot: a frame over the newest version moves when the table does, and one over a numbered
version replays the log at each read and is refused once the commit is older than the retention, even where it is the newest.
A `Pinned` holds the snapshot that it was captured with. Pinned with Delta 4.4.
"""

from __future__ import annotations

import json
from base64 import b85decode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlparse
from uuid import UUID

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType, _parse_datatype_json_string

from lake.core.snapshots import Version
from lake.core.sql import quoted
from lake.delta.snapshot_cache import MOST_FILES, State
from lake.spark.jvm.gateway import Java, Scala, active, jvm_of
from lake.spark.key_ranges import Ranges, statistics

MOST_NAMES = 1_000
CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""Under which the metadata of a STRING column say that it is a CHAR or VARCHAR, which Spark then pads, or checks the length of."""
_FEW_COMMITS = 100
_ROW_GROUP = 256 << 20
_Z85 = str.maketrans(
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
)
"""From ZeroMQ's alphabet of base 85 (its RFC 32), in which Delta writes, to that of RFC 1924, which Python reads."""


@dataclass(frozen=True)
class FileAction:
    """A data file that a commit added or removed. `body`: what the log says of it, without statistics; `vector`: the id of its deletion
    vector, empty where it has none; `rows`: how many it had, None where it has no statistics."""

    added: bool
    body: dict[str, Any]
    rows: int | None = None

    @property
    def path(self) -> str:
        return str(self.body["path"])

    @property
    def bytes(self) -> int:
        return int(self.body.get("size") or 0)

    @property
    def deleted(self) -> int:
        """How many of its rows its deletion vector marks as deleted."""
        return int((self.body.get("deletionVector") or {}).get("cardinality", 0))

    @cached_property
    def vector(self) -> str:
        found = self.body.get("deletionVector") or {}
        return "".join(str(found.get(part, "")) for part in ("storageType", "pathOrInlineDv", "offset"))

    @property
    def stored(self) -> list[str]:
        """The names of the files that hold it and its deletion vector, without folders; none of those that lie outside the table."""
        found = self.body.get("deletionVector") or {}
        names = [] if urlparse(self.path).scheme or self.path.startswith("/") else [unquote(self.path)]
        if found.get("storageType") == "u":  # its file's name is a UUID in Z85, of 20 characters, after any folder's name
            number = b85decode(str(found["pathOrInlineDv"])[-20:].translate(_Z85))
            names.append(f"deletion_vector_{UUID(bytes=number)}.bin")
        return [name.rpartition("/")[2] for name in names]

    @property
    def key(self) -> tuple[str, str]:
        """What it is that was added or removed: the file with these rows deleted."""
        return self.path, self.vector


@dataclass(frozen=True)
class Commit:
    """What one commit did, as far as Lakejoin asks. `files`: those that change data; `rearranged`: those of OPTIMIZE and its like, which
    don't; `change_files`: bytes, by path, of the files that it wrote for the change data feed alone; `metadata`: the table's, where it set
    them."""

    number: int
    timestamp: int
    operation: str
    user_metadata: str | None
    metadata: Mapping[str, Any] | None
    files: tuple[FileAction, ...]
    rearranged: tuple[FileAction, ...]
    change_files: Mapping[str, int]

    @property
    def time(self) -> datetime:
        """When it was made."""
        return datetime.fromtimestamp(self.timestamp / 1000, UTC)

    @property
    def changes_data(self) -> bool:
        return bool(self.files)

    @property
    def table_id(self) -> str | None:
        """The table's id, where it set its metadata."""
        return None if self.metadata is None else str(self.metadata["id"])

    @property
    def feed(self) -> list[str]:
        """The names of the files that its change feed is read from: those written for it alone, else its data files."""
        return [path.rpartition("/")[2] for path in self.change_files] or [name for file in self.files for name in file.stored]


def schema_of(text: str) -> StructType:
    """A table's columns, from the JSON that its log has of them."""
    schema = _parse_datatype_json_string(text)
    assert isinstance(schema, StructType)
    return schema


def physical_name(field: StructField) -> str:
    """A column's name in the data files."""
    return str(field.metadata.get("delta.columnMapping.physicalName", field.name))


@dataclass(frozen=True, eq=False)
class Pinned:
    """One version of one table, held: its rows stay readable while the table moves on."""

    log: Log
    snapshot: Java
    _commits: dict[int, Sequence[Commit]] = field(init=False, default_factory=dict)

    def commits(self, since: int) -> Iterable[Commit]:
        """The commits since+1..(this version), oldest first; where they are few they are read once. Raises where one is no longer there."""
        number = self.version.number
        if number - since > _FEW_COMMITS:
            return self.log.commits(since, number)
        if since not in self._commits:
            self._commits[since] = list(self.log.commits(since, number))
        return self._commits[since]

    @cached_property
    def version(self) -> Version:
        return Version(str(self.snapshot.metadata().id()), int(self.snapshot.version()))

    @cached_property
    def time(self) -> datetime:
        """When it was committed."""
        return datetime.fromtimestamp(int(self.snapshot.timestamp()) / 1000, UTC)

    @cached_property
    def schema(self) -> StructType:
        return schema_of(self.snapshot.schema().json())

    @property
    def partitioned_by(self) -> list[str]:
        """The columns that the table's files are split by."""
        return self.log.scala.list(self.snapshot.metadata().partitionColumns())

    @cached_property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return self.log.scala.dict(self.snapshot.metadata().configuration())

    @cached_property
    def description(self) -> str:
        """The table's comment."""
        return str(self.snapshot.metadata().description() or "")

    @cached_property
    def bytes(self) -> int:
        """The size of the table's data files."""
        return int(self.snapshot.sizeInBytes() if self._checksum is None else self._checksum.tableSizeBytes())

    @cached_property
    def _checksum(self) -> Java | None:
        """What this version's writer noted of the whole table beside the commit; without it the log has to be replayed, in Spark jobs."""
        found = self.snapshot.checksumOpt()
        return None if found.isEmpty() else found.get()

    @property
    def files(self) -> int:
        """How many data files the table has."""
        return int(self.snapshot.numOfFiles() if self._checksum is None else self._checksum.numFiles())

    @property
    def since_checkpoint(self) -> int:
        """How many commits came after the newest checkpoint of the log."""
        return self.version.number - int(self.snapshot.checkpointProvider().version())

    @cached_property
    def count(self) -> int | None:
        """The number of rows, by the files' statistics; None where a file has none."""
        files = DataFrame(self.snapshot.allFiles().toDF(), self.log.spark)
        rows = "sum(get_json_object(stats, '$.numRecords')::bigint - coalesce(deletionVector.cardinality, 0))"
        found = files.selectExpr(f"IF(count(*) = count(stats), coalesce({rows}, 0), NULL)").head()
        return None if found is None or found[0] is None else int(found[0])

    @property
    def has_feed(self) -> bool:
        """Whether the change data feed is on at this version."""
        return self._is_on("delta.enableChangeDataFeed")

    def supports(self, name: str, value: str) -> bool:
        """Whether a property asks for what the table's protocol has: Delta keeps no such property."""
        protocol, name = self.snapshot.protocol(), name.lower()
        least = {"delta.minreaderversion": protocol.minReaderVersion, "delta.minwriterversion": protocol.minWriterVersion}
        if name in least:
            return value.isdigit() and int(value) <= int(least[name]())
        feature = name.removeprefix("delta.feature.")
        if feature == name:
            return False
        known = protocol.readerAndWriterFeatureNames()
        return feature in {str(each).lower() for each in self.log.scala.list(known.toSeq())}

    @property
    def widens_types(self) -> bool:
        """Whether its columns may be given types that hold those that they had."""
        return self._is_on("delta.enableTypeWidening")

    def _is_on(self, name: str) -> bool:
        return self.properties.get(name, "false").lower() == "true"

    def rows(self) -> DataFrame:
        """All rows, with the table's own column names."""
        scala = self.log.scala
        relation = self.log.java.createRelation(scala.seq([]), scala.some(self.snapshot), scala.none, True)
        return DataFrame(self.log.spark._jsparkSession.baseRelationToDataFrame(relation), self.log.spark)

    def bytes_among(self, keys: Mapping[str, Ranges]) -> int:
        """The size of the files that `rows_among` reads, or of all where Delta chooses them."""
        return sum(size for _, size in self._files_among(keys)) if self._few_files else self.bytes

    def rows_among(self, keys: Mapping[str, Ranges]) -> DataFrame:
        """The rows of those files that may hold some keys, by column.

        Which these are is told here, from the files' statistics: Delta would run two Spark jobs, and a filter with literals makes code that
        has to be generated and compiled anew in each refresh. Delta does it, and Parquet by row groups, where files are many or large.
        """
        few = self._few_files
        chosen = self._files_among(keys) if few else []
        rows = self.rows_of([file for file, _ in chosen]) if few else self.rows()
        if not keys or (few and all(size < _ROW_GROUP for _, size in chosen)):
            return rows
        return rows.where(" AND ".join(ranges.condition(quoted(name)) for name, ranges in keys.items()))

    @cached_property
    def _few_files(self) -> bool:
        return self.files <= MOST_FILES

    def _files_among(self, keys: Mapping[str, Ranges]) -> list[tuple[Java, int]]:
        """(file, bytes) of those that may hold the keys."""
        fields = {f.name: f for f in self.schema.fields}
        told = {physical_name(fields[n]): (fields[n].dataType, ranges) for n, ranges in keys.items() if not _is_padded(fields[n])}
        return [
            (self._listed[0].get(i), size)
            for i, (size, stats) in enumerate(self._files)
            if all(ranges.may_be_in(statistics(stats, name, data_type)) for name, (data_type, ranges) in told.items())
        ]

    @cached_property
    def _files(self) -> list[tuple[int, dict[str, Any]]]:
        """(bytes, statistics by column) of each file of `_listed`."""
        return [(int(add["size"]), _statistics(add)) for add in self._listed[1]]

    def data_files(self) -> list[FileAction]:
        """What the log says of each data file."""
        return [file_action(add) for add in self._listed[1]]

    def files_at(self, paths: Collection[str]) -> list[Java]:
        """The log's entries of some of `data_files`, by their paths."""
        files, said = self._listed
        return [files.get(i) for i, add in enumerate(said) if add["path"] in paths]

    @property
    def listed(self) -> Java | None:
        """The log's entries of all files, as a list in the JVM; None where they are many."""
        return self._listed[0] if self._few_files else None

    def files_named(self, names: Collection[str]) -> list[Java]:
        """The log's entries, with their statistics, of the files of these names (without folders); of all files for too many names."""
        if len(names) > MOST_NAMES:
            return list(self.snapshot.allFiles().collect())
        if self._noted is not None:
            files, said = self._noted
            return [files.get(i) for i, add in enumerate(said) if add["path"].rpartition("/")[2] in names]
        wanted = F.substring_index("path", "/", -1).isin(sorted(names))
        return list(self.snapshot.allFiles().filter(wanted._jc).collect())

    @cached_property
    def _listed(self) -> tuple[Java, list[dict[str, Any]]]:
        """All files, as a list in the JVM, and what the log says of each."""
        return self._noted or self._said(self.snapshot.allFiles().collectAsList())

    @cached_property
    def _noted(self) -> tuple[Java, list[dict[str, Any]]] | None:
        """The same where the checksum lists the files, else None."""
        noted = None if self._checksum is None else self._checksum.allFiles()
        if noted is None or noted.isEmpty():
            return None
        files, said = self._said(self.log.scala.java_list(noted.get()))
        return (files, said) if len(said) == self.files and sum(int(add["size"]) for add in said) == self.bytes else None

    def _said(self, files: Java) -> tuple[Java, list[dict[str, Any]]]:
        """The list, with what the log says of each, in one trip to the JVM."""
        said: list[dict[str, Any]] = json.loads(self.log.jvm.org.apache.spark.sql.delta.util.JsonUtils.toJson(files, None))
        return files, said

    def rows_of(self, files: list[Java]) -> DataFrame:
        """The rows of some data files (AddFile actions, with their deletion vectors), read by this version's schema."""
        log = self.log
        return DataFrame(log.jvm.own_files.rows(log.spark._jsparkSession, log.java, self.snapshot, log.scala.seq(files)), log.spark)

    def transaction(self, app_id: str) -> int:
        """The newest txnVersion that the table has seen of an application, -1 where there was none."""
        noted = None if self._checksum is None else self._checksum.setTransactions()
        if noted is not None and noted.isDefined():
            return max((int(t.version()) for t in self.log.scala.list(noted.get()) if t.appId() == app_id), default=-1)
        found = self.snapshot.transactions().get(app_id)
        return -1 if found.isEmpty() else int(found.get())


def _is_padded(field: StructField) -> bool:
    """Whether Spark pads the column as it reads it (CHAR): files, and what is said of them, may hold shorter values."""
    return str((field.metadata or {}).get(CHAR_TYPE, "")).startswith("char")


def _statistics(add: Mapping[str, Any]) -> dict[str, Any]:
    """A file's statistics by column; of a partition column there is one value."""
    stats: dict[str, Any] = json.loads(add.get("stats") or "{}", parse_float=Decimal)
    for column, value in add.get("partitionValues", {}).items():
        stats.setdefault("minValues", {})[column] = stats.setdefault("maxValues", {})[column] = value or None
        stats.setdefault("nullCount", {})[column] = 0 if value else stats.get("numRecords")
    return stats


class Log:
    """The transaction log of one table, by path or by catalog name. Raises what Spark raises; tables.py words it."""

    def __init__(self, spark: SparkSession, path: str | None = None, name: str | None = None) -> None:
        self.spark = spark
        self.jvm = jvm_of(spark)
        self.scala: Scala = self.jvm.conversions
        self._marks: dict[int, str] = {}
        delta_log = self.jvm.org.apache.spark.sql.delta.DeltaLog
        self._identifier: Java = None
        if path is not None:
            self.java: Java = delta_log.forTable(spark._jsparkSession, path)
        else:
            short = str(name).removeprefix("spark_catalog.")  # Spark's own catalog takes no third part here
            self._identifier = spark._jsparkSession.sessionState().sqlParser().parseTableIdentifier(short)
            self.java = delta_log.forTable(spark._jsparkSession, self._identifier)

    @property
    def exists(self) -> bool:
        """Whether there is a table now. Delta itself still knows one that was deleted since this process read it."""
        place = self.java.logPath()
        return bool(self.java.tableExists()) and bool(place.getFileSystem(self.java.newDeltaHadoopConf()).exists(place))

    @property
    def path(self) -> str:
        return str(self.java.dataPath().toString())

    def catalog_table(self) -> Java:
        """The catalog's entry of a table that is opened by name, as a Scala option."""
        if self._identifier is None:
            return self.scala.none
        return self.scala.some(self.spark._jsparkSession.sessionState().catalog().getTableMetadata(self._identifier))

    def head(self) -> Pinned:
        """The newest version, read from the log now."""
        return Pinned(self, self._state().newest())

    def checkpoint(self, pinned: Pinned) -> None:
        """Write a checkpoint of a version, and remove what the log need not keep any more."""
        with active(self.jvm, self.spark._jsparkSession):
            self.java.checkpoint(pinned.snapshot, self.catalog_table())
        self._state().forget()

    def _state(self) -> State:
        return State(self.jvm, self.scala, self.java, self.spark._jsparkSession)

    def at(self, number: int) -> Pinned:
        """An older version. Raises where the log no longer reaches back."""
        none = self.scala.none
        return Pinned(self, self.java.getSnapshotAt(number, none, none, False))

    def mark(self, number: int) -> str:
        """A digest of what a commit's file says, empty where it is no longer in the log; read once."""
        if number not in self._marks:
            self._marks[number] = str(self.jvm.own_commits.mark(self.java, number) or "")
        return self._marks[number]

    def version_at(self, time: datetime, or_first: bool = False) -> int:
        """The newest version that was committed at or before `time`. `or_first`: the oldest where there was none yet. Raises else."""
        timestamp = self.jvm.java.sql.Timestamp(int(time.timestamp() * 1000))
        commit = self.java.history().getActiveCommitAtTime(timestamp, self.scala.none, True, False, or_first)
        return int(commit.version())

    def commits(self, since: int, until: int) -> Iterator[Commit]:
        """The commits since+1..until, oldest first. Raises where one is no longer there."""
        commits = self.jvm.own_commits.between(self.java, since + 1, until)
        while (said := self.jvm.own_commits.next(commits)) is not None:
            number, *actions = said.split("\n")  # JSON may hold other ends of a line
            commit = _commit(int(number), map(json.loads, actions))
            yield commit if commit.timestamp else replace(commit, timestamp=self.jvm.own_commits.written(self.java, commit.number))

    def history(self) -> list[dict[str, Any]]:
        """What Delta's history says of each commit that is still in the log, oldest first. One Spark job, of first lines."""
        found = self.java.history().getHistory(self.scala.none, self.catalog_table())
        commits = json.loads(self.jvm.org.apache.spark.sql.delta.util.JsonUtils.toJson(self.scala.java_list(found), None))
        return sorted(commits, key=lambda commit: int(commit["version"]))


def _commit(number: int, actions: Iterable[dict[str, dict[str, Any]]]) -> Commit:
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for action in actions:
        for kind, body in action.items():
            by_kind.setdefault(kind, []).append(body)
    info = by_kind.get("commitInfo", [{}])[0]
    metadata = by_kind.get("metaData", [])
    files: dict[bool, list[FileAction]] = {True: [], False: []}
    for kind in ("add", "remove"):
        for body in by_kind.get(kind, []):
            files[bool(body.get("dataChange", True))].append(file_action(body, added=kind == "add"))
    return Commit(
        number,
        int(info.get("timestamp", 0)),
        str(info.get("operation", "")),
        info.get("userMetadata"),
        metadata[-1] if metadata else None,
        tuple(files[True]),
        tuple(files[False]),
        {str(body["path"]): int(body["size"]) for body in by_kind.get("cdc", [])},
    )


def file_action(body: Mapping[str, Any], added: bool = True) -> FileAction:
    """What the log says of a file."""
    file = FileAction(added, {k: v for k, v in body.items() if k != "stats"})
    rows = json.loads(body.get("stats") or "{}").get("numRecords")
    return file if rows is None else replace(file, rows=int(rows) - file.deleted)
