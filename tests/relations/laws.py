"""Relations over tables that are lists of rows: no Delta, so that many histories can be checked against the law."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from lake.catalyst import Catalyst
from lake.catalyst.guards import INEXACT
from lake.config.loader import load
from lake.core.sql import quoted
from lake.refresh import changes
from lake.refresh.row_edits import in_names
from lake.relations.budget import FallBackToRecompute
from lake.relations.first_rows import FirstRows
from lake.relations.reading import Reading
from lake.relations.top import Top
from lake.relations.total import Total
from lake.relations.total_rows import TotalRows
from lake.spark import zset
from lake.spark.failures import SPARK_ERRORS
from lake.spark.key_ranges import Ranges
from lake.spark.session import own_session
from lake.spark.types import arrow_schema
from lake.views.definition import Definition, define
from tests.lakes import frozen

Rows = list[tuple[Any, ...]]


def local_frame(spark: SparkSession, rows: Rows, schema: StructType) -> DataFrame:
    """The rows as a local relation: no Python worker is started for them."""
    arrow = arrow_schema(schema)
    columns = [pa.array([row[i] for row in rows], type=arrow.field(i).type) for i in range(len(schema))]
    return spark.createDataFrame(pa.Table.from_arrays(columns, schema=arrow), schema)


@dataclass
class ListedSources:
    """Source tables as lists of rows at both ends of an interval. `as_written`: changes are all rows of both, not consolidated."""

    spark: SparkSession
    schemas: dict[str, StructType]
    since: dict[str, Rows]
    until: dict[str, Rows]
    as_written: bool = False

    def rows(self, source: str, among: Mapping[str, Ranges] | None = None) -> DataFrame:
        rows = local_frame(self.spark, self.until[source], self.schemas[source])
        for name, ranges in (among or {}).items():
            rows = rows.where(ranges.condition(quoted(name)))
        return rows

    def changes(self, source: str, columns: Sequence[str]) -> DataFrame | None:
        if self.since[source] == self.until[source]:
            return None
        schema = self.schemas[source]
        places = [schema.names.index(c) for c in columns]
        difference = Counter[Any]()
        for row in self.until[source]:
            difference[repr([row[i] for i in places])] += 1
        for row in self.since[source]:
            difference[repr([row[i] for i in places])] -= 1
        values = {repr([row[i] for i in places]): [row[i] for i in places] for row in self.until[source] + self.since[source]}
        listed = [(*values[text], n) for text, n in difference.items() if n != 0]
        if self.as_written:
            listed = [(*[row[i] for i in places], n) for n, end in ((1, self.until), (-1, self.since)) for row in end[source]]
        fields = [StructField(f"c{n}", schema.fields[i].dataType) for n, i in enumerate(places)]
        return local_frame(self.spark, listed, StructType([*fields, StructField(zset.WEIGHT, LongType())]))

    def unconsolidated(self, source: str) -> bool:
        return False

    def bytes(self, source: str, among: Mapping[str, Ranges] | None = None) -> int:
        return 0

    def changed_bytes(self, source: str) -> int:
        return 0

    def changed_share(self, source: str) -> float:
        return 0.0

    def changed_rows(self, source: str) -> int:
        return 0

    def count(self, source: str) -> int | None:
        return len(self.until[source])


class View:
    """One query over tables of given schemas, analysed once."""

    def __init__(self, spark: SparkSession, schemas: dict[str, str], query: str, keys: dict[str, list[str]] | None = None) -> None:
        self.spark = own_session(spark)
        self.schemas = {t: spark.createDataFrame([], ddl).schema for t, ddl in schemas.items()}
        self.query = query
        self.recomputed: list[str] = []
        self.inexact = False
        self._truths: dict[str, Counter[Any]] = {}
        tables = {t: {"path": t, **({"primary_key": keys[t]} if keys and t in keys else {})} for t in schemas}
        config = load({"tables": tables, "views": {"v": {"query": query}}})
        self.definition: Definition = define(self.spark, "v", config, self.schemas, {t: (keys or {}).get(t, []) for t in schemas})

    @property
    def catalyst(self) -> Catalyst:
        return self.definition.catalyst

    def truth(self, tables: dict[str, Rows]) -> Counter[Any]:
        """The query by plain Spark, asked once of the same rows."""
        rows_read = repr({source: tables[source] for source in self.definition.sources})
        if rows_read not in self._truths:
            self._truths[rows_read] = self._asked(tables)
        return self._truths[rows_read]

    def _asked(self, tables: dict[str, Rows]) -> Counter[Any]:
        session = self.spark.newSession()
        for name in ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.legacy.timeParserPolicy"):
            session.conf.set(name, str(self.spark.conf.get(name)))
        for name, rows in tables.items():
            local_frame(session, rows, self.schemas[name]).createOrReplaceTempView(name)
        return Counter(frozen(tuple(r)) for r in session.sql(self.query).collect())

    def changes(self, since: dict[str, Rows], until: dict[str, Rows], local_limit: int = 40_000, kept: bool = True) -> Counter[Any]:
        """The relation's changes, consolidated, over the query's own columns.

        `kept`: the stamp has the rows of aggregates over all rows, the first ones of LIMITs, and those after a LIMIT.
        """
        sources = ListedSources(self.spark, self.schemas, since, until, as_written=local_limit == 0)
        with Reading(self.catalyst, ListedSources(self.spark, self.schemas, since, since)) as before:
            stored = in_names(self.definition, self.definition.unguarded.relation.snapshot(before))
        with Reading(self.catalyst, sources, local_limit, totals=TotalRows(before.totals.until if kept else {})) as reading:
            try:
                found = self._found(stored, reading)
            except FallBackToRecompute as why:
                reading.fall_back(why)
                found = changes.difference(self.definition, stored, reading)
            self.recomputed = list(reading.budget.reasons)
            if found is None:
                return Counter()
            rows = in_names(self.definition, found).collect()
        width = len(self.definition.columns)
        counted: Counter[Any] = Counter()
        for row in rows:
            counted[frozen(tuple(row)[:width])] += row[-1]
        return Counter({row: n for row, n in counted.items() if n})

    def _found(self, stored: DataFrame, reading: Reading) -> DataFrame | None:
        """The changes, evaluated, so that what is raised by inexact averages is raised here."""
        try:
            found = changes.changes(self.definition, lambda among: stored, reading)
            return found if found is None else reading.frames.keep_rows(found).frame
        except SPARK_ERRORS as error:
            if INEXACT not in str(error):
                raise
            self.inexact = True
            return changes.changes_of_inexact(self.definition, lambda among: stored, reading)

    def snapshot(self, tables: dict[str, Rows]) -> Counter[Any]:
        """The relation's snapshot."""
        sources = ListedSources(self.spark, self.schemas, tables, tables)
        with Reading(self.catalyst, sources) as reading:
            rows = in_names(self.definition, self.definition.unguarded.relation.snapshot(reading)).collect()
        width = len(self.definition.columns)
        return Counter(frozen(tuple(row)[:width]) for row in rows)

    def assert_law(self, since: dict[str, Rows], until: dict[str, Rows], local_limit: int = 40_000) -> None:
        """snapshot(until) = snapshot(since) + changes(since, until), with both snapshots by plain Spark."""
        before, after = self.truth(since), self.truth(until)
        expected = Counter({row: after[row] - before[row] for row in {*before, *after} if after[row] != before[row]})
        assert self.changes(since, until, local_limit) == expected
        if any(isinstance(relation, Total | Top | FirstRows) for relation in self.definition.relation.walk()):
            assert self.changes(since, until, local_limit, kept=False) == expected
