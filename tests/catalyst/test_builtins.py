"""Every builtin function of Spark is run over the same rows in two orders and two partitionings: what differs is known to Lakejoin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

import pytest
from pyspark.sql import DataFrame, SparkSession

from lake.catalyst import DEFINITION_SETTINGS, Catalyst
from lake.catalyst.determinism import order_dependence
from lake.catalyst.guards import guarded
from lake.catalyst.inspection import inspected
from lake.spark.failures import SPARK_ERRORS
from lake.spark.session import own_session, settings
from tests.catalyst.builtins import Function, aggregate_calls, arranged, differing, example_calls, functions, selected, simple_calls
from tests.lakes import SPARK

pytestmark = pytest.mark.slow


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


DIFFERING = _names(
    """any_value approx_percentile approx_top_k approx_top_k_accumulate array_agg avg collect_list collect_set corr covar_pop covar_samp
    first first_value histogram_numeric hll_sketch_agg kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis lag last
    last_value lead listagg max max_by mean min min_by mode nth_value ntile percentile_approx regr_avgx regr_avgy regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy row_number skewness std stddev stddev_pop stddev_samp string_agg sum try_avg try_sum
    tuple_sketch_agg_double tuple_sketch_agg_integer var_pop var_samp variance vector_avg vector_sum"""
)
"""Aggregates that were seen to differ for some arguments."""
RANDOM = _names(
    """aes_encrypt current_time current_timestamp java_method localtimestamp monotonically_increasing_id now rand randn random randstr
    reflect shuffle spark_partition_id try_reflect unix_timestamp uniform uuid"""
)
"""Functions of a row that were seen to differ for some arguments."""
UNCALLED = _names(
    """approx_top_k_combine grouping grouping_id hll_union_agg kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float measure
    theta_intersection_agg theta_union_agg tuple_intersection_agg_double tuple_intersection_agg_integer tuple_union_agg_double
    tuple_union_agg_integer"""
)
"""Aggregates that are not called: of sketches, which are named by what they begin with, and those that stand in special places."""
CONSTANTS = _names("e make_dt_interval make_interval make_ym_interval pi")
"""Functions of a row that Spark accepts without arguments, and that always have the same value."""
NO_CALL = _names(
    """!= <> || case collations from_avro from_protobuf inline inline_outer json_tuple make_interval make_time make_ym_interval overlay
    posexplode posexplode_outer python_worker_logs raise_error range schema_of_avro session_window sql_keywords stack table_changes
    table_changes_by_path time time_diff time_from_micros time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds
    time_trunc to_avro to_protobuf to_time try_make_interval try_to_time variant_explode variant_explode_outer window window_time"""
)
"""Functions of a row that are not called: generators, table functions, operators, and those of types that no column has."""


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    session = own_session(spark)
    session.conf.set("spark.sql.ansi.enabled", "false")  # an overflow is a value
    with settings(session, DEFINITION_SETTINGS):
        yield session


@pytest.fixture(scope="module")
def frames(session: SparkSession) -> tuple[DataFrame, DataFrame]:
    return arranged(session)


@pytest.fixture(scope="module")
def builtins(session: SparkSession) -> list[Function]:
    return functions(session)


def _name(call: str) -> str:
    return call.partition("(")[0]


@pytest.mark.parametrize("group", ["window_funcs", ""])
def test_aggregates_that_differ_with_the_order_of_rows_are_known(
    session: SparkSession, frames: tuple[DataFrame, DataFrame], builtins: list[Function], group: str
) -> None:
    windowed, catalyst = bool(group), Catalyst(session)
    chosen = [f for f in builtins if f.aggregates and (f.group == group or (not windowed and f.group != "window_funcs"))]
    calls = [call for function in chosen for call in aggregate_calls(function, frames[0])]
    ran, found = differing(*frames, calls, windowed)
    unknown = {call for call in found if not _dependent(selected(frames[0], [call], windowed), catalyst)}
    assert not unknown
    assert {_name(call) for call in found} <= DIFFERING, "add it to the list, with a look at what it does"
    assert ("row_number" if windowed else "collect_list") in {_name(call) for call in found}, "nothing that is compared can differ"
    assert {f.name for f in chosen} - {_name(call) for call in ran} <= UNCALLED


def _dependent(frame: DataFrame, catalyst: Catalyst) -> bool:
    """Whether it is known to depend on the order of rows, or is replaced by what does not."""
    tree = catalyst.tree(catalyst.optimised(frame))
    return any(order_dependence(node, catalyst, guarded=False) or guarded(node, catalyst, False) is not node for node in tree.walk())


def test_functions_of_a_row_that_differ_from_run_to_run_are_refused(
    session: SparkSession, frames: tuple[DataFrame, DataFrame], builtins: list[Function]
) -> None:
    catalyst, few = Catalyst(session), tuple(frame.where("id % 100 = 0") for frame in frames)
    rows = [function for function in builtins if not function.aggregates and function.group != "sketch_funcs"]
    calls = {function.name: example_calls(function) for function in rows}
    ran, found = differing(few[0], few[1], [call for made in calls.values() for call in made], True)
    left = [function for function in rows if not ran & set(calls[function.name])]
    others = {function.name: simple_calls(function, few[0]) for function in left}
    ran_too, found_too = differing(few[0], few[1], [call for made in others.values() for call in made], True)
    accepted = {call for call in found | found_too if not _refused(selected(few[0], [call], True), catalyst)}
    assert not accepted
    unlisted = {call for call in found | found_too if not RANDOM & set(re.findall(r"\w+", call))}
    assert not unlisted, "add it to the list, with a look at what it does"
    assert "uuid()" in found, "nothing that is compared can differ"
    if SPARK >= (4, 2):  # of which the list is
        assert {function.name for function in left if not ran_too & set(others[function.name])} <= NO_CALL


def test_functions_without_arguments_are_constants_or_refused(session: SparkSession, builtins: list[Function]) -> None:
    """What has a value of its own reads the time, the user, the session, or Spark itself. It is found before the optimiser folds it."""
    catalyst, accepted, called = Catalyst(session), set(), {f.name: f.without_arguments for f in builtins if f.without_arguments}
    for name, text in called.items():
        with suppress(*SPARK_ERRORS):  # other functions are named in its description
            if not _refused(session.sql(text), catalyst):
                accepted.add(name)
    assert accepted == CONSTANTS
    assert {"version", "sql_keywords", "input_file_name"} <= set(called)
    assert "current_path" in called or SPARK < (4, 2)


def _refused(frame: DataFrame, catalyst: Catalyst) -> bool:
    seen = inspected(catalyst.analysed(frame), catalyst)
    return bool(seen.environment or seen.random or not seen.deterministic)
