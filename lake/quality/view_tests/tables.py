"""The tables of one test of a view: made from the given rows in a temporary folder, and changed step by step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from lake.config.models import Config, nearest
from lake.config.view_tests import ChangeConfig, Declared, GivenConfig, RowsConfig
from lake.core.sql import quoted
from lake.delta.log import Log
from lake.delta.tables import Table
from lake.quality.view_tests.rows import Loc, Rows, plain
from lake.spark.failures import SPARK_ERRORS, reported, root_cause
from lake.spark.literals import UnfitError, type_of
from lake.views.inputs import table_of

_FEED = {"delta.enableChangeDataFeed": "true"}
_NAME = re.compile(r"\{([\w.]+)\}")


@dataclass
class Schemas:
    """The columns of the real tables, of those that exist; each log is read once."""

    spark: SparkSession
    config: Config
    _known: dict[str, T.StructType | None] = field(default_factory=dict)

    def real(self, name: str) -> T.StructType | None:
        """The columns of a table, or of a view's table; None if it does not exist. Raises LakeError if that can't be found out."""
        if name not in self._known:
            table = table_of(self.config, name)
            with reported(f"Reading the columns of {table} (give them in the test, `columns: id BIGINT, ...`, to do without the table)"):
                self._known[name] = self._read(table)
        return self._known[name]

    def _read(self, table: Table) -> T.StructType | None:
        if table.name is not None and not self.spark.catalog.tableExists(table.name):
            return None
        log = Log(self.spark, table.path, table.name)
        return plain(log.head().schema) if log.exists else None


@dataclass(frozen=True)
class TestTables:
    """The tables of one test. `paths`: the folder of each; `read`: the tables that the views of the test read."""

    __test__ = False

    spark: SparkSession
    declared: Declared
    schemas: Schemas
    paths: Mapping[str, str]
    _found: dict[str, T.StructType] = field(default_factory=dict)

    def create(self, part: slice) -> None:
        """Make each table with a part of its given rows, or overwrite its rows by them."""
        for name, path in self.paths.items():
            frame = self.given(name).frame(self.schema(name), part).coalesce(1)
            frame.write.format("delta").mode("overwrite").options(**_FEED).save(path)

    def given(self, name: str) -> Rows:
        """The rows that the test gives of a table."""
        rows = self.declared.test.given.get(name, GivenConfig())
        return Rows(self.spark, self.declared, ("given", name), name, rows)

    def key(self, name: str, declared: Sequence[str]) -> tuple[str, ...]:
        """The primary key of a table, none if it does not have all columns of it. Raises ConfigError if two given rows have the same."""
        schema = self.schema(name)
        known = {column.lower(): column for column in schema.names}
        if not declared or not all(column.lower() in known for column in declared):
            return ()
        columns = [known[column.lower()] for column in declared]
        counted = Counter(str(row) for row in self.given(name).frame(schema).select(*map(quoted, columns)).collect())
        doubled = next((row for row, number in counted.items() if number > 1), None)
        if doubled is not None:
            text = f"two given rows of {name} have the same primary key: {doubled}. Give each row another {', '.join(columns)}."
            raise self.declared.wrong(("given", name), text)
        return tuple(declared)

    def change(self, step: int) -> None:
        """Carry out the changes of a step. Raises ConfigError for one that changes nothing."""
        asked = self.declared.test.steps[step]
        for name, change in asked.change.items():
            for statement, rows, what in self._statements(name, change, ("steps", step, "change", name)):
                self._run(statement, rows, what)
            if change.insert is not None:
                inserted: Loc = ("steps", step, "change", name, "insert")
                frame = Rows(self.spark, self.declared, inserted, name, change.insert).frame(self.schema(name))
                frame.coalesce(1).write.format("delta").mode("append").save(self.paths[name])
        for number, text in enumerate(asked.sql):
            loc: Loc = ("steps", step, "sql", number)
            rows = Rows(self.spark, self.declared, loc, "the statement", RowsConfig())
            self._run(_NAME.sub(lambda found, loc=loc: self._place(found[1], loc), text), rows, text)  # type: ignore[misc]

    def schema(self, name: str) -> T.StructType:
        """The columns of a table: those that the test declares, or those of the real table, or else those that the rows name."""
        if name not in self._found:
            declared = self._declared(name)
            self._found[name] = declared or self.schemas.real(name) or self._named(name)
        return self._found[name]

    def inferred(self) -> list[str]:
        """The tables whose columns are known from the test's rows only."""
        return [name for name in self.paths if self._declared(name) is None and self.schemas.real(name) is None]

    def _declared(self, name: str) -> T.StructType | None:
        given = self.declared.test.given.get(name, GivenConfig())
        text = given.columns or self.declared.columns.get(name)
        if text is None:
            return None
        try:
            found = T.StructType.fromDDL(text)
            assert isinstance(found, T.StructType)
            return plain(found)
        except SPARK_ERRORS as error:
            where = ("given", name, "columns") if given.columns else ()
            raise self.declared.wrong(where, f"`columns` of {name} are written as in CREATE TABLE, and {text!r} is not.") from error

    def _named(self, name: str) -> T.StructType:
        """The columns that the given and the inserted rows name, with the types of their values."""
        rows = [self.given(name), *self._inserted(name)]
        in_sql = next((found for one in rows if (found := one.columns_in_sql()) is not None), None)
        if in_sql is not None:
            return in_sql
        names = list(dict.fromkeys(column for one in rows for column in one.named()))
        if not names:
            text = f"the table {name!r} does not exist, and no row of it is given: give its columns, `{name}: {{columns: id BIGINT, ...}}`."
            raise self.declared.wrong(("given",), text)
        return T.StructType([T.StructField(column, self._type(name, column, rows), True) for column in names])

    def _type(self, name: str, column: str, rows: Sequence[Rows]) -> T.DataType:
        advice = f"The table does not exist: give the types, `{name}: {{columns: ..., rows: ...}}`."
        try:
            found = type_of([value for one in rows for value in one.values(column)])
        except UnfitError as error:
            raise self.declared.wrong(("given", name), f"{name}, column {column!r} has {error}. {advice}") from error
        if found is None:
            raise self.declared.wrong(("given", name), f"{name}, column {column!r} has no value, so that its type is not known. {advice}")
        return found

    def _inserted(self, name: str) -> Iterator[Rows]:
        for number, step in enumerate(self.declared.test.steps):
            change = step.change.get(name)
            if change is not None and change.insert is not None:
                yield Rows(self.spark, self.declared, ("steps", number, "change", name, "insert"), name, change.insert)

    def _statements(self, name: str, change: ChangeConfig, loc: Loc) -> Iterator[tuple[str, Rows, str]]:
        table, schema = f"delta.{quoted(self.paths[name])}", self.schema(name)
        for number, values in enumerate(change.delete):
            rows = Rows(self.spark, self.declared, (*loc, "delete", number), name, RowsConfig())
            yield f"DELETE FROM {table} WHERE {rows.condition(values, schema)}", rows, f"delete {values}"
        for number, update in enumerate(change.update):
            rows = Rows(self.spark, self.declared, (*loc, "update", number), name, RowsConfig())
            assigned, chosen = rows.assignments(update.set, schema), rows.condition(update.where, schema)
            yield f"UPDATE {table} SET {assigned} WHERE {chosen}", rows, f"update {update.where}"

    def _run(self, statement: str, rows: Rows, what: str) -> None:
        """Run a statement. Raises ConfigError if it fails, or changes no row."""
        try:
            done = self.spark.sql(statement).collect()
        except SPARK_ERRORS as error:
            raise self.declared.wrong(rows.loc, f"{what} fails: {root_cause(error)}.") from error
        affected = done[0].asDict().get("num_affected_rows") if done else None
        if affected == 0:
            raise self.declared.wrong(rows.loc, f"{rows.of}: {what} finds no row to change.")

    def _place(self, name: str, loc: Loc) -> str:
        if name not in self.paths:
            raise self.declared.wrong(loc, f"the view reads no table {name!r}. {nearest(name, self.paths)}")
        return f"delta.{quoted(self.paths[name])}"
