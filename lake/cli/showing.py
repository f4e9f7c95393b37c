"""Prints rows for `lakejoin show`: the chosen ones, in an order, as a table, as CSV or as JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lake.catalyst.conditions import order_of, order_of_query, ordered, where
from lake.cli import console
from lake.cli.arguments import RowFormat
from lake.config.view_sources import one_query, query_text
from lake.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lake.config.models import Config


def chosen(frame: DataFrame, config: Config, view: str, condition: str | None, order: str | None) -> DataFrame:
    """The rows of a view that meet a condition, in the given order, or else in that of the view's query. Raises QueryError."""
    if condition is not None:
        frame = where(frame, condition)
    if order is not None:
        return ordered(frame, order_of(frame, order))
    settings = config.view(view)
    with suppress(ConfigError):  # the query's file is gone: the rows are still there
        if settings.function is None:
            return ordered(frame, order_of_query(frame.sparkSession, one_query(query_text(settings, config)), frame.columns))
    return frame


def print_rows(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], how: RowFormat) -> None:
    """Print rows to standard output."""
    if how == RowFormat.json:
        console.print_json(rows)
    elif how == RowFormat.csv:
        writer = csv.writer(console.out().file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(value) for value in row.values()] for row in rows)
    else:
        console.print_table(list(columns), [[console.shown(value) for value in row.values()] for row in rows])


def _cell(value: Any) -> Any:
    """A value in a CSV file: NULL is empty, what has parts is JSON."""
    return json.dumps(value, default=str, ensure_ascii=False) if isinstance(value, dict | list) else value
