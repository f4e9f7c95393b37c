"""A view's definition: its query analysed once over placeholders, as a tree of relations with a key and a fingerprint.

A query whose result is not a function of its inputs is refused here, before anything runs; so is one that reads what is not
declared, and one whose columns a Delta table can't store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lake.catalyst import DEFINITION_SETTINGS, Catalyst
from lake.catalyst.aggregate_split import stored
from lake.catalyst.inspection import NOW, TIME_OF_DAY, Inspection, inspected
from lake.catalyst.keys import Carrying, Key, SourceKey, carrying, tie_free
from lake.catalyst.nodes import Expression, Node
from lake.catalyst.null_extension import null_extended
from lake.catalyst.over_rows import Query
from lake.catalyst.rounding import of_either_zero, rounded
from lake.catalyst.user_functions import user_functions
from lake.config.models import HIDDEN_PREFIX, Config, ViewConfig
from lake.config.view_sources import query_text
from lake.delta.file_changes import FEED_COLUMNS
from lake.delta.storable import storable
from lake.errors import ConfigError, DefinitionError
from lake.relations.base import Relation
from lake.relations.order_dependent import scope
from lake.relations.stored import stored_of
from lake.relations.tree import build
from lake.spark.failures import SPARK_ERRORS
from lake.spark.session import settings
from lake.spark.types import comparable
from lake.views.fingerprint import fingerprint
from lake.views.function_versions import function_versions
from lake.views.query import view_frame
from lake.views.refusals import refused_by_spark


@dataclass(frozen=True)
class OutputColumn:
    """A column of the view: the name the query gives it, its type, and the attribute id it has in the tree."""

    name: str
    data_type: T.DataType
    attribute: int


@dataclass(frozen=True)
class Unguarded:
    """A view's relation without guards (catalyst/guards.py), and its scope. It gives all rows whatever their values are."""

    relation: Relation
    scope: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Definition:
    """What a view is. `columns` are the query's; `hidden` are columns of its key or scope that the query does not select.

    `scope`: the columns by which rows are recomputed and compared with the stored rows, where the result depends on the order of rows
    (trap 8); empty where it does not, or where no columns bound what a change affects. `carried`: where the operator at the root is
    refreshed from the stored rows, its columns → the tree's output that carries them. `unguarded`: the relation and its scope where
    a guarded operator raised (catalyst/guards.py). `null_extended`: the columns that each outer join
    null-extends together. `key_given`: the key is the one that the configuration declares for the view. `query`: what it is compared
    with another query by. `text`: the query as it is written, empty where a function gives it.
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
    unguarded: Unguarded
    key_given: bool = False
    null_extended: tuple[tuple[str, ...], ...] = ()
    query: Query | None = None
    text: str = ""

    @property
    def table_columns(self) -> tuple[OutputColumn, ...]:
        """All columns of the view's table: the query's, then the hidden ones."""
        return self.columns + self.hidden

    @property
    def recomputed(self) -> str:
        """Why each refresh computes the whole query, empty where it does not: its result depends on the order of rows, and has no scope."""
        found = "" if self.scope or self.carried else self.relation.order_dependent
        return f"it uses {found}, under no key of its own" if found else ""

    @property
    def rounded(self) -> tuple[str, ...]:
        """The query's columns that are made of sums of floating-point numbers: their last digits depend on the order of rows."""
        found = rounded(self.unguarded.relation.node, self.catalyst)  # a guard moves what it guards into a projection
        return tuple(c.name for c in self.columns if c.attribute in found)

    @property
    def of_either_zero(self) -> tuple[str, ...]:
        """The query's columns that are made of maxima and minima of floating-point numbers: Spark's zero in them may be 0.0 or -0.0."""
        found = of_either_zero(self.unguarded.relation.node, self.catalyst)
        return tuple(c.name for c in self.columns if c.attribute in found)

    @property
    def depends_on_keys(self) -> bool:
        """Whether the view is right only while declared primary keys hold: its key does, or a window's order leaves no ties by one."""
        declared = self.key is not None and self.key.declared
        return (declared and not self.key_given) or any(relation.node.tie_free == "declared" for relation in self.relation.walk())

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the key's columns in the view's table, hidden ones included; empty for a multiset."""
        if self.key is None:
            return ()
        names = {c.attribute: c.name for c in reversed(self.table_columns)}
        return tuple(names[i] for i in self.key.ids)


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
    return define_each(spark, name, (config,), schemas, keys)[0]


def define_each(
    spark: SparkSession,
    name: str,
    configs: Sequence[Config],
    schemas: Mapping[str, T.StructType],
    keys: Mapping[str, Sequence[str]],
) -> list[Definition]:
    """The view's definition by each of some configurations, over the same placeholders, so that they can be compared. Raises the same."""
    found, config = list[Definition](), configs[0]
    with settings(spark, DEFINITION_SETTINGS):
        try:
            catalyst = Catalyst(spark)
            placeholders = {t: catalyst.placeholder(t, schema) for t, schema in schemas.items()}
            for config in configs:
                frame = view_frame(catalyst, name, config.view(name), config, placeholders)
                found.append(_defined(catalyst, name, config, schemas, keys, frame))
        except SPARK_ERRORS as error:
            raise refused_by_spark(name, config, error) from error
    return found


def define_part(
    definition: Definition, config: Config, schemas: Mapping[str, T.StructType], keys: Mapping[str, Sequence[str]], analysed: object
) -> Definition:
    """Another analysed plan over the placeholders of a definition, as a definition of the same view. Raises DefinitionError."""
    catalyst = definition.catalyst
    with settings(catalyst.spark, DEFINITION_SETTINGS):
        return _defined(catalyst, definition.view, config, schemas, keys, catalyst.frame(analysed))


def _defined(
    catalyst: Catalyst,
    name: str,
    config: Config,
    schemas: Mapping[str, T.StructType],
    keys: Mapping[str, Sequence[str]],
    frame: DataFrame,
) -> Definition:
    view = config.view(name)
    plan, optimised = catalyst.analysed(frame), catalyst.optimised(frame)
    found = inspected(plan, catalyst)
    _refuse_nondeterministic(name, found, "" if view.function else query_text(view, config))
    sources = _sources(name, found, list(schemas))
    columns = _columns(name, catalyst.schema_of(plan), catalyst.output_ids(optimised))
    normal = catalyst.normal_form(plan)
    functions = function_versions(name, user_functions(plan, catalyst), config.functions)
    primary_keys = {t: keys[t] for t in sources}
    _check_primary_keys(primary_keys, schemas)
    catalyst.mark_sessions(plan, optimised)
    source_keys = {t: SourceKey(tuple(columns), t in config.views) for t, columns in primary_keys.items()}
    tree = tie_free(catalyst.tree(optimised), catalyst, source_keys)
    given = _given_key(name, view, columns)
    carried = carrying(stored(tree, catalyst), catalyst, {} if given else source_keys)
    hidden = _hidden(carried, columns, catalyst.schema_of(carried.node.spine[0]))
    keyed = all(storable(column.data_type) for column in hidden)
    if not keyed:  # what tells its rows apart has no place in its table
        carried, hidden = Carrying(tree, None), ()
    relation = build(carried.node, catalyst)
    operator = stored_of(relation) if keyed else None
    scopes = scope(relation, catalyst) if relation.order_dependent and operator is None and keyed else ()
    shape = [f"{c.name} {c.data_type.simpleString()}" for c in (*columns, *hidden)]
    unguarded = _unguarded(relation, carried.node, catalyst, scopes, keyed)
    return Definition(
        view=name,
        catalyst=catalyst,
        relation=relation,
        sources=sources,
        columns=columns,
        hidden=hidden,
        key=given or carried.key,
        scope=scopes,
        carried={} if operator is None else dict(zip([a.id for a in operator.output], carried.scope, strict=True)),
        fingerprint=fingerprint(catalyst.spark, name, config, normal, shape, primary_keys, functions),
        key_given=given is not None,
        unguarded=unguarded,
        null_extended=tuple(tuple(c.name for c in columns if c.attribute in group) for group in null_extended(tree, catalyst)),
        query=Query(plan, unguarded.relation.node.spine[0], tuple((c.name, c.attribute) for c in (*columns, *hidden))),
        text="" if view.function else query_text(view, config),
    )


def _unguarded(relation: Relation, node: Node, catalyst: Catalyst, scopes: tuple[Expression, ...], storable: bool) -> Unguarded:
    if not any(r.node.guarded for r in relation.walk()):
        return Unguarded(relation, scopes)
    other = build(node, catalyst, guards=False)
    return Unguarded(other, scope(other, catalyst) if other.order_dependent and storable else ())


def _refuse_nondeterministic(name: str, found: Inspection, text: str) -> None:
    named = sorted({*found.environment, *_typed_moments(text)}) or found.random
    if named or not found.deterministic:
        raise DefinitionError(
            f"The query of view {name!r} is not a function of its tables: it uses {', '.join(named) or 'a nondeterministic expression'}. "
            "Put the value into a table, or leave it to the reader of the view."
        )


def _typed_moments(text: str) -> set[str]:
    """Literals such as DATE'today' and TIMESTAMP'12:30', of which the parser leaves only the day that it was."""
    moment = rf"(\b(?:DATE|TIMESTAMP\w*)\s*'\s*(?:{'|'.join(NOW)})\b[^']*'|\bTIMESTAMP(?:_LTZ)?\s*'\s*{TIME_OF_DAY}[^']*')"
    passed = r"--[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`"  # comments, texts and names
    return {found[1] for found in re.finditer(f"{moment}|{passed}", text, re.IGNORECASE | re.DOTALL) if found[1]}


def _sources(name: str, found: Inspection, inputs: Sequence[str]) -> tuple[str, ...]:
    if found.undeclared:
        raise DefinitionError(
            f"The query of view {name!r} reads {found.undeclared[0]}, which is no table of lakejoin.yml. "
            "Declare the table under `tables:` and read it by that name."
        )
    if None in found.sources:
        raise DefinitionError(
            f"The query of view {name!r} reads a DataFrame that is none of its tables. Declare its table under `tables:`."
        )
    return tuple(t for t in inputs if t in found.sources)


def _columns(name: str, schema: T.StructType, ids: Sequence[int]) -> tuple[OutputColumn, ...]:
    seen: set[str] = set()
    for field in schema.fields:
        if field.name.lower() in seen:
            raise DefinitionError(f"The query of view {name!r} returns two columns named {field.name!r}. Give one another name with AS.")
        if not field.name or field.name.lower().startswith(HIDDEN_PREFIX) or field.name.lower() in FEED_COLUMNS:
            raise DefinitionError(
                f"The query of view {name!r} returns a column named {field.name!r}, which is reserved. Rename it with AS."
            )
        if not storable(field.dataType):
            raise DefinitionError(
                f"Column {field.name!r} of view {name!r} has type {field.dataType.simpleString()}, which Delta can't store. CAST it."
            )
        seen.add(field.name.lower())
    return tuple(OutputColumn(f.name, f.dataType, i) for f, i in zip(schema.fields, ids, strict=True))


def _given_key(name: str, view: ViewConfig, columns: Sequence[OutputColumn]) -> Key | None:
    """The key that the configuration declares for the view. Raises ConfigError where the query does not have these columns."""
    known = {column.name.lower(): column for column in columns}
    for key in view.key:
        if key.lower() not in known:
            raise ConfigError(f"`views.{name}.key`: the query has no column {key!r}. It has: {', '.join(c.name for c in columns)}.")
        if not comparable(known[key.lower()].data_type):
            kind = known[key.lower()].data_type.simpleString()
            raise ConfigError(f"`views.{name}.key`: column {key!r} has type {kind}, whose values can't be compared. Name another column.")
    return Key(tuple(dict.fromkeys(known[key.lower()].attribute for key in view.key)), True) if view.key else None


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
