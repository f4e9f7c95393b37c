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

Row = tuple[int | None, int]
Bag = Counter[tuple[object, ...]]

rows = st.tuples(st.none() | st.integers(0, 3), st.integers(0, 2))
bags = st.lists(rows, max_size=8).map(Counter)


def difference(after: Bag, before: Bag) -> Bag:
    found = Counter(after)
    found.subtract(before)
    return Counter({row: n for row, n in found.items() if n})


def plus(*parts: Bag) -> Bag:
    total: Bag = Counter()
    for part in parts:
        total.update(part)
    return Counter({row: n for row, n in total.items() if n})


def times(bag: Bag, factor: int) -> Bag:
    return Counter({row: n * factor for row, n in bag.items()})


def join(a: Bag, b: Bag) -> Bag:
    """Inner join on the first column; NULL joins nothing."""
    found: Bag = Counter()
    for left, n in a.items():
        for right, m in b.items():
            if left[0] is not None and left[0] == right[0]:
                found[(*left, *right)] += n * m
    return Counter({row: n for row, n in found.items() if n})


def left_join(a: Bag, b: Bag) -> Bag:
    """Left outer join with a residual: a's value below b's."""
    found: Bag = Counter()
    for left, n in a.items():
        partners = {r: m for r, m in b.items() if left[0] is not None and left[0] == r[0] and left[1] <= r[1]}  # type: ignore[operator]
        for right, m in partners.items():
            found[(*left, *right)] += n * m
        if not partners:
            found[(*left, None, None)] += n
    return found


def group(a: Bag, _: Bag) -> Bag:
    """count(*) and sum by the first column, NULL a group like any other."""
    keys = {row[0] for row in a}
    return Counter({(k, sum(n for r, n in a.items() if r[0] == k), sum(r[1] * n for r, n in a.items() if r[0] == k)): 1 for k in keys})  # type: ignore[misc,operator]


def anti(a: Bag, b: Bag) -> Bag:
    keys = {row[0] for row in b if row[0] is not None}
    return Counter({row: n for row, n in a.items() if row[0] not in keys})


def lookup(bag: Bag, keys: set[object]) -> Bag:
    return Counter({row: n for row, n in bag.items() if row[0] in keys})


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
