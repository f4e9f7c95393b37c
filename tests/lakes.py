"""Lakes for tests: Delta tables from SQL rows, views, and the truth by plain Spark, compared as multisets of Python rows."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pyspark
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType, VariantVal

from lake import Lakehouse, open_lake
from lake.core.results import RefreshResult
from lake.delta import sources
from lake.spark.session import settings_of

FEED = {"delta.enableChangeDataFeed": "true"}


def frozen(value: Any) -> Any:
    """A value that can be counted, and that tells -0.0 from 0.0 and NaN from itself in no way."""
    if isinstance(value, float):
        return ("float", repr(value))
    if isinstance(value, bytearray):  # binary values, in Spark 4.0
        return bytes(value)
    if isinstance(value, VariantVal):
        return ("variant", bytes(value.value), bytes(value.metadata))
    if isinstance(value, dict):
        return ("map", tuple((frozen(k), frozen(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return tuple(frozen(v) for v in value)
    return value


def read_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the test ends, read the changes of small tables as those of larger ones are: from their feeds and files."""
    monkeypatch.setattr(sources, "is_small", lambda pinned, found: False)


def until(condition: Callable[[], Any], within: float = 600.0, every: float = 0.2) -> Any:
    """Wait until a condition holds, for so many seconds at the most, and look `every` so often; returns what it gave then."""
    deadline = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < deadline, f"it did not come about in {within:.0f} seconds"
        time.sleep(every)
    return found


def multiset(frame: DataFrame) -> Counter[Any]:
    """The frame's rows, counted."""
    return Counter(frozen(tuple(row)) for row in frame.collect())


def table_of(session: SparkSession, path: str) -> DataFrame:
    """A table by plain Spark: by Delta, or by Parquet where the log asks nothing else of its readers.

    Delta works out each new version's state by a query of its own, which costs more than a refresh. delta-rs lists the same files.
    """
    try:
        table = DeltaTable(path)
        if table.protocol().min_reader_version == 1 and not table.metadata().partition_columns:
            schema = StructType.fromJson(json.loads(table.schema().to_json()))
            if not any(field.metadata for field in schema.fields):
                reader, files = session.read.schema(schema), table.file_uris()
                # "a=1" in a path is no partition
                return reader.option("recursiveFileLookup", "true").parquet(*files) if files else session.createDataFrame([], schema)
    except DeltaError:  # a type or a feature that delta-rs does not know
        pass
    return session.read.format("delta").load(path)


SPARK = tuple(map(int, pyspark.__version__.split(".")[:2]))
"""The minor version of Spark: older ones lack some functions, types and collations."""


_OTHER_RELATION = re.compile(r"\b(FROM|JOIN)\s+(?!VALUES\b|range\()[\w`]", re.IGNORECASE)


_COPIED_FOR = 600
"""Seconds: the commit in a copy was made as long ago, at the most."""


@cache
def _copies() -> Path:
    folder = tempfile.mkdtemp(prefix="lakejoin-tables-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


class TestLake:
    """A folder of Delta tables and the views over them."""

    __test__ = False

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.tables: dict[str, dict[str, Any]] = {}
        self.views: dict[str, dict[str, Any]] = {}
        self.others: dict[str, Any] = {}
        self._open: Lakehouse | None = None
        self._verified: set[str] = set()
        self._made: set[str] = set()

    def table(self, name: str, rows: str, key: list[str] | None = None, **properties: str) -> None:
        """Make a Delta table from the rows of a SQL query."""
        options = {**FEED, **{k.replace("__", "."): v for k, v in properties.items()}}
        made = self._made_before(rows, options)
        if made is not None and made.exists():
            shutil.copytree(made, self.path(name), copy_function=shutil.copyfile)  # written now, as Delta takes it
        else:
            self.spark.sql(rows).write.format("delta").options(**options).save(self.path(name))
            if made is not None:
                shutil.copytree(self.path(name), made)
        self.tables[name] = {"path": name, **({"primary_key": key} if key else {})}
        self._open = None

    def _made_before(self, rows: str, options: Mapping[str, str]) -> Path | None:
        """Where a copy is, or will be, of the table that a test of this process makes of the same rows: copying saves 0.6 CPU seconds.

        None for rows of another relation, for rows of which this lake has a table (by their id the two would be one), and with COPY=off in
        the environment: a test that is run alone writes its tables.
        """
        settings = {n: v for n, v in settings_of(self.spark).items() if n.startswith("spark.") and "lastCommitVersion" not in n}
        key = json.dumps([rows, options, settings], sort_keys=True)
        if key in self._made or _OTHER_RELATION.search(rows) or os.environ.get("COPY") == "off":
            return None
        self._made.add(key)
        return _copies() / f"{hashlib.sha256(key.encode()).hexdigest()}-{time.time() // _COPIED_FOR:.0f}"

    def view(self, name: str, query: str | None = None, **options: Any) -> None:
        """Define a view."""
        self.views[name] = {**({"query": query} if query else {}), **options}
        self._open = None
        self._verified.discard(name)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def sql(self, *texts: str) -> None:
        """Run SQL in which {table} stands for a table."""
        names = {t: f"delta.`{self.path(t)}`" for t in self.tables} | {v: self.of_view(v) for v in self.views}
        for text in texts:
            self.spark.sql(text.format(**names))

    def of_view(self, name: str) -> str:
        return f"delta.`{self.path('views')}/{name}`"

    @property
    def config(self) -> dict[str, Any]:
        return {"root": str(self.folder), "tables": self.tables, "views": self.views, **self.others}

    @property
    def open(self) -> Lakehouse:
        """The lakehouse, opened anew where tables or views were added."""
        if self._open is None:
            self._open = open_lake(self.config, spark=self.spark)
        return self._open

    @contextmanager
    def as_if_published(self, name: str, consistency: Literal["strong", "eventual"] = "strong") -> Iterator[None]:
        """Within it, what is written to a view's table carries its stamp, as if Lakejoin had written it wrong."""
        setting, stamp = "spark.databricks.delta.commitInfo.userMetadata", self.open.on(consistency).stamp(name)
        assert stamp is not None
        self.spark.conf.set(setting, stamp.to_json())
        try:
            yield
        finally:
            self.spark.conf.unset(setting)

    def refresh(self, name: str, **options: Any) -> RefreshResult:
        return self.open.refresh(name, **options)

    def truth(self, name: str) -> Counter[Any]:
        """The view's query by plain Spark over the newest tables."""
        session = self.spark.newSession()
        session.conf.set("spark.sql.session.timeZone", self.spark.conf.get("spark.sql.session.timeZone"))
        for table in self.tables:
            table_of(session, self.path(table)).createOrReplaceTempView(table)
        return multiset(session.sql(self.views[name]["query"]))

    def assert_exact(self, name: str) -> None:
        """The view holds the truth, by Python's own comparison, and the first time by verify, too, which costs twice a refresh."""
        assert multiset(self.open.read(name)) == self.truth(name)
        if name not in self._verified:
            assert self.open.verify(name).exact
            self._verified.add(name)
