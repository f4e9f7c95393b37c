"""A view's definition: its query analysed once over placeholders, as a tree of relations with a key and a fingerprint.

A query whose result is not a function of its inputs is refused here, before anything runs; so is one that reads what is not
declared, and one whose columns a Delta table can't hold.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lake.catalyst import DEFINITION_SETTINGS, Catalyst
from lake.config import HIDDEN_PREFIX, Config, ViewConfig
from lake.errors import ConfigError, DefinitionError
from lake.keys import Carrying, Key, carrying, tie_free
from lake.measures import stored
from lake.nodes import Expression
from lake.relations.base import Relation
from lake.relations.scoped import scope
from lake.relations.stored import stored_of
from lake.relations.tree import build
from lake.scala import Java
from lake.tables import reason

_TIME_AND_USER = {
    "CurrentDate": "current_date",
    "CurDateExpressionBuilder": "curdate",
    "CurrentTimestamp": "current_timestamp",
    "CurrentTime": "current_time",
    "Now": "now",
    "LocalTimestamp": "localtimestamp",
    "CurrentTimeZone": "current_timezone",
    "CurrentUser": "current_user",
    "CurrentDatabase": "current_database",
    "CurrentCatalog": "current_catalog",
    "VariableReference": "a session variable",
    "Sample": "TABLESAMPLE",
}
_SETTINGS = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.timestampType",
)


@dataclass(frozen=True)
class OutputColumn:
    """A column of the view: the name the query gives it, its type, and the attribute id it has in the tree."""

    name: str
    data_type: T.DataType
    attribute: int


@dataclass(frozen=True, eq=False)
class Definition:
    """What a view is. `columns` are the query's; `hidden` are columns of its key or scope that the query does not select.

    `scope`: the columns by which rows are computed anew and compared with those that the view holds, where the result depends on the
    order of rows (trap 8); empty where it does not, or where no columns bound what a change touches. `carried`: where the operator
    at the root is refreshed from the rows that the view holds, its columns → the tree's output that carries them.
    """

    view: str
    catalyst: Catalyst
    relation: Relation
    sources: tuple[str, ...]
    columns: tuple[OutputColumn, ...]
    hidden: tuple[OutputColumn, ...]
    key: Key | None
    scope: tuple[Expression, ...]
    carried: Mapping[int, int]
    fingerprint: Mapping[str, str]

    @property
    def table_columns(self) -> tuple[OutputColumn, ...]:
        """All columns of the view's table: the query's, then the hidden ones."""
        return self.columns + self.hidden

    @property
    def order_dependent(self) -> str:
        """Why the view can't be refreshed from changes alone: its result depends on the order of rows, and it has no scope."""
        return "" if self.scope or self.carried else self.relation.order_dependent

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the key's columns in the view's table, hidden ones included; empty for a multiset."""
        if self.key is None:
            return ()
        names = {c.attribute: c.name for c in reversed(self.table_columns)}
        return tuple(names[i] for i in self.key.ids)


def named(spark: SparkSession, name: str, config: Config) -> list[str]:
    """The tables and views that a view's query names (or its function asks for), so that no other need be opened."""
    view = config.view(name)
    known = [n for n in [*config.tables, *config.views] if n != name or view.function is None]
    if view.function is not None:
        return function_tables(name, load_function(view, config), known)
    catalyst = Catalyst(spark)
    try:
        words = {n.lower() for n in catalyst.relation_names(catalyst.parse(_one_query(query_text(view, config))))}
    except (PySparkException, ValueError):  # `define` says what is wrong with it
        return list(config.tables)
    return [n for n in known if n.lower() in words]


def define(
    spark: SparkSession,
    name: str,
    config: Config,
    schemas: Mapping[str, T.StructType],
    keys: Mapping[str, Sequence[str]],
) -> Definition:
    """Analyse a view's query over placeholders of its inputs' schemas. `spark`: the view's own session; `keys`: the inputs' keys.

    Raises DefinitionError or ConfigError, with what to do.
    """
    view = config.view(name)
    catalyst = Catalyst(spark)
    before = {setting: spark.conf.get(setting, None) for setting in DEFINITION_SETTINGS}
    for setting, value in DEFINITION_SETTINGS.items():
        spark.conf.set(setting, value)
    try:
        placeholders = {t: catalyst.placeholder(t, schema) for t, schema in schemas.items()}
        frame = _frame(catalyst, name, view, config, placeholders)
        plan, optimised = catalyst.analysed(frame), catalyst.optimised(frame)
        census = catalyst.census(plan)
        _refuse_nondeterministic(name, catalyst, plan, census)
        sources = _sources(name, catalyst, census, list(schemas))
        columns = _columns(name, catalyst.schema_of(plan), [a.exprId().id() for a in catalyst.list(optimised.output())])
        normal = catalyst.normal_form(optimised)
        primary_keys = {t: keys[t] for t in sources}
        _check_primary_keys(primary_keys, schemas)
        catalyst.mark_sessions(plan, optimised)
        tree = tie_free(catalyst.tree(optimised), catalyst, primary_keys)
        carried = carrying(stored(tree, catalyst), catalyst, primary_keys)
        relation = build(carried.node, catalyst)
        operator = stored_of(relation)
        hidden = _hidden(carried, columns, catalyst.schema_of(carried.node.spine[0]))
        return Definition(
            name,
            catalyst,
            relation,
            sources,
            columns,
            hidden,
            carried.key,
            scope(relation, catalyst) if relation.order_dependent and operator is None else (),
            {} if operator is None else dict(zip([a.id for a in operator.output], carried.scope, strict=True)),
            _fingerprint(spark, view, config, normal, [*columns, *hidden], primary_keys),
        )
    except (PySparkException, Py4JJavaError) as error:
        raise _worded(name, view, config, error) from error
    finally:
        for setting, old in before.items():
            spark.conf.unset(setting) if old is None else spark.conf.set(setting, old)


def query_text(view: ViewConfig, config: Config) -> str:
    """The view's SQL, from the configuration or its file."""
    if view.query is not None:
        return view.query
    file = config.directory / str(view.query_file)
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"The query file {file} can't be read ({error.strerror}).") from error


def query_frame(catalyst: Catalyst, name: str, view: ViewConfig, config: Config) -> DataFrame:
    """The view's SQL over the session's temp views named as the tables."""
    try:
        return catalyst.frame(catalyst.parse(_one_query(query_text(view, config))))
    except ValueError as error:
        raise DefinitionError(f"The query of view {name!r} must be one SELECT, found {error}.") from error


def _one_query(text: str) -> str:
    return text.strip().rstrip(";")


def load_function(view: ViewConfig, config: Config) -> Any:
    """The Python function of a view, imported from beside the configuration or from the path."""
    assert view.function is not None
    module_name, function_name = view.function.split(":")
    directory = str(config.directory.resolve())
    added = directory not in sys.path
    if added:
        sys.path.insert(0, directory)
    try:
        return getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"`function: {view.function}` can't be loaded from {Path(directory)} or the Python path: {error}.") from error
    finally:
        if added:
            sys.path.remove(directory)


def function_tables(name: str, function: Any, tables: Sequence[str]) -> list[str]:
    """The tables that a view's function asks for: its parameters. Raises DefinitionError for one that is not declared."""
    parameters = list(inspect.signature(function).parameters)
    unknown = [p for p in parameters if p not in tables]
    if unknown:
        raise DefinitionError(
            f"The function of view {name!r} has the parameter {unknown[0]!r}, which is no table and no view. "
            f"There are: {', '.join(sorted(tables))}."
        )
    return parameters


def _frame(catalyst: Catalyst, name: str, view: ViewConfig, config: Config, tables: Mapping[str, DataFrame]) -> DataFrame:
    if view.function is None:
        for table, frame in tables.items():
            frame.createOrReplaceTempView(table)
        return query_frame(catalyst, name, view, config)
    function = load_function(view, config)
    frame = function(**{t: tables[t] for t in function_tables(name, function, list(tables))})
    if not isinstance(frame, DataFrame):
        raise DefinitionError(f"The function of view {name!r} must return a DataFrame, it returned {type(frame).__name__}.")
    return frame


def _refuse_nondeterministic(name: str, catalyst: Catalyst, plan: Java, census: Sequence[tuple[str, Java]]) -> None:
    bad = sorted({_TIME_AND_USER[kind] for kind, _ in census if kind in _TIME_AND_USER})
    if not bad and not plan.deterministic():
        bad = catalyst.nondeterministic(census)
    if bad or not plan.deterministic():
        raise DefinitionError(
            f"The query of view {name!r} is not a function of its tables: it uses {', '.join(bad) or 'a nondeterministic expression'}. "
            "Put the value into a table, or leave it to the reader of the view."
        )


def _sources(name: str, catalyst: Catalyst, census: Sequence[tuple[str, Java]], inputs: Sequence[str]) -> tuple[str, ...]:
    found = {catalyst.source_of(java) for kind, java in census if kind == "LogicalRDD"}
    if None in found:
        raise DefinitionError(
            f"The query of view {name!r} reads a DataFrame that is none of its tables. Declare its table under `tables:`."
        )
    return tuple(t for t in inputs if t in found)


def _columns(name: str, schema: T.StructType, ids: Sequence[int]) -> tuple[OutputColumn, ...]:
    seen: set[str] = set()
    for field in schema.fields:
        if field.name.lower() in seen:
            raise DefinitionError(f"The query of view {name!r} returns two columns named {field.name!r}. Give one another name with AS.")
        if not field.name or field.name.lower().startswith(HIDDEN_PREFIX):
            raise DefinitionError(
                f"The query of view {name!r} returns a column named {field.name!r}, which is reserved. Rename it with AS."
            )
        if _unstorable(field.dataType):
            raise DefinitionError(
                f"Column {field.name!r} of view {name!r} has type {field.dataType.simpleString()}, which a Delta table can't hold. CAST it."
            )
        seen.add(field.name.lower())
    return tuple(OutputColumn(f.name, f.dataType, i) for f, i in zip(schema.fields, ids, strict=True))


def _unstorable(data_type: T.DataType) -> bool:
    match data_type:
        case T.ArrayType():
            return _unstorable(data_type.elementType)
        case T.MapType():
            return _unstorable(data_type.keyType) or _unstorable(data_type.valueType)
        case T.StringType():
            return data_type.collation != "UTF8_BINARY"  # Delta keeps no collations
        case T.StructType():
            return any(_unstorable(f.dataType) for f in data_type.fields)
        case _:
            return isinstance(data_type, T.NullType | T.CalendarIntervalType | T.DayTimeIntervalType | T.YearMonthIntervalType)


def _hidden(carried: Carrying, columns: Sequence[OutputColumn], schema: T.StructType) -> tuple[OutputColumn, ...]:
    types = {a.id: f.dataType for a, f in zip(carried.node.output, schema.fields, strict=True)}
    key = carried.key.ids if carried.key is not None else ()
    missing = dict.fromkeys(i for i in [*key, *carried.scope] if i not in {c.attribute for c in columns})
    return tuple(OutputColumn(f"{HIDDEN_PREFIX}key_{n}", types[i], i) for n, i in enumerate(missing))


def _check_primary_keys(primary_keys: Mapping[str, Sequence[str]], schemas: Mapping[str, T.StructType]) -> None:
    for table, columns in primary_keys.items():
        names = {f.name.lower() for f in schemas[table].fields}
        for column in columns:
            if column.lower() not in names:
                raise ConfigError(
                    f"`tables.{table}.primary_key`: {table} has no column {column!r}. It has: {', '.join(schemas[table].names)}."
                )


def _fingerprint(
    spark: SparkSession,
    view: ViewConfig,
    config: Config,
    normal: str,
    columns: Sequence[OutputColumn],
    primary_keys: Mapping[str, Sequence[str]],
) -> dict[str, str]:
    """What rows of the view depend on besides its sources (trap 19): name → value, the long ones hashed."""
    shape = "\n".join(f"{c.name} {c.data_type.simpleString()}" for c in columns)
    parts = {"query": _digest(normal), "columns": _digest(shape), "spark": spark.version}
    parts["keys"] = "; ".join(f"{t}({', '.join(k)})" for t, k in sorted(primary_keys.items()) if k)
    if view.function is not None:
        parts["function"] = _digest(inspect.getsource(load_function(view, config)))
    parts |= {key: str(spark.conf.get(key)) for key in _SETTINGS}
    legacy = {k: v for k, v in spark.conf.getAll.items() if k.startswith("spark.sql.legacy.")}
    return parts | legacy


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _worded(name: str, view: ViewConfig, config: Config, error: Exception) -> DefinitionError:
    text = reason(error)
    if "LAKEJOIN_PLACEHOLDER" in str(error):
        text = (
            "it asks for rows while it is being defined (count, collect, show, a pivot without its values): "
            "a view's function may only build a DataFrame"
        )
    where = f" ({view.query_file})" if view.query_file else f" ({view.function})" if view.function else ""
    return DefinitionError(f"The query of view {name!r}{where} can't be used: {text}.")
