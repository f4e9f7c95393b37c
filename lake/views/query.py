"""Turns a view's SQL or Python function into a DataFrame over frames of its tables."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lake.catalyst import Catalyst
from lake.config.models import Config, ViewConfig
from lake.config.view_sources import one_query, query_text
from lake.errors import DefinitionError
from lake.spark.failures import SPARK_ERRORS
from lake.spark.queries import place, whole_names
from lake.views.user_functions import load_function


def named(spark: SparkSession, name: str, config: Config) -> list[str]:
    """The tables and views that a view's query names (or its function asks for), so that no other need be opened."""
    view = config.view(name)
    known = [n for n in [*config.tables, *config.views] if n != name or view.function is None]
    if view.function is not None:
        return list(function_tables(name, load_function(view, config), known).values())
    catalyst = Catalyst(spark)
    try:
        words = {n.lower() for n in catalyst.relation_names(catalyst.parse(one_query(query_text(view, config))))}
    except (ValueError, *SPARK_ERRORS):  # `define` says what is wrong with it
        return list(config.tables)
    return [n for n in known if n.lower() in words]


def view_frame(catalyst: Catalyst, name: str, view: ViewConfig, config: Config, tables: Mapping[str, DataFrame]) -> DataFrame:
    """The view's query over frames of its tables: its SQL, or what its function returns."""
    if view.function is None:
        place(tables)
        return _query_frame(catalyst, name, view, config)
    function = load_function(view, config)
    frame = function(**{parameter: tables[table] for parameter, table in function_tables(name, function, list(tables)).items()})
    if not isinstance(frame, DataFrame):
        raise DefinitionError(f"The function of view {name!r} must return a DataFrame, it returned {type(frame).__name__}.")
    return frame


def _query_frame(catalyst: Catalyst, name: str, view: ViewConfig, config: Config) -> DataFrame:
    """The view's SQL over the session's temp views named as the tables."""
    try:
        plan = catalyst.parse(one_query(query_text(view, config)))
        return catalyst.frame(whole_names(catalyst.spark, plan, [*config.tables, *config.views]))
    except ValueError as error:
        raise DefinitionError(f"The query of view {name!r} must be one SELECT, found {error}.") from error


def function_tables(name: str, function: Any, tables: Sequence[str]) -> dict[str, str]:
    """Parameter → table, of all tables that a view's function asks for; silver_accounts asks for silver.accounts.

    Raises DefinitionError for one that is not declared.
    """
    parameters = list(inspect.signature(function).parameters)
    whole = [table.replace(".", "_").lower() for table in tables]
    doubled = [
        table for table, place in zip(tables, whole, strict=True) if whole.count(place) > 1 and table.replace(".", "_") in parameters
    ]
    if doubled:
        raise DefinitionError(f"The function of view {name!r} has a parameter that stands for several tables: {', '.join(doubled)}.")
    named = {table.replace(".", "_"): table for table in tables} | {table: table for table in tables}
    unknown = [p for p in parameters if p not in named]
    if unknown:
        raise DefinitionError(
            f"The function of view {name!r} has the parameter {unknown[0]!r}, which is no table and no view. "
            f"There are: {', '.join(sorted(tables))}."
        )
    return {parameter: named[parameter] for parameter in parameters}
