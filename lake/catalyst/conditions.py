"""Reads the conditions and orders of people who look at rows. They may speak of the columns that are shown, and of nothing else.

What is allowed is decided on Spark's parsed expression, before anything is resolved: to resolve a subquery would open its tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lake.catalyst.census import Kind
from lake.catalyst.definitions import Catalyst
from lake.catalyst.expressions import PLAN_EXPRESSION
from lake.catalyst.trees import LIMITS
from lake.catalyst.user_functions import user_functions
from lake.core.sql import quoted
from lake.errors import QueryError
from lake.spark.failures import SPARK_ERRORS, reason
from lake.spark.jvm.gateway import Java, jvm_of, kind_of

_REFUSED = frozenset({"java_method", "reflect", "try_reflect", "input_file_name", "input_file_block_start", "input_file_block_length"})
"""Functions of Spark that run any Java method, and those that tell where the files are."""
_RESOLVABLE = frozenset({"UnresolvedAttribute", "UnresolvedFunction", "UnresolvedNamedLambdaVariable", "UnresolvedExtractValue"})
_TIMES = frozenset({"current_date", "current_time", "current_timestamp", "localtimestamp"})
"""What is written as a column is."""


@dataclass(frozen=True)
class Order:
    """One column of an order. `nulls_first`: where NULL goes."""

    column: str
    ascending: bool
    nulls_first: bool


def where(frame: DataFrame, condition: str) -> DataFrame:
    """The rows that meet a condition over the frame's columns. Raises QueryError for any other condition."""
    catalyst = Catalyst(frame.sparkSession)
    try:
        parsed = frame.sparkSession._jsparkSession.sessionState().sqlParser().parseExpression(condition)
        for refusal in _refusals(parsed, catalyst, frame.columns):
            raise QueryError(f"The condition {condition!r} can't be used: {refusal}.")
        found = frame.where(condition)
        plan = catalyst.analysed(found)
    except SPARK_ERRORS as error:
        raise QueryError(f"The condition {condition!r} can't be used: {reason(error)}. {_columns(frame.columns)}") from error
    functions = [function.name for function in user_functions(plan, catalyst)]
    if functions:  # under the name of one of Spark's own
        raise QueryError(f"The condition {condition!r} can't be used: {functions[0]} is not the function of Spark.")
    return found


def ordered(frame: DataFrame, orders: Sequence[Order]) -> DataFrame:
    """The rows in an order."""
    return frame.orderBy(*map(_sorted, orders)) if orders else frame


def order_of(frame: DataFrame, text: str) -> list[Order]:
    """The order that a text such as `price DESC, item` gives. Raises QueryError where it is not one of the frame's columns."""
    try:
        plan = Catalyst(frame.sparkSession).parse(f"SELECT * FROM t ORDER BY {text}")
    except (ValueError, *SPARK_ERRORS) as error:
        raise QueryError(f"The order {text!r} can't be read: {reason(error)}. Name columns, such as `price DESC, item`.") from error
    catalyst = Catalyst(frame.sparkSession)
    terms = catalyst.list(plan.order()) if plan.nodeName() == "Sort" else []
    found = list(_orders(terms, frame.columns, catalyst))
    if not terms or len(found) < len(terms):
        raise QueryError(f"The order {text!r} can't be used: it has more than columns in it. {_columns(frame.columns)}")
    return found


def order_of_query(spark: SparkSession, query: str, columns: Sequence[str]) -> list[Order]:
    """The ORDER BY at the top of a query, as far as it is one of its columns; empty if there is none, or the query can't be parsed."""
    catalyst = Catalyst(spark)
    try:
        plan = catalyst.parse(query)
    except (ValueError, *SPARK_ERRORS):
        return []
    while plan.nodeName() in (*LIMITS, "UnresolvedWith"):
        plan = plan.child()
    terms = catalyst.list(plan.order()) if plan.nodeName() == "Sort" and getattr(plan, "global")() else []
    return list(_orders(terms, columns, catalyst))


def _orders(terms: Sequence[Java], columns: Sequence[str], catalyst: Catalyst) -> Iterator[Order]:
    """The orders of a parsed ORDER BY, up to the first that is not by a column."""
    for term in terms:
        column = _column(term.child(), columns, catalyst)
        if column is None:
            return
        yield Order(column, str(term.direction().sql()) == "ASC", str(term.nullOrdering().sql()) == "NULLS FIRST")


def _column(java: Java, columns: Sequence[str], catalyst: Catalyst) -> str | None:
    """The column that a parsed expression is: by its name, or by its place (ORDER BY 2)."""
    kind = kind_of(java)
    if kind == "UnresolvedAttribute":
        parts = [str(part) for part in catalyst.list(java.nameParts())]
        return next((c for c in columns if len(parts) == 1 and c.lower() == parts[0].lower()), None)
    if kind not in ("UnresolvedOrdinal", "Literal"):
        return None
    number = java.ordinal() if kind == "UnresolvedOrdinal" else java.value()
    return columns[number - 1] if isinstance(number, int) and 0 < number <= len(columns) else None


def _sorted(order: Order) -> Column:
    column = F.col(quoted(order.column))
    if order.ascending:
        return column.asc_nulls_first() if order.nulls_first else column.asc_nulls_last()
    return column.desc_nulls_first() if order.nulls_first else column.desc_nulls_last()


def _refusals(parsed: Java, catalyst: Catalyst, columns: Sequence[str]) -> Iterator[str]:
    """What a parsed condition must not have."""
    known = {column.lower() for column in columns} | _TIMES
    for kind, java in catalyst.census(parsed, subqueries=False).where(_is_asked_about):
        if catalyst.is_a(java, PLAN_EXPRESSION):
            yield "it has a subquery, but may only speak of the view's own columns"
        elif kind == "UnresolvedAttribute":
            name = str(catalyst.list(java.nameParts())[0])
            if name.lower() not in known:
                yield f"the view has no column {name!r}. {_columns(columns).rstrip('.')}"
        elif kind == "UnresolvedFunction":
            parts = [str(part) for part in catalyst.list(java.nameParts())]
            if not _is_allowed(parts, catalyst.spark):
                yield f"{'.'.join(parts)} is none of Spark's own functions that only compute"
        elif (kind.startswith("Unresolved") and kind not in _RESOLVABLE) or "Identifier" in kind:
            yield "it names something by more than a column's or a function's name"


def _is_asked_about(kind: Kind) -> bool:
    """Whether an expression may be one that is refused."""
    return kind.has_plan or kind.name.startswith("Unresolved") or "Identifier" in kind.name


def _is_allowed(parts: Sequence[str], spark: SparkSession) -> bool:
    jvm = jvm_of(spark)
    if len(parts) != 1 or parts[0].lower() in _REFUSED:
        return False
    builtin = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    return bool(builtin.functionExists(jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(parts[0].lower())))


def _columns(columns: Sequence[str]) -> str:
    return f"The view has: {', '.join(columns)}."
