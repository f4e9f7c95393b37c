"""The data files of one version of a table: how many and how large they are, and which of them may hold some keys."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lake.delta.actions import FileAction, file_action
from lake.delta.snapshot_cache import MOST_FILES
from lake.spark.jvm.gateway import Java, jvm_of
from lake.spark.key_ranges import Ranges, statistics

DataFiles = Any
"""Data files of a version: a list of AddFile actions in the JVM."""
MOST_NAMES = 1_000
_BATCH = 1_000
"""How many files cross from the JVM in one call."""
CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""The metadata key by which a STRING column is a CHAR (which Spark pads) or a VARCHAR (whose length it checks)."""


@dataclass(frozen=True, eq=False)
class Listing:
    """The data files of Delta's snapshot of one version."""

    spark: SparkSession
    snapshot: Java

    @property
    def _jvm(self) -> Any:
        return jvm_of(self.spark)

    @cached_property
    def bytes(self) -> int:
        """The size of the table's data files."""
        return int(self.snapshot.sizeInBytes()) if self._sizes is None else self._sizes[0]

    @cached_property
    def checksum(self) -> Java | None:
        """The checksum that the version's writer stored beside the commit; without it the log is replayed, in Spark jobs."""
        return self._jvm.own_versions.checksum(self.snapshot)

    @property
    def number(self) -> int:
        """How many data files the table has."""
        return int(self.snapshot.numOfFiles()) if self._sizes is None else self._sizes[1]

    @cached_property
    def _sizes(self) -> tuple[int, int] | None:
        """(bytes, number of files) by the checksum."""
        found = self._jvm.own_versions.sizes(self.snapshot)
        return None if found is None else (int(found.split(" ")[0]), int(found.split(" ")[1]))

    @cached_property
    def rows(self) -> int | None:
        """The number of rows, by the files' statistics; None if a file has none."""
        files = DataFrame(self.snapshot.allFiles().toDF(), self.spark)
        counted = "sum(get_json_object(stats, '$.numRecords')::bigint - coalesce(deletionVector.cardinality, 0))"
        found = files.selectExpr(f"IF(count(*) = count(stats), coalesce({counted}, 0), NULL)").head()
        return None if found is None or found[0] is None else int(found[0])

    @cached_property
    def few(self) -> bool:
        """Whether the files are few enough to be listed in Python."""
        return self.number <= MOST_FILES

    def among(self, schema: StructType, keys: Mapping[str, Ranges]) -> list[tuple[int, int]]:
        """(place in the list, bytes) of the files that may contain the keys, by column."""
        fields = {f.name: f for f in schema.fields}
        by_physical = {physical_name(fields[n]): (fields[n].dataType, ranges) for n, ranges in keys.items() if not _is_padded(fields[n])}
        return [
            (place, size)
            for place, (size, stats) in enumerate(self._files)
            if all(ranges.may_be_in(statistics(stats, name, data_type)) for name, (data_type, ranges) in by_physical.items())
        ]

    @cached_property
    def _files(self) -> list[tuple[int, dict[str, Any]]]:
        """(bytes, statistics by column) of each file of `_listed`."""
        return [(int(add["size"]), _statistics(add)) for add in self._listed[1]]

    def actions(self) -> Iterator[FileAction]:
        """The log's record of each data file; of many files, a bounded number at a time is in Python."""
        if self.few:
            yield from map(file_action, self._listed[1])
            return
        files = self.snapshot.allFiles().toLocalIterator()
        while batch := self._as_json(self._jvm.own_files.next(files, _BATCH)):
            yield from map(file_action, batch)

    def files_at(self, paths: Collection[str]) -> Java:
        """The AddFile actions of some of `actions`, by their paths, as a list in the JVM."""
        return self.picked(place for place, add in enumerate(self._listed[1]) if add["path"] in paths)

    def picked(self, places: Iterable[int]) -> Java:
        """The AddFile actions at some places of the list, as a list in the JVM, by one call."""
        return self._jvm.own_files.pick(self._listed[0], ",".join(map(str, places)))

    @property
    def listed(self) -> Java | None:
        """The AddFile actions of all files, as a list in the JVM; None if there are many."""
        return self._listed[0] if self.few else None

    def files_named(self, names: Collection[str]) -> Java:
        """The AddFile actions, with their statistics, of the files of some names (without folders), as a list in the JVM."""
        if self._noted is not None:
            return self.picked(place for place, add in enumerate(self._noted[1]) if add["path"].rpartition("/")[2] in names)
        wanted = F.substring_index("path", "/", -1).isin(sorted(names))
        return self.snapshot.allFiles().filter(wanted._jc).collectAsList()

    def files_named_in(self, names: DataFrame) -> Java:
        """The same for the names in a frame's only column: neither names nor files cross to Python."""
        return self._jvm.own_files.named(self.snapshot, names._jdf)

    def holding(self, names: DataFrame) -> DataFiles:
        """The files of the names in a frame's only column: few names cross to Python, where that spares a Spark job."""
        some = {row[0] for row in names.limit(MOST_NAMES + 1).collect()}
        return self.files_named(some) if len(some) <= MOST_NAMES else self.files_named_in(names)

    def all_files(self) -> DataFiles:
        """All files, with their statistics."""
        return self.snapshot.allFiles().collectAsList()

    def paths(self) -> DataFrame:
        """The path of each file, as the log has it."""
        return DataFrame(self.snapshot.allFiles().toDF(), self.spark).select("path")

    @cached_property
    def _listed(self) -> tuple[Java, list[dict[str, Any]]]:
        """All files: as a list in the JVM, and the log's record of each."""
        return self._noted or self._with_records(self.snapshot.allFiles().collectAsList())

    @cached_property
    def _noted(self) -> tuple[Java, list[dict[str, Any]]] | None:
        """The same if the checksum lists the files, else None."""
        noted = None if self.checksum is None else self.checksum.allFiles()
        if noted is None or noted.isEmpty():
            return None
        files, records = self._with_records(self._jvm.conversions.java_list(noted.get()))
        return (files, records) if len(records) == self.number and sum(int(add["size"]) for add in records) == self.bytes else None

    def _with_records(self, files: Java) -> tuple[Java, list[dict[str, Any]]]:
        size = int(files.size())
        batches = (self._as_json(files.subList(start, min(start + _BATCH, size))) for start in range(0, size, _BATCH))
        return files, [add for batch in batches for add in batch]

    def _as_json(self, files: Java) -> list[dict[str, Any]]:
        """The log's records of some files, by one call to the JVM."""
        records: list[dict[str, Any]] = json.loads(self._jvm.org.apache.spark.sql.delta.util.JsonUtils.toJson(files, None))
        return records


def physical_name(field: StructField) -> str:
    """A column's name in the data files."""
    return str(field.metadata.get("delta.columnMapping.physicalName", field.name))


def _is_padded(field: StructField) -> bool:
    """Whether Spark pads the column when it reads it (CHAR): files and their statistics may contain shorter values."""
    return str((field.metadata or {}).get(CHAR_TYPE, "")).startswith("char")


def _statistics(add: Mapping[str, Any]) -> dict[str, Any]:
    """A file's statistics by column; a partition column has one value."""
    stats: dict[str, Any] = json.loads(add.get("stats") or "{}", parse_float=Decimal)
    for column, value in add.get("partitionValues", {}).items():
        stats.setdefault("minValues", {})[column] = stats.setdefault("maxValues", {})[column] = value or None
        stats.setdefault("nullCount", {})[column] = 0 if value else stats.get("numRecords")
    return stats
