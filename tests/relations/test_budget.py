"""A budget says what is left, and why a refresh falls back to a full recompute."""

from __future__ import annotations

import math

import pytest

from lake.relations.budget import Budget, FallBackToRecompute

_MB = 1 << 20


def test_a_cost_beyond_what_is_left_falls_back_with_the_reason() -> None:
    budget = Budget(recompute=250 * _MB, limit=250 * _MB)
    budget.spend(80 * _MB, "a refresh with 1 operators that look up rows")
    assert budget.left == 170 * _MB
    with pytest.raises(FallBackToRecompute) as refused:
        budget.spend(240 * _MB, "reading tables for lookups")
    assert str(refused.value) == (
        "fell back to a full recompute by estimate: reading tables for lookups costs 320 MB, more than the 250 MB of the recompute"
    )
    assert budget.spent == 80 * _MB


def test_an_expected_cost_is_not_spent() -> None:
    budget = Budget(limit=10)
    budget.require(10, "a lookup")
    assert budget.left == 10
    with pytest.raises(FallBackToRecompute):
        budget.require(11, "a lookup")


def test_a_share_of_the_rows_falls_back_above_it_only() -> None:
    budget = Budget(share=0.5)
    budget.require_share(50, 100)
    with pytest.raises(FallBackToRecompute, match=r"51 changes of 100 rows are more than 50% \(recompute_above\)"):
        budget.require_share(51, 100)


def test_an_operator_is_recomputed_by_itself_only_where_the_query_is_more_expensive() -> None:
    budget = Budget(recompute=90)
    budget.recompute_operator(30, "Join was recomputed: it has no keys")
    assert budget.reasons == ["Join was recomputed: it has no keys"]
    with pytest.raises(FallBackToRecompute, match="Aggregate was recomputed"):
        budget.recompute_operator(31, "Aggregate was recomputed: it is one group over all rows")


def test_without_limits_nothing_falls_back() -> None:
    budget = Budget()
    assert budget.unlimited
    budget.spend(10**15, "all of it")
    budget.recompute_operator(10**15, "Limit was recomputed")
    budget.require_share(10**9, 0)
    assert budget.left == math.inf


def test_after_falling_back_nothing_is_refused_and_one_reason_is_left() -> None:
    budget = Budget(recompute=1, limit=1, share=0.1)
    budget.recompute_operator(0, "Join was recomputed")
    budget.fall_back(FallBackToRecompute("fell back to a full recompute: why"))
    assert budget.unlimited
    assert budget.reasons == ["fell back to a full recompute: why"]
    budget.spend(100, "the recompute")


def test_a_refresh_that_has_begun_goes_on_up_to_half_as_much_again() -> None:
    budget = Budget(limit=100 * _MB)
    budget.spend(90 * _MB, "a refresh")
    budget.go_on(60 * _MB, "reading tables for lookups")
    with pytest.raises(FallBackToRecompute, match=r"lookups costs 151 MB, more than 1\.5 times the 100 MB of the recompute"):
        budget.go_on(_MB, "reading tables for lookups")
    assert budget.spent == 150 * _MB
    Budget().go_on(1 << 60, "reading tables for lookups")
