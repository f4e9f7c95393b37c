"""The data files of one version of a table: how many and how large they are, and which of them may hold some keys."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
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

MOST_NAMES = 1_000
CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""Under which the metadata of a STRING column say that it is a CHAR or VARCHAR, which Spark then pads, or checks the length of."""


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
        return int(self.snapshot.sizeInBytes() if self.checksum is None else self.checksum.tableSizeBytes())

    @cached_property
    def checksum(self) -> Java | None:
        """What this version's writer noted of the whole table beside the commit; without it the log has to be replayed, in Spark jobs."""
        found = self.snapshot.checksumOpt()
        return None if found.isEmpty() else found.get()

    @property
    def number(self) -> int:
        """How many data files the table has."""
        return int(self.snapshot.numOfFiles() if self.checksum is None else self.checksum.numFiles())

    @cached_property
    def rows(self) -> int | None:
        """The number of rows, by the files' statistics; None where a file has none."""
        files = DataFrame(self.snapshot.allFiles().toDF(), self.spark)
        counted = "sum(get_json_object(stats, '$.numRecords')::bigint - coalesce(deletionVector.cardinality, 0))"
        found = files.selectExpr(f"IF(count(*) = count(stats), coalesce({counted}, 0), NULL)").head()
        return None if found is None or found[0] is None else int(found[0])

    @cached_property
    def few(self) -> bool:
        return self.number <= MOST_FILES

    def among(self, schema: StructType, keys: Mapping[str, Ranges]) -> list[tuple[Java, int]]:
        """(file, bytes) of those that may hold the keys."""
        fields = {f.name: f for f in schema.fields}
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

    def actions(self) -> list[FileAction]:
        """What the log says of each data file."""
        return [file_action(add) for add in self._listed[1]]

    def files_at(self, paths: Collection[str]) -> list[Java]:
        """The log's entries of some of `data_files`, by their paths."""
        files, said = self._listed
        return [files.get(i) for i, add in enumerate(said) if add["path"] in paths]

    @property
    def listed(self) -> Java | None:
        """The log's entries of all files, as a list in the JVM; None where they are many."""
        return self._listed[0] if self.few else None

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
        noted = None if self.checksum is None else self.checksum.allFiles()
        if noted is None or noted.isEmpty():
            return None
        files, said = self._said(self._jvm.conversions.java_list(noted.get()))
        return (files, said) if len(said) == self.number and sum(int(add["size"]) for add in said) == self.bytes else None

    def _said(self, files: Java) -> tuple[Java, list[dict[str, Any]]]:
        """The list, with what the log says of each, in one trip to the JVM."""
        said: list[dict[str, Any]] = json.loads(self._jvm.org.apache.spark.sql.delta.util.JsonUtils.toJson(files, None))
        return files, said


def physical_name(field: StructField) -> str:
    """A column's name in the data files."""
    return str(field.metadata.get("delta.columnMapping.physicalName", field.name))


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
