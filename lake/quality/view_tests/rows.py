"""Rows that a test of a view writes (in YAML, CSV or SQL) as frames, conditions and assignments over the columns of a table."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lake.config.models import HIDDEN_PREFIX, nearest
from lake.config.view_tests import Declared, RowsConfig
from lake.core.sql import quoted
from lake.errors import ConfigError
from lake.spark.failures import SPARK_ERRORS, root_cause
from lake.spark.literals import UnfitError, expression, sql_type
from lake.spark.session import made_frame
from lake.spark.types import nullable

Loc = tuple[object, ...]


def plain(schema: T.StructType) -> T.StructType:
    """The columns that a reader sees, all of them nullable, without what Delta knows of them."""
    shown = [f for f in schema.fields if not f.name.startswith(HIDDEN_PREFIX)]
    return T.StructType([T.StructField(f.name, nullable(_unlimited(f.dataType)), True) for f in shown])


def _unlimited(of: T.DataType) -> T.DataType:
    """CHAR(n) and VARCHAR(n) as STRING, which is what a reader of a table gets."""
    return T.StringType() if isinstance(of, T.CharType | T.VarcharType) else of


@dataclass(frozen=True)
class Rows:
    """Rows that a test writes, to be read as columns of a type. `loc`: their place in the test."""

    spark: SparkSession
    declared: Declared
    loc: Loc
    of: str
    given: RowsConfig

    def named(self) -> list[str]:
        """The columns that the rows name, in their order."""
        if self.given.format == "sql":
            return self._query().columns
        return list(dict.fromkeys(name for row in self._dicts() for name in row))

    def values(self, column: str) -> list[Any]:
        """The values of a column, as YAML reads them. Rows in SQL have none."""
        if self.given.format == "sql":
            return []
        found = [row.get(column) for row in self._dicts()]
        return [yaml.safe_load(value) if value else None for value in found] if self.given.format == "csv" else found

    def columns_in_sql(self) -> T.StructType | None:
        """The columns of rows in SQL, None of others."""
        return plain(self._query().schema) if self.given.format == "sql" else None

    def frame(self, schema: T.StructType, part: slice = slice(None)) -> DataFrame:
        """The rows of a part, by position, with the columns of a schema; NULL where a row does not name one.

        Raises ConfigError for a column that is not in the schema, and a value that does not fit.
        """
        self.refuse_unknown(schema)
        if self.given.format == "sql":
            found = self._query()
            names = {name.lower(): quoted(name) for name in found.columns}
            cast = [f"CAST({names.get(f.name.lower(), 'NULL')} AS {sql_type(f.dataType)}) AS {quoted(f.name)}" for f in schema.fields]
            return made_frame(self.spark, self._evaluated(found.selectExpr(*cast))[part], schema)
        rows = [{name.lower(): value for name, value in row.items()} for row in self._dicts()]
        literals = [[self._literal(number, f, row.get(f.name.lower())) for f in schema.fields] for number, row in enumerate(rows, 1)]
        return self._of_literals(literals, schema, part)

    def condition(self, values: Mapping[str, Any], schema: T.StructType) -> str:
        """The condition in SQL that these columns have these values."""
        fields = self._fields(values, schema)
        return " AND ".join(f"{quoted(f.name)} <=> {self._checked(f, values[name])}" for name, f in fields.items())

    def assignments(self, values: Mapping[str, Any], schema: T.StructType) -> str:
        """The assignments in SQL of these values to these columns."""
        fields = self._fields(values, schema)
        return ", ".join(f"{quoted(f.name)} = {self._checked(f, values[name])}" for name, f in fields.items())

    def _fields(self, values: Mapping[str, Any], schema: T.StructType) -> dict[str, T.StructField]:
        known = {f.name.lower(): f for f in schema.fields}
        for name in values:
            if str(name).lower() not in known:
                raise self._unknown_column(str(name), schema)
        return {name: known[str(name).lower()] for name in values}

    def refuse_unknown(self, schema: T.StructType) -> None:
        """Raise ConfigError if the rows name a column that is not in the schema."""
        known = {name.lower() for name in schema.names}
        wrong = next((name for name in self.named() if name.lower() not in known), None)
        if wrong is not None:
            raise self._unknown_column(wrong, schema)

    def _unknown_column(self, name: str, schema: T.StructType) -> ConfigError:
        return self.declared.wrong(self.loc, f"{self.of} has no column {name!r}. {nearest(name, schema.names)}")

    def _dicts(self) -> list[dict[str, Any]]:
        given = self.given.rows
        if self.given.format == "dict":
            assert not isinstance(given, str)
            return list(given)
        lines = [line for line in csv.reader(io.StringIO(str(given).strip()), skipinitialspace=True) if line]
        header = [name.strip() for name in lines[0]] if lines else []
        for number, line in enumerate(lines[1:], 1):
            if len(line) != len(header):
                text = f"row {number} of the CSV of {self.of} has {len(line)} fields, and the first line names {len(header)} columns."
                raise self.declared.wrong((*self.loc, "rows"), text)
        return [dict(zip(header, [cell or None for cell in line], strict=True)) for line in lines[1:]]

    def _query(self) -> DataFrame:
        try:
            return self.spark.sql(str(self.given.rows).strip().rstrip(";"))
        except SPARK_ERRORS as error:
            raise self.declared.wrong((*self.loc, "rows"), f"the SQL of the rows of {self.of} fails: {root_cause(error)}.") from error

    def _evaluated(self, frame: DataFrame) -> list[Any]:
        try:
            return frame.collect()
        except SPARK_ERRORS as error:
            raise self.declared.wrong((*self.loc, "rows"), f"the SQL of the rows of {self.of} fails: {root_cause(error)}.") from error

    def _of_literals(self, literals: Sequence[Sequence[str]], schema: T.StructType, part: slice) -> DataFrame:
        taken = literals[part]
        if not taken:
            return made_frame(self.spark, [], schema)
        names = ", ".join(quoted(name) for name in schema.names)
        try:
            frame = self.spark.sql(f"SELECT * FROM VALUES {', '.join('(' + ', '.join(row) + ')' for row in taken)} AS t({names})")
            frame.collect()  # the optimiser knows the rows: no job
        except SPARK_ERRORS:
            for number, row in enumerate(literals, 1):
                for f, value in zip(schema.fields, row, strict=True):
                    self._evaluate(f, value, f"row {number}, ")
            raise
        return frame

    def _literal(self, number: int, f: T.StructField, value: Any) -> str:
        try:
            if self.given.format == "csv" and isinstance(f.dataType, T.StringType) and value is not None:
                return expression(str(value), f.dataType)
            return expression(value, f.dataType)
        except UnfitError as error:
            raise self.declared.wrong((*self.loc, number - 1), f"{self.of}, row {number}, column {f.name!r}: {error}.") from error

    def _checked(self, f: T.StructField, value: Any) -> str:
        try:
            found = expression(value, f.dataType)
        except UnfitError as error:
            raise self.declared.wrong(self.loc, f"{self.of}, column {f.name!r}: {error}.") from error
        self._evaluate(f, found, "")
        return found

    def _evaluate(self, f: T.StructField, value: str, row: str) -> None:
        """Raise ConfigError if Spark can't evaluate a value."""
        try:
            self.spark.sql(f"SELECT {value}").collect()
        except SPARK_ERRORS as error:
            number = re.match(r"row (\d+)", row)
            loc = (*self.loc, int(number[1]) - 1) if number else self.loc
            text = f"{self.of}, {row}column {f.name!r} of type {sql_type(f.dataType).upper()}: {root_cause(error)}."
            raise self.declared.wrong(loc, text) from error
