"""Rows kept of looked-up keys: built by lookups alone, moved on by changes alone, the key used longest ago goes first."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lake.relations.lookup_cache import KeyedRows, Repeats

KEYS = st.integers(0, 4)
ROWS = st.tuples(KEYS, st.sampled_from([1, 2, None]), st.sampled_from([0.0, -0.0, float("nan"), 1.5]))


def test_only_lookups_fill_the_cache_and_only_changes_of_cached_keys_count() -> None:
    kept = KeyedRows(10)
    kept.apply([(1, (1, "a"), 1)])
    assert len(kept) == 0
    kept.fill([1, 2], [(1, (1, "a")), (1, (1, "a"))])
    kept.apply([(1, (1, "a"), -1), (2, (2, "b"), 1), (3, (3, "c"), 1)])
    assert kept.find([1, 2, 3]) == ([(1, "a"), (2, "b")], [3])


def test_a_key_without_rows_is_cached_as_such() -> None:
    kept = KeyedRows(10)
    kept.fill([7], [])
    assert kept.find([7]) == ([], [])


def test_the_key_used_longest_ago_goes_first() -> None:
    kept = KeyedRows(2)
    kept.fill([1, 2], [(1, ("a",)), (2, ("b",))])
    kept.find([1])
    kept.fill([3], [(3, ("c",))])
    assert [k in kept for k in (1, 2, 3)] == [True, False, True]


def test_changes_do_not_count_as_use() -> None:
    kept = KeyedRows(2)
    kept.fill([1, 2], [])
    kept.apply([(1, ("a",), 1)])
    kept.fill([3], [])
    assert 1 not in kept


def test_rows_that_do_not_add_up_are_not_cached() -> None:
    kept = KeyedRows(2)
    kept.fill([1], [(1, ("a",))])
    kept.apply([(1, ("b",), -1)])
    assert 1 not in kept


def test_a_key_of_very_many_rows_is_not_cached() -> None:
    kept = KeyedRows(2)
    kept.fill([1], [(1, (i,)) for i in range(2_000)])
    assert 1 not in kept


def test_rows_in_all_are_bounded_too() -> None:
    kept = KeyedRows(3)
    kept.fill([1, 2, 3], [(key, (i,)) for key in (1, 2, 3) for i in range(25)])
    assert [k in kept for k in (1, 2, 3)] == [False, True, True]
    kept.apply([(3, (100 + i,), 1) for i in range(20)])
    assert [k in kept for k in (2, 3)] == [False, True]
    assert kept.size == 45


def test_keys_are_taken_to_come_again_until_enough_were_seen() -> None:
    repeats = Repeats(10_000)
    assert [repeats.note(range(n, n + 100)) for n in range(0, 1_200, 100)] == 9 * [True] + 3 * [False]


def test_keys_that_come_again_are_noticed_whenever_they_begin_and_end() -> None:
    repeats = Repeats(10_000)
    for n in range(20):
        repeats.note(range(100 * n, 100 * n + 100))
    again = [repeats.note(range(100)) for _ in range(30)]
    assert not again[0]
    assert again == sorted(again)
    assert again[-1]
    never = [repeats.note(range(100 * n, 100 * n + 100)) for n in range(100, 130)]
    assert never[0]
    assert never == sorted(never, reverse=True)
    assert not never[-1]


def test_a_key_that_is_repeated_after_more_others_than_are_cached_does_not_count() -> None:
    repeats = Repeats(100)
    assert not [repeats.note(range(100 * (n % 3), 100 * (n % 3) + 100)) for n in range(30)][-1]


def _identity(row: tuple[Any, ...]) -> str:
    return repr(row)


@given(st.lists(st.tuples(st.sampled_from(["look up", "change"]), st.lists(st.tuples(ROWS, st.booleans()), max_size=6)), max_size=12))
def test_the_cached_rows_of_a_key_are_those_of_the_table(steps: list[tuple[str, list[tuple[tuple[Any, ...], bool]]]]) -> None:
    table: list[tuple[Any, ...]] = []
    kept = KeyedRows(3)
    for what, rows in steps:
        if what == "change":
            changes = []
            for row, new in rows:
                if new:
                    table.append(row)
                    changes.append((row[0], row, 1))
                elif any(_identity(r) == _identity(row) for r in table):
                    table.pop(next(i for i, r in enumerate(table) if _identity(r) == _identity(row)))
                    changes.append((row[0], row, -1))
            kept.apply(changes)
            continue
        wanted = {row[0] for row, _ in rows}
        found, missing = kept.find(wanted)
        read = [row for row in table if row[0] in missing]
        kept.fill(missing, [(row[0], row) for row in read])
        assert Counter(map(_identity, found + read)) == Counter(_identity(row) for row in table if row[0] in wanted)
        assert len(kept) <= 3
        assert kept.size == sum(len(kept.find([k])[0]) for k in range(5))
