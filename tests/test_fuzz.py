"""A short run of the fuzzer (`make fuzz SECONDS=...` for a long one), and what long runs found."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.fuzz.__main__ import run, run_edits


@pytest.mark.slow
def test_random_queries_over_random_histories_are_what_spark_says(spark: SparkSession) -> None:
    found = run(spark, seed=20_000_000, seconds=180, most=15)
    assert found.moved > 0


@pytest.mark.slow
def test_random_edits_of_random_queries_are_what_spark_says(spark: SparkSession) -> None:
    found = run_edits(spark, seed=1_000_003, seconds=180, most=1)
    assert found.refreshes > 0
    assert {kind for _, kind in found.kinds} - {"rebuild"}
