"""The algebra's plain twin: multisets as Counters, the rules of design.md in a line each, driven by Hypothesis.

It shares no code with the library. What it shows is that the formulas that relations state are laws, also where both sides
change, rows repeat, keys are NULL, and a row is deleted and inserted again.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.relations.twin import Bag, anti, difference, group, join, left_join, lookup, plus, times

Row = tuple[int | None, int]

rows = st.tuples(st.none() | st.integers(0, 3), st.integers(0, 2))
bags = st.lists(rows, max_size=8).map(Counter)


@given(bags, bags, bags, bags)
@settings(max_examples=300, deadline=None)
def test_bilinear_rule_reads_only_the_newer_end(a: Bag, b: Bag, a2: Bag, b2: Bag) -> None:
    da, db = difference(a2, a), difference(b2, b)
    changes = plus(join(da, b2), join(a2, db), times(join(da, db), -1))
    assert changes == difference(join(a2, b2), join(a, b))


@given(bags, bags, bags, bags)
@settings(max_examples=300, deadline=None)
def test_affected_keys_rule_for_every_keyed_operator(a: Bag, b: Bag, a2: Bag, b2: Bag) -> None:
    da, db = difference(a2, a), difference(b2, b)
    operators: list[Callable[[Bag, Bag], Bag]] = [left_join, group, anti]
    for op in operators:
        keys = {row[0] for row in [*da, *db]}
        new = [lookup(a2, keys), lookup(b2, keys)]
        old = [difference(new[0], lookup(da, keys)), difference(new[1], lookup(db, keys))]
        assert all(n > 0 for bag in old for n in bag.values())
        assert difference(op(*new), op(*old)) == difference(op(a2, b2), op(a, b))


@given(st.lists(st.tuples(bags, bags), min_size=2, max_size=5))
@settings(max_examples=100, deadline=None)
def test_small_steps_add_up_to_one_big_step(versions: list[tuple[Bag, Bag]]) -> None:
    steps = []
    for (a, b), (a2, b2) in itertools.pairwise(versions):
        da, db = difference(a2, a), difference(b2, b)
        steps.append(plus(join(da, b2), join(a2, db), times(join(da, db), -1)))
    assert plus(join(*versions[0]), *steps) == join(*versions[-1])


@given(bags, bags, bags, bags)
@settings(max_examples=200, deadline=None)
def test_the_twin_can_fail(a: Bag, b: Bag, a2: Bag, b2: Bag) -> None:
    """The same snapshot on both sides is wrong by exactly the joined changes: a twin that could not tell would prove nothing."""
    da, db = difference(a2, a), difference(b2, b)
    naive = plus(join(da, b2), join(a2, db))
    assert difference(naive, difference(join(a2, b2), join(a, b))) == join(da, db)
