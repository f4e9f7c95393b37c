"""The only module that calls Great Expectations: expectations in, redacted results out.

Lakejoin's own measurements (rows that differ, hours left, ...) are validated as a table of one row with a column for each. Expectations of
users are validated on the rows of the view.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from lake.errors import ConfigError

if find_spec("great_expectations") is None:
    raise ConfigError('Checks need Great Expectations, which is not installed here. Run: pip install "lakejoin[quality]".')
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")  # read at import

import great_expectations as gx
import great_expectations.expectations as gxe
import pandas as pd  # type: ignore[import-untyped]
from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.core.batch_definition import BatchDefinition
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.expectations.expectation import (
    ColumnMapExpectation,
    ColumnPairMapExpectation,
    Expectation,
    MulticolumnMapExpectation,
)
from pyspark.sql import DataFrame

from lake.config.models import ExpectationConfig, nearest
from lake.core.redaction import Samples
from lake.quality.measurements import Measurement
from lake.spark.session import silence_pyspark_errors

_SHOWN = ("element_count", "unexpected_count", "unexpected_percent", "missing_count", "missing_percent", "observed_value")
_SOME = 5
_PLACE = "place"
_QUERY = "unexpected_rows_expectation"
_one_at_a_time = threading.Lock()
"""Held during a validation: Great Expectations has one current project for all threads."""
_COUNTS = ("expect_table_row_count_to_be_between", "expect_table_row_count_to_equal", _QUERY)


@dataclass(frozen=True)
class ExpectationResult:
    """The result of one expectation of a user. `rows`: that do not meet it, None for an expectation on an aggregate; `error`: why it could
    not run."""

    expectation: ExpectationConfig
    met: bool
    rows: int | None
    share: float | None
    observed: float | None
    samples: tuple[Mapping[str, Any], ...]
    error: str


def validate_measurements(name: str, measures: Sequence[Measurement]) -> dict[str, Any]:
    """Great Expectations' validation result, as JSON, of measurements against their limits."""
    known = {m.name: [m.value] for m in measures if m.value is not None}
    asked = [_of_measure(m) for m in measures]
    with _one_at_a_time:
        context = gx.get_context(mode="ephemeral")
        batch = context.data_sources.add_pandas("lakejoin").add_dataframe_asset(name).add_batch_definition_whole_dataframe("measures")
        return _as_json(_run(context, batch, pd.DataFrame(known or {"nothing measured": [0]}), name, asked))


def validate_rows(
    name: str, frame: DataFrame, asked: Sequence[ExpectationConfig], shown: Samples, key: Sequence[str]
) -> tuple[dict[str, Any], list[ExpectationResult]]:
    """Validate rows: Great Expectations' validation result, as JSON, and the result of each expectation.

    Raises ConfigError for an unknown expectation.
    """
    silence_pyspark_errors()  # PySpark logs the values that its errors quote
    with _one_at_a_time:
        found = _run_on_rows(name, frame, [_of_config(e, i) for i, e in enumerate(asked)], key)
    found.results.sort(key=lambda result: result.expectation_config.meta[_PLACE])  # Great Expectations changes their order
    results = [_result_of(config, result, shown, key) for config, result in zip(asked, found.results, strict=True)]
    for result, met in zip(found.results, results, strict=True):
        hidden = () if met.observed is not None else ("observed_value",)
        result.result = {k: v for k, v in (result.result or {}).items() if k in _SHOWN and k not in hidden}
        if met.samples:
            result.result["partial_unexpected_list"] = [dict(s) for s in met.samples]
        result.exception_info = {"raised_exception": bool(met.error), "exception_message": met.error, "exception_traceback": ""}
    return _as_json(found), results


def of_rows(expectation: ExpectationConfig) -> bool:
    """Whether the expectation is on single rows, so that checking the changed rows is enough."""
    kind = _kind(expectation.type)
    return issubclass(kind, ColumnMapExpectation | ColumnPairMapExpectation | MulticolumnMapExpectation | _kind(_QUERY))


def _run_on_rows(name: str, frame: DataFrame, asked: Sequence[Any], key: Sequence[str]) -> Any:
    context = gx.get_context(mode="ephemeral")
    source = context.data_sources.add_spark("lakejoin")
    source.get_execution_engine().spark = (
        frame.sparkSession
    )  # otherwise it looks for its temporary view in the first session of the process
    batch = source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("rows")
    return _run(context, batch, frame, name, asked, key)


def _run(context: Any, batch: BatchDefinition[Any], frame: Any, name: str, asked: Sequence[Any], key: Sequence[str] = ()) -> Any:
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    suite = context.suites.add(gx.ExpectationSuite(name=name, expectations=list(asked)))
    definition = context.validation_definitions.add(gx.ValidationDefinition(name=name, data=batch, suite=suite))
    how: dict[str, Any] = {"result_format": "SUMMARY", "partial_unexpected_count": _SOME}  # COMPLETE collects every row to the driver
    how |= {"unexpected_index_column_names": list(key)} if key else {}
    return definition.run(batch_parameters={"dataframe": frame}, result_format=how)


def _of_measure(measure: Measurement) -> Any:
    bounds = {k: v for k, v in (("min_value", measure.least), ("max_value", measure.most)) if v is not None}
    texts = {k: v for k, v in (("description", measure.description), ("notes", measure.detail)) if v}
    meta = {"check": measure.check, "unit": measure.unit}
    return _kind(measure.expectation)(column=measure.name, **bounds, **texts, meta=meta, severity=measure.severity)


def _of_config(config: ExpectationConfig, place: int) -> Any:
    try:
        return _kind(config.type)(**config.kwargs, meta={_PLACE: place})
    except (TypeError, ValueError) as error:
        text = " ".join(str(error).split())
        raise ConfigError(f"The expectation {config.type} can't be used with {config.kwargs}: {text}") from error


@cache
def _kinds() -> dict[str, type]:
    found = {name: getattr(gxe, name) for name in dir(gxe)}
    return {_snake(n): kind for n, kind in found.items() if isinstance(kind, type) and issubclass(kind, Expectation)}


def _kind(name: str) -> Any:
    if name not in _kinds():
        raise ConfigError(f"Great Expectations knows no expectation {name!r}. {nearest(name, _kinds())}")
    return _kinds()[name]


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


def _result_of(config: ExpectationConfig, result: Any, shown: Samples, key: Sequence[str]) -> ExpectationResult:
    error = next((shown.text(text, config.kwargs.values()) for text in _messages(result.exception_info)), "")
    body = result.result or {}
    observed = body.get("observed_value")
    is_rows = "unexpected_count" in body or config.type == _QUERY
    rows = int(body.get("unexpected_count", observed or 0)) if is_rows and not error else None
    samples = [shown(row, key) for row in _unexpected(body)]
    return ExpectationResult(
        config,
        bool(result.success),
        rows,
        body.get("unexpected_percent"),
        float(observed) if isinstance(observed, int | float) and (config.type in _COUNTS or shown.aggregate(config.kwargs)) else None,
        tuple(s for s in samples if s is not None)[:_SOME],
        error,
    )


def _unexpected(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows, or their keys, that do not meet an expectation."""
    details = body.get("details") or {}
    return list(body.get("partial_unexpected_index_list") or details.get("unexpected_rows") or [])


def _messages(info: Any) -> Iterator[str]:
    """The messages of the exceptions of a result."""
    if not isinstance(info, Mapping):
        return
    if info.get("raised_exception") and "exception_message" in info:
        yield str(info["exception_message"]).strip().splitlines()[0]
    for body in info.values():
        yield from _messages(body)


def _as_json(found: ExpectationSuiteValidationResult) -> dict[str, Any]:
    """A validation result as JSON, without stack traces and with each exception once."""
    for result in found.results:
        observed = (result.result or {}).get("observed_value")
        if isinstance(observed, float):
            result.result["observed_value"] = float(observed)  # a number of numpy's has no JSON form
        messages = list(_messages(result.exception_info))
        error = messages[0] if messages else ""
        result.exception_info = {"raised_exception": bool(messages), "exception_message": error, "exception_traceback": ""}
    body: Any = found
    return dict(body.to_json_dict())
