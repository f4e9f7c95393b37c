"""One version of a table: its schema, properties, sizes and rows, which stay readable while the table changes.

Spark's own readers can't do this: a frame over the newest version moves when the table does, and one over a numbered version replays the
log at each read and is refused once the commit is older than the retention, even if it is the newest. A `Pinned` keeps Delta's snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType, _parse_datatype_json_string

from lake.core.snapshots import Version
from lake.core.sql import quoted
from lake.delta.actions import Commit, FileAction
from lake.delta.feed_properties import has_feed
from lake.delta.listing import Listing
from lake.spark.jvm.gateway import Java
from lake.spark.key_ranges import Ranges

if TYPE_CHECKING:  # a log gives snapshots, and a snapshot knows its log
    from lake.delta.log import Log

_FEW_COMMITS = 100
_ROW_GROUP = 256 << 20


def schema_of(text: str) -> StructType:
    """A table's columns, from the JSON in its log."""
    schema = _parse_datatype_json_string(text)
    assert isinstance(schema, StructType)
    return schema


@dataclass(frozen=True, eq=False)
class Pinned:
    """One version of one table, whose rows stay readable while the table changes."""

    log: Log
    snapshot: Java
    _commits: dict[int, Sequence[Commit]] = field(init=False, default_factory=dict)

    def commits(self, since: int) -> Iterable[Commit]:
        """The commits since+1..(this version), oldest first; few are read once. Raises if one is no longer in the log."""
        number = self.version.number
        if number - since > _FEW_COMMITS:
            return self.log.commits(since, number)
        if since not in self._commits:
            self._commits[since] = list(self.log.commits(since, number))
        return self._commits[since]

    @cached_property
    def version(self) -> Version:
        table, number = self.log.jvm.own_versions.identity(self.snapshot).rsplit(" ", 1)
        return Version(table, int(number))

    @cached_property
    def time(self) -> datetime:
        """When it was committed."""
        return datetime.fromtimestamp(int(self.snapshot.timestamp()) / 1000, UTC)

    @cached_property
    def schema(self) -> StructType:
        return schema_of(self.log.jvm.own_versions.schema(self.snapshot))

    @property
    def partitioned_by(self) -> list[str]:
        """The columns that the table is partitioned by."""
        return self.log.scala.list(self.snapshot.metadata().partitionColumns())

    @property
    def clustered_by(self) -> list[str]:
        """The columns that the table is clustered by."""
        clustering = self.log.jvm.org.apache.spark.sql.delta.skipping.clustering.ClusteringColumnInfo
        return [str(name) for name in self.log.scala.list(clustering.extractLogicalNames(self.snapshot))]

    @cached_property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        found: dict[str, str] = json.loads(self.log.jvm.own_versions.properties(self.snapshot))
        return found

    @cached_property
    def description(self) -> str:
        """The table's comment."""
        return str(self.snapshot.metadata().description() or "")

    @cached_property
    def listing(self) -> Listing:
        """The table's data files."""
        return Listing(self.log.spark, self.snapshot)

    @property
    def bytes(self) -> int:
        """The size of the table's data files."""
        return self.listing.bytes

    @property
    def files(self) -> int:
        """How many data files the table has."""
        return self.listing.number

    @property
    def count(self) -> int | None:
        """The number of rows, by the files' statistics; None if a file has none."""
        return self.listing.rows

    def data_files(self) -> Iterator[FileAction]:
        """The log's record of each data file."""
        return self.listing.actions()

    @property
    def since_checkpoint(self) -> int:
        """How many commits are newer than the newest checkpoint of the log."""
        return self.version.number - int(self.snapshot.checkpointProvider().version())

    @property
    def has_feed(self) -> bool:
        """Whether the change data feed is on at this version."""
        return has_feed(self.properties)

    def supports(self, name: str, value: str) -> bool:
        """Whether a property asks for a feature that the table's protocol has: Delta stores no such property."""
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
        """Whether type widening is on."""
        return self._is_on("delta.enableTypeWidening")

    def _is_on(self, name: str) -> bool:
        return self.properties.get(name, "false").lower() == "true"

    def rows(self) -> DataFrame:
        """All rows, with the table's own column names."""
        scala = self.log.scala
        relation = self.log.java.createRelation(scala.seq([]), scala.some(self.snapshot), scala.none, True)
        return DataFrame(self.log.spark._jsparkSession.baseRelationToDataFrame(relation), self.log.spark)

    def bytes_among(self, keys: Mapping[str, Ranges]) -> int:
        """The size of the files that `rows_among` reads; of all files if Delta chooses them."""
        return sum(size for _, size in self.listing.among(self.schema, keys)) if self.listing.few else self.bytes

    def rows_among(self, keys: Mapping[str, Ranges]) -> DataFrame:
        """The rows of the files that may contain some keys, by column.

        The files are chosen here, from their statistics: Delta would run two Spark jobs, and a filter with literals needs code that is
        generated and compiled again in each refresh. If files are many or large, Delta chooses them, and Parquet their row groups.
        """
        few = self.listing.few
        chosen = self.listing.among(self.schema, keys) if few else []
        rows = self.rows_of(self.listing.picked(place for place, _ in chosen)) if few else self.rows()
        if not keys or (few and all(size < _ROW_GROUP for _, size in chosen)):
            return rows
        return rows.where(" AND ".join(ranges.condition(quoted(name)) for name, ranges in keys.items()))

    def rows_of(self, files: Java) -> DataFrame:
        """The rows of some data files (AddFile actions, with their deletion vectors), read by this version's schema."""
        log = self.log
        return DataFrame(log.jvm.own_files.rows(log.spark._jsparkSession, log.java, self.snapshot, files), log.spark)

    def transaction(self, app_id: str) -> int:
        """The newest txnVersion of an application in the table's log, -1 if there is none."""
        noted = None if self.listing.checksum is None else self.listing.checksum.setTransactions()
        if noted is not None and noted.isDefined():
            return max((int(t.version()) for t in self.log.scala.list(noted.get()) if t.appId() == app_id), default=-1)
        found = self.snapshot.transactions().get(app_id)
        return -1 if found.isEmpty() else int(found.get())
