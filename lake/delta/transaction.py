"""One transaction on a view's table: delete rows by position, insert rows, and store the progress, in one commit; or rewrite files as one.

It uses Delta's internals. A MERGE searches the rows to change twice, rewrites whole rows to compare them, and runs a dozen Spark jobs
for a handful of rows. A refresh already knows the deleted and inserted rows, so it needs one pruned scan for positions, one deletion
vector per file, and one file of new rows. OPTIMIZE replays the log to find small files, in five jobs; the snapshot lists them.
Written for Delta 4.4.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lake.config.models import HIDDEN_PREFIX
from lake.delta.listing import CHAR_TYPE, DataFiles
from lake.delta.pinned import Pinned
from lake.delta.statistics import STATISTICS_COLUMNS
from lake.spark.jvm.gateway import Java, active, jvm_of
from lake.spark.session import settings

FILE, POSITION = f"{HIDDEN_PREFIX}file", f"{HIDDEN_PREFIX}position"


def with_positions(rows: DataFrame) -> DataFrame:
    """A pinned table's rows with the file and the position in it of each, which `Transaction.delete` takes."""
    return DataFrame(jvm_of(rows.sparkSession).own_steps.withPositions(rows._jdf, FILE, POSITION), rows.sparkSession)


def with_files(rows: DataFrame) -> DataFrame:
    """A pinned table's rows with the file of each, also where the table can have no deletion vectors yet."""
    return rows.select("*", rows.metadataColumn("_metadata")["file_path"].alias(FILE))


def names_in(rows: DataFrame) -> DataFrame:
    """The names, without folders, of the files of some rows."""
    return rows.select(F.substring_index(FILE, "/", -1)).distinct()


class Transaction:
    """Changes of a table that are planned on one of its versions and visible after `commit`.

    Delta's own conflict detection finds concurrent commits: by the files with deleted rows, and by the application id.
    """

    def __init__(self, pinned: Pinned) -> None:
        pinned.log.refuse_writing()
        self._pinned, self._log = pinned, pinned.log
        self._jvm, self._session = pinned.log.jvm, pinned.log.spark._jsparkSession
        self._scala = pinned.log.scala
        self._actions = self._jvm.java.util.ArrayList()
        self._redefined: list[Java] = []
        with active(self._jvm, self._session):
            self._java = self._log.java.startTransaction(pinned.log.catalog_table(), self._scala.some(pinned.snapshot))

    def newest(self, app_id: str) -> int:
        """The newest txnVersion of an application, -1 if there is none. From then on, a concurrent commit of it is a conflict."""
        self._java.readTxn().addOne(app_id)  # as Delta's txnVersion does, which also replays the log
        return self._pinned.transaction(app_id)

    def delete(self, positions: DataFrame, local: bool) -> int:
        """Delete rows by file and position (`with_positions`; `local`: few, on the driver); returns how many."""
        files = self._pinned.listing.listed if local else None
        if files is not None:
            return int(self._jvm.own_vectors.delete(self._session, self._log.java, files, positions._jdf, self._actions))
        with active(self._jvm, self._session):
            touched = self._touched(positions)
            for file in touched:
                self._without(file)
            return sum(int(file.numberOfModifiedRows()) for file in touched)

    def insert(self, rows: DataFrame) -> None:
        """Insert rows, which must have the table's columns. Few that are on the driver are written here, without a job (decision 46)."""
        with active(self._jvm, self._session):
            small = self._jvm.own_small_file.written(self._session, self._java, rows._jdf)
            if small is not None:
                self._actions.add(small)
                return
            self._actions.addAll(self._scala.java_list(self._java.writeFiles(rows._jdf)))

    def read_all(self) -> None:
        """From here on, a concurrent commit of whoever adds or removes files is a conflict."""
        self._java.readWholeTable()

    def remove(self, files: DataFiles) -> None:
        """Remove data files with their rows."""
        now = int(time.time() * 1000)
        for place in range(files.size()):
            self._actions.add(files.get(place).removeWithTimestamp(now, True))

    def rewrite(self, paths: Collection[str]) -> None:
        """Rewrite some of the table's data files (FileAction.path) as one; no row changes."""
        files = self._pinned.listing.files_at(paths)
        rows = self._pinned.rows_of(files).coalesce(1)
        with active(self._jvm, self._session):
            self._jvm.own_files.rewrite(self._java, rows._jdf, self._scala.immutable(files), self._actions)

    def redefine(self, columns: Mapping[str, str], properties: Mapping[str, str]) -> None:
        """Give the table other columns, in this order, as new name → present name, and these properties besides those that it has (the
        columns that have statistics are all, unless the properties name some).

        No data file changes: under column mapping each column keeps its name in the files. A column that is not named is dropped.
        """
        fields = {field["name"]: field for field in self._fields()}
        names = {old: new for new, old in columns.items()}
        partitions = [names.get(name, name) for name in self._pinned.partitioned_by]
        self._update([fields[old] | {"name": new} for new, old in columns.items()], properties, partitions)

    def take(self, columns: StructType, properties: Mapping[str, str], description: str) -> None:
        """Give the table of somebody else these columns, in this order, with what it notes of those that it has, by name; all may be NULL.
        Also these properties besides its own, and a description. No data file changes: a column that it does not have is NULL in them, and
        can't come in the commit that turns column mapping on."""
        fields = {field["name"]: open_field(field) for field in self._fields()}
        wanted = [fields.get(column.name, column.jsonValue()) for column in columns.fields]
        self._update(wanted, properties, self._pinned.partitioned_by, description)

    def _fields(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._pinned.snapshot.metadata().schemaString())["fields"]
        return found

    def _update(
        self, fields: list[dict[str, Any]], properties: Mapping[str, str], partitions: list[str], description: str | None = None
    ) -> None:
        before = self._pinned.snapshot.metadata()
        schema = json.dumps({"type": "struct", "fields": fields})
        own = self._jvm.java.util.HashMap()
        kept = {name: value for name, value in self._pinned.properties.items() if name != STATISTICS_COLUMNS}
        for name, value in {**kept, **properties}.items():
            own.put(name, value)
        configuration = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(own)
        said = before.description() if description is None else description
        parts = [before.id(), before.name(), said, before.format(), schema, self._scala.seq(partitions)]
        after = before.copy(*parts, configuration, before.createdTime())
        with active(self._jvm, self._session):
            self._java.updateMetadata(after, False)
        self._redefined = [before.schema(), after.schema()]

    def commit(self, app_id: str, number: int, metadata: str, counts: Mapping[str, int]) -> None:
        """Commit everything with its idempotency pair and metadata. `counts`: rows inserted, updated, deleted (and copied), for the
        history.

        Raises Delta's exceptions for concurrent modifications; nothing is then committed.
        """
        now = int(time.time() * 1000)
        self._actions.add(self._jvm.org.apache.spark.sql.delta.actions.SetTransaction(app_id, number, self._scala.some(now)))
        if self._redefined and not any(counts.values()):
            self._commit("UpdateSchema", self._redefined, metadata, {})
            return
        shown = {f"numTargetRows{name.capitalize()}": number for name, number in counts.items()}
        numbers = {"operationNumSourceRows": sum(counts.values()), "numTargetRowsCopied": 0, **shown}
        nothing = self._scala.seq([])
        self._commit("Merge", [self._scala.none] * 4 + [nothing] * 3, metadata, numbers)

    def commit_rewritten(self, metadata: str) -> None:
        """Commit rewritten files, with metadata. Raises as `commit` does."""
        nothing = self._scala.seq([])
        self._commit("Optimize", [nothing, nothing, False, self._scala.none, False], metadata, {})

    def _commit(self, operation: str, arguments: Collection[Java], metadata: str, numbers: Mapping[str, int]) -> None:
        """`operation`, `arguments`: one of Delta's operations; `numbers`: its metrics."""
        made = getattr(self._jvm, f"org.apache.spark.sql.delta.DeltaOperations${operation}")(*arguments)
        said = settings(self._log.spark, {"spark.databricks.delta.commitInfo.userMetadata": metadata})
        with active(self._jvm, self._session), said:
            self._count(numbers)
            self._java.commit(self._scala.immutable(self._actions), made)

    def _touched(self, positions: DataFrame) -> list[Java]:
        """Delta's records of the files that contain some rows, each with its new deletion vector."""
        files = self._scala.immutable(self._pinned.listing.holding(names_in(positions)))
        generator = self._jvm.org.apache.spark.sql.delta.commands.DeletionVectorBitmapGenerator
        everything = self._jvm.org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral()
        columns = [self._scala.some(_java(F.col(c))) for c in (FILE, POSITION)]
        vectors = generator.buildRowIndexSetsForFilesMatchingCondition(
            self._session, self._java, True, positions._jdf, files, everything, *columns
        )
        helper = self._jvm.org.apache.spark.sql.delta.commands.DMLWithDeletionVectorsHelper
        by_name = helper.generateCandidateFileMap(self._log.java.dataPath(), files)
        return self._scala.list(helper.findFilesWithMatchingRows(self._java, by_name, vectors))

    def _without(self, file: Java) -> None:
        """Add the actions that delete the rows of a new deletion vector from a file."""
        if file.isFullyReplaced():
            self._actions.add(file.fileLogEntry().removeWithTimestamp(int(time.time() * 1000), True))
            return
        both = file.fileLogEntry().removeRows(file.newDeletionVector(), True, True)
        self._actions.add(both._1())
        self._actions.add(both._2())

    def _count(self, numbers: Mapping[str, int]) -> None:
        counts = " ".join(f"{name}={number}" for name, number in numbers.items())
        self._jvm.own_versions.count(self._session, self._java, counts)


def open_field(field: dict[str, Any]) -> dict[str, Any]:
    """A column of the log's schema that may be NULL at every level, and is a STRING where it was a CHAR or a VARCHAR."""
    metadata = {name: value for name, value in field["metadata"].items() if name != CHAR_TYPE}
    return field | {"nullable": True, "type": _open_type(field["type"]), "metadata": metadata}


def _open_type(kind: Any) -> Any:
    """A type of the log's schema whose elements may be NULL."""
    if not isinstance(kind, dict):
        return kind
    inner = {name: _open_type(kind[name]) for name in ("elementType", "keyType", "valueType") if name in kind}
    nulls = {name: True for name in ("containsNull", "valueContainsNull") if name in kind}
    fields = {"fields": [open_field(field) for field in kind["fields"]]} if "fields" in kind else {}
    return kind | inner | nulls | fields


def _java(column: Column) -> Java:
    return column._jc
