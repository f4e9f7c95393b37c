"""Every builtin function of Spark, called by machine over the same rows in two orders and two partitionings.

Calls of aggregates are made of columns of many types; calls of other functions are those of the examples in Spark's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lake.spark.failures import SPARK_ERRORS
from lake.spark.jvm.gateway import jvm_of
from tests.lakes import frozen
from tests.relations.laws import local_frame

COLUMNS = ("b", "i", "n", "w", "f", "d", "z", "x", "p", "s", "y", "t", "u", "v", "af", "ad", "st", "sn", "q")
"""What aggregates of one argument are called with."""
_ROWS = """SELECT id, CAST(id % 3 AS INT) AS g, CAST(id % 5 AS INT) AS o, id % 7 < 3 AS b, CAST(id % 11 AS INT) AS i, id * 7919 AS n,
    9007199254740993 + id * 1000003 AS w, CAST(id * 0.1 AS FLOAT) AS f, CAST(id % 13 AS DOUBLE) * 0.1 + pow(10, id % 17) AS d,
    (id % 2 * 2 - 1) * 0D AS z, CAST(id * 1.07 AS DECIMAL(10, 2)) AS x, CAST(id * 1.07 AS DECIMAL(30, 10)) AS p,
    concat('s', id % 19) AS s, CAST(concat('y', id % 23) AS BINARY) AS y, DATE'2026-01-01' + CAST(id % 29 AS INT) AS t,
    TIMESTAMP'2026-01-01 00:00:00' + make_interval(0, 0, 0, 0, 0, id % 31) AS u, parse_json(CAST(id % 37 AS STRING)) AS v,
    array(CAST(id * 0.1 AS FLOAT), CAST(id % 7 * 0.3 AS FLOAT)) AS af, array((id % 2 * 2 - 1) * 0D, 1D) AS ad,
    named_struct('z', (id % 2 * 2 - 1) * 0D) AS st, named_struct('n', id % 41) AS sn, make_dt_interval(id % 43) AS q
    FROM range({})"""
_COUNT = 3_000
_WITH_ARGUMENTS = {
    "approx_count_distinct": ["d", "s"],
    "approx_percentile": ["d, 0.3, 10", "n, 0.7, 10"],
    "percentile_approx": ["d, 0.3, 10"],
    "percentile": ["d, 0.3", "z, 0.3", "i, 0.5", "f, 0.37"],
    "approx_top_k": ["i, 3", "s, 3"],
    "listagg": ["s", "s, ','"],
    "string_agg": ["s, ','"],
    "max_by": ["n, i", "i, n", "n, i, 3", "n, z"],
    "min_by": ["n, i", "i, n", "n, i, 3", "n, z"],
    "count_min_sketch": ["i, 0.1D, 0.9D, 1", "n, 0.1D, 0.9D, 1"],
    "histogram_numeric": ["d, 5", "n, 5"],
    "bitmap_construct_agg": ["bitmap_bit_position(n)"],
    "nth_value": ["n, 2"],
    "ntile": ["4"],
    "tuple_sketch_agg_double": ["n, d"],
    "tuple_sketch_agg_integer": ["n, i"],
    "count": ["*", "DISTINCT d, s"],
    "sum": ["DISTINCT i", "DISTINCT d"],
    **{f"regr_{name}": ["d, f", "i, n"] for name in ["avgx", "avgy", "count", "intercept", "r2", "slope", "sxx", "sxy", "syy"]},
    **{name: ["d, f", "i, n"] for name in ("corr", "covar_pop", "covar_samp")},
}
_WITHIN_GROUP = {"percentile_cont": "0.3", "percentile_disc": "0.3", "listagg": "s", "mode": ""}
_AGGREGATES = ("agg_funcs", "window_funcs")
_ELSEWHERE = ("vector_sum", "vector_avg", "schema_of_variant_agg", "schema_of_json_agg", "schema_of_xml_agg")
_CHUNK = 25


@dataclass(frozen=True)
class Function:
    name: str
    group: str
    examples: str
    usage: str

    @property
    def aggregates(self) -> bool:
        return self.group in _AGGREGATES or self.name in _ELSEWHERE

    @property
    def without_arguments(self) -> str:
        """A query that calls it without arguments, empty where it has none."""
        if self.aggregates or not re.search(r"\b\w+\((\)|\[)", self.usage):
            return ""
        return f"SELECT * FROM {self.name}()" if self.group in ("generator_funcs", "table_funcs") else f"SELECT {self.name}() FROM range(1)"


def functions(spark: SparkSession) -> list[Function]:
    """Spark's builtin functions, by SHOW FUNCTIONS."""
    identifier, catalog = jvm_of(spark).org.apache.spark.sql.catalyst.FunctionIdentifier, spark._jsparkSession.sessionState().catalog()
    found = []
    for (name,) in spark.sql("SHOW SYSTEM FUNCTIONS").collect():
        try:
            info = catalog.lookupFunctionInfo(identifier(name))
            found.append(Function(name, str(info.getGroup()), str(info.getExamples()), str(info.getUsage())))
        except SPARK_ERRORS:  # an operator
            found.append(Function(name, "", "", ""))
    return found


def arranged(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """The same rows in two orders and two partitionings."""
    made = spark.sql(_ROWS.format(_COUNT)).drop("v", "q").collect()
    schema = spark.sql(_ROWS.format(0)).drop("v", "q").schema
    rows = [tuple(row) for row in made]
    frames = local_frame(spark, rows, schema).coalesce(1), local_frame(spark, rows[::-1], schema).repartition(5)
    more = "parse_json(CAST(id % 37 AS STRING)) AS v", "make_dt_interval(CAST(id % 43 AS INT)) AS q"
    one, other = (frame.selectExpr("*", *more) for frame in frames)
    return one, other


def aggregate_calls(function: Function, frame: DataFrame) -> list[str]:
    """The calls of an aggregate (or window) function that Spark accepts."""
    windowed = " OVER (PARTITION BY g ORDER BY o)" if function.group == "window_funcs" else ""
    arguments = [*_WITH_ARGUMENTS.get(function.name, []), *(["", "n", "n, 1"] if windowed else COLUMNS)]
    calls = [f"{function.name}({a}){windowed}" for a in arguments]
    if function.name in _WITHIN_GROUP:
        calls += [f"{function.name}({_WITHIN_GROUP[function.name]}) WITHIN GROUP (ORDER BY {c})" for c in ("d", "z", "i", "s")]
    return [call for call in calls if _accepted(call, frame, bool(windowed))]


def example_calls(function: Function) -> list[str]:
    """The expressions of a function's examples that need no table."""
    selected = re.findall(r"> SELECT (.*?);\n", function.examples, re.DOTALL)
    return [text for text in selected if not re.search(r"\bFROM\s+(VALUES|\(|\w+\s*\()", text)]


def simple_calls(function: Function, frame: DataFrame) -> list[str]:
    """Calls of a function over columns of some types that Spark accepts, as text (not every type reaches Python)."""
    calls = [f"CAST({function.name}({a}) AS STRING)" for a in ("s", "i", "d", "u", "t", "i, i", "u, '1 day'", "'HOUR', u", "y, y", "")]
    return [call for call in calls if _accepted(call, frame, windowed=True)]


def _accepted(call: str, frame: DataFrame, windowed: bool) -> bool:
    try:
        selected(frame, [call], windowed)
    except SPARK_ERRORS:
        return False
    return True


def selected(frame: DataFrame, calls: Sequence[str], windowed: bool) -> DataFrame:
    """The calls over the frame's rows: `windowed`, and functions of a row, beside the row's id; else by group."""
    named = [F.expr(call).alias(f"r{i}") for i, call in enumerate(calls)]
    return frame.select("id", *named) if windowed else frame.groupBy("g").agg(*named)


def results(frame: DataFrame, calls: Sequence[str], windowed: bool) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """(call, result by row or group) of each call that does not fail."""
    for i in range(0, len(calls), _CHUNK):
        yield from _of_chunk(frame, calls[i : i + _CHUNK], windowed)


def _of_chunk(frame: DataFrame, calls: Sequence[str], windowed: bool) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    try:
        rows = selected(frame, calls, windowed).collect()
    except SPARK_ERRORS:
        half = len(calls) // 2
        for part in (calls[:half], calls[half:]) if half else ():
            yield from _of_chunk(frame, part, windowed)
        return
    for i, call in enumerate(calls):
        yield call, {row[0]: repr(frozen(row[i + 1])) for row in rows}


def differing(one: DataFrame, other: DataFrame, calls: Sequence[str], windowed: bool) -> tuple[set[str], set[str]]:
    """(calls that ran, those of them whose results differ)."""
    analysed = [call for call in calls if _accepted(call, one, windowed)]
    first = dict(results(one, analysed, windowed))
    second = dict(results(other, list(first), windowed))
    ran = set(second)
    return ran, {call for call in ran if first[call] != second[call]}
