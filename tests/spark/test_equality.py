"""Two notions of equality, of refreshes (zset) and of verification (sameness).

Each is held against values that Spark's own equality, JSON, or a hash that passes over NULLs take for the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lake.spark import sameness, zset
from tests.lakes import SPARK, TestLake

SCALARS = [
    *("parse_json('1')", "parse_json('1.0')", "parse_json('1.00')", "parse_json('\"1\"')", "parse_json('1e0')", "parse_json('true')"),
    *("(DATE'2026-01-01')::variant", "(TIMESTAMP'2026-01-01')::variant", "(TIMESTAMP_NTZ'2026-01-01')::variant"),
    *("('2026-01-01')::variant", "(X'31')::variant", "('MQ==')::variant", "(1F)::variant", "(0F)::variant", "(-0F)::variant"),
    *("(0D)::variant", "(-0D)::variant", "('NaN')::variant", "(double('NaN'))::variant", "parse_json('null')", "parse_json('\"null\"')"),
    *("parse_json('\"\"')", "parse_json('[]')", "parse_json('{}')", "parse_json('{\"c\": null}')"),
]
VARIANTS = [
    *SCALARS,
    *[f"(array({v}))::variant" for v in SCALARS],
    *[f"(array({v}, parse_json('\"a\"')))::variant" for v in SCALARS],
    *[f"to_variant_object(named_struct('a', {v}, 'b', 1))" for v in SCALARS],
    "parse_json('[[1], [2]]')",
    "parse_json('[[1, 2], []]')",
    "parse_json('[[1, 2]]')",
    "CAST(NULL AS VARIANT)",
]
CASES = {
    "variant": VARIANTS,
    "array of variant": [f"array({v})" for v in VARIANTS],
    "map to variant": [f"map('k', {v})" for v in VARIANTS],
    "struct of variant": [f"named_struct('v', {v})" for v in VARIANTS],
    "double": ["0D", "-0D", "double('NaN')", "double('Infinity')", "CAST(NULL AS DOUBLE)", "0.1D", "0.1D + 2e-17D", "4.9e-324D"],
    "float": ["0F", "-0F", "float('NaN')", "CAST(NULL AS FLOAT)", "0.1F", "1.4e-45F"],
    "array of double": ["array(0D)", "array(-0D)", "array(CAST(NULL AS DOUBLE))", "array(double('NaN'))", "array(0D, 0D)"],
    "string": ["'a'", "'a '", "'A'", "''", "'NULL'", "'\\0'", "CAST(NULL AS STRING)", "rpad('a', 3, ' ')"],
    "collated": ["'a' COLLATE UTF8_LCASE", "'A' COLLATE UTF8_LCASE", "'ä' COLLATE UTF8_LCASE", "CAST(NULL AS STRING COLLATE UTF8_LCASE)"],
    "collated nested": ["array('a' COLLATE UTF8_LCASE)", "array('A' COLLATE UTF8_LCASE)", "array(CAST(NULL AS STRING) COLLATE UTF8_LCASE)"],
    **({"rtrim": ["'a' COLLATE UTF8_BINARY_RTRIM", "'a ' COLLATE UTF8_BINARY_RTRIM"]} if SPARK >= (4, 1) else {}),
    "binary": ["X''", "X'00'", "X'0000'", "CAST(NULL AS BINARY)"],
    "timestamp": ["TIMESTAMP'2026-01-01'", "TIMESTAMP'2026-01-01 00:00:00.000001'", "CAST(NULL AS TIMESTAMP)"],
    "decimal": ["1.00BD", "1.01BD", "0.00BD", "CAST(NULL AS DECIMAL(3, 2))"],
    "array": ["array()", "array(1)", "array(1, NULL)", "array(NULL, 1)", "array(NULL)", "array(NULL, NULL)", "CAST(NULL AS ARRAY<INT>)"],
    "array of arrays": [
        *("array(array(1), array(2))", "array(array(1, 2), array())", "array(array(), array(1, 2))", "array(array(1, 2))"),
        *("array(array(1, 2), NULL)", "array(NULL, array(1, 2))", "array(array(1, 2, NULL))"),
    ],
    "array of strings": ["array('a', 'bc')", "array('ab', 'c')", "array('abc')", "array('abc', '')", "array('abc', NULL)"],
    "map": [
        *("map()", "map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)", "map('a', 2, 'b', 1)", "map('a', NULL, 'b', 1)", "map('b', 1, 'a', NULL)"),
        *("map('a', 0, 'b', 1)", "map('a', 1)", "map('a', NULL)", "map('a', 0)", "CAST(NULL AS MAP<STRING, INT>)"),
    ],
    "map of double": ["map('a', 0D)", "map('a', -0D)", "map('a', CAST(NULL AS DOUBLE))", "map('a', double('NaN'))"],
    "struct": [
        *("named_struct('a', 1, 'b', NULL)", "named_struct('a', NULL, 'b', 1)", "named_struct('a', NULL, 'b', NULL)"),
        *("named_struct('a', 0, 'b', 1)", "CAST(NULL AS STRUCT<a: INT, b: INT>)"),
    ],
    "struct of struct": [
        *("named_struct('s', named_struct('a', 1))", "named_struct('s', named_struct('a', CAST(NULL AS INT)))"),
        *("named_struct('s', CAST(NULL AS STRUCT<a: INT>))", "CAST(NULL AS STRUCT<s: STRUCT<a: INT>>)"),
    ],
    "calendar interval": [
        *("make_interval(0, 0, 0, 1)", "make_interval(0, 0, 0, 0, 24)", "make_interval(0, 1)", "make_interval(0, 0, 0, 30)"),
        *("make_interval(0, 0, 0, 0, 0, 0, -1)", "make_interval(0, 0, 0, 0, 0, 0, 0.000001)", "make_interval(1, -12)", "make_interval(-1)"),
    ],
    "day interval": ["INTERVAL '1' DAY", "INTERVAL '25' HOUR", "INTERVAL '1 00:00:00.000001' DAY TO SECOND"],
    "month interval": ["INTERVAL '1' YEAR", "INTERVAL '1-1' YEAR TO MONTH"],
}
SAME = {
    "names of a variant in another order": ['parse_json(\'{"a": 1, "b": [2]}\')', 'parse_json(\'{"b": [2], "a": 1}\')'],
    "a variant cut out of another one": [
        *("variant_get(parse_json('{\"b\": {\"a\": 1}}'), '$.b', 'variant')", "parse_json('{\"a\": 1}')"),
        "variant_get(parse_json('[{\"c\": 0}, {\"a\": 1}]'), '$[1]')",
    ],
    "NaN": ["double('NaN')", "sqrt(-1D)", "double('Infinity') - double('Infinity')"],
}


def rows(spark: SparkSession, values: list[str]) -> DataFrame:
    """A row a value. They lie in memory, where the optimiser does not see them: over what it folds, Spark runs other code."""
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        items = ", ".join(f"named_struct('n', {i}, 'v', {value})" for i, value in enumerate(values))
        return spark.sql(f"SELECT inline(array({items}))").localCheckpoint()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def by_refreshes(frame: DataFrame) -> Column:
    return zset.canonical(F.col("v"), frame.schema["v"].dataType)


def by_verification(frame: DataFrame) -> Column:
    return sameness.marked(frame, "v")


def by_hashes_of_verification(frame: DataFrame) -> Column:
    return sameness.hashed(frame, ["v"])


EQUALITIES = [by_refreshes, by_verification, by_hashes_of_verification]


@pytest.fixture(scope="module")
def made(spark: SparkSession) -> Callable[[list[str]], DataFrame]:
    known: dict[str, DataFrame] = {}
    return lambda values: known.setdefault(str(values), rows(spark, values))


def together(frame: DataFrame, equality: Callable[[DataFrame], Column]) -> list[list[int]]:
    """The values that an equality takes for the same, by their number in the list."""
    groups = frame.groupBy(equality(frame).alias("k")).agg(F.collect_list("n").alias("n")).select("n").collect()
    return sorted(sorted(row["n"]) for row in groups)


@pytest.mark.parametrize("equality", EQUALITIES)
@pytest.mark.parametrize("name", CASES)
def test_values_of_different_bits_are_told_apart(made: Callable[[list[str]], DataFrame], name: str, equality: Any) -> None:
    found = together(made(CASES[name]), equality)
    assert not [[CASES[name][i] for i in alike] for alike in found if len(alike) > 1]


@pytest.mark.parametrize("equality", EQUALITIES)
@pytest.mark.parametrize("name", SAME)
def test_one_value_written_in_several_ways_is_the_same(made: Callable[[list[str]], DataFrame], name: str, equality: Any) -> None:
    assert together(made(SAME[name]), equality) == [list(range(len(SAME[name])))]


@pytest.mark.parametrize("name", CASES)
def test_refreshes_find_each_change_and_verification_each_difference(made: Callable[[list[str]], DataFrame], name: str) -> None:
    frame = made(CASES[name])
    last = len(CASES[name]) - 1
    old, new = frame.where(F.col("n") < last).select("v"), frame.where(F.col("n") > 0).select("v")
    assert sorted(row["w"] for row in zset.consolidate(zset.subtract(new, old)).select("w").collect()) == [-1, 1]
    assert sameness.same_rows(old, new) is None
    counts = sorted((row["a"], row["b"]) for row in sameness.tallied(a=old, b=new).select("a", "b").collect())
    assert counts == sorted([(1, 0), (0, 1), *[(1, 1)] * (last - 1)])
    assert sameness.same_rows(new, new.repartition(2)) == last


CHANGES = {
    "a number of another type in a VARIANT array": ("VARIANT", "parse_json('[1, \"a\"]')", "parse_json('[1.0, \"a\"]')"),
    "a string that becomes a date": (
        "VARIANT",
        "(array('2026-01-01'::variant, 1::variant))::variant",
        "(array((DATE'2026-01-01')::variant, 1::variant))::variant",
    ),
    "a number deep in an object": ("VARIANT", 'parse_json(\'{"a": [{"b": 1}, 2]}\')', 'parse_json(\'{"a": [{"b": 1.0}, 2]}\')'),
    "a negative zero": ("DOUBLE", "0D", "-0D"),
    "a map in another order": ("MAP<STRING, INT>", "map('a', 1, 'b', NULL)", "map('b', NULL, 'a', 1)"),
    "a NULL in a map": ("MAP<STRING, INT>", "map('a', 0)", "map('a', NULL)"),
    "a NULL in a struct": ("STRUCT<a: INT, b: INT>", "named_struct('a', 1, 'b', NULL)", "named_struct('a', NULL, 'b', 1)"),
    "an empty array": ("ARRAY<INT>", "array()", "NULL"),
}


@pytest.mark.parametrize("keyed", [True, False])
def test_an_update_to_a_value_that_looks_the_same_is_published(lake: TestLake, keyed: bool) -> None:
    columns = ", ".join(f"CAST({old} AS {kind}) AS c{i}" for i, (kind, old, _) in enumerate(CHANGES.values()))
    ids = ", ".join(f"({i})" for i in range(len(CHANGES)))
    lake.table("t", f"SELECT id, {columns} FROM VALUES {ids} AS v(id)", key=["id"] if keyed else None)
    lake.view("v", f"SELECT {'*' if keyed else 't.* EXCEPT (id)'} FROM t")
    lake.refresh("v")
    values = ", ".join(f"c{i} = CASE WHEN id = {i} THEN {new} ELSE c{i} END" for i, (_, _, new) in enumerate(CHANGES.values()))
    lake.spark.sql(f"UPDATE delta.`{lake.path('t')}` SET {values}")
    assert lake.refresh("v").rows_inserted == len(CHANGES)
    assert lake.open.verify("v").exact
    truth, held = lake.spark.read.format("delta").load(lake.path("t")), lake.open.read("v")
    lost = sameness.tallied(t=truth.select(*held.columns), h=held).where("t != h")
    assert lost.isEmpty()
