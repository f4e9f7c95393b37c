"""The algebra in plain Python: multisets (and weighted rows) as Counters, each operator in a few lines. It shares no code with the library.

The laws are tested on it (test_twin.py), and the examples in the docstrings of lake/relations are written with it (test_examples.py).
"""

from __future__ import annotations

from collections import Counter

Bag = Counter[tuple[object, ...]]


def bag(*rows: tuple[object, ...]) -> Bag:
    """A multiset of rows."""
    return Counter(rows)


def shown(weighted: Bag) -> dict[tuple[object, ...], int]:
    """Weighted rows in the order of their values, NULLs first."""
    return dict(sorted(weighted.items(), key=lambda item: [(v is not None, v) for v in item[0]]))


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


def not_in(a: Bag, b: Bag) -> Bag:
    """a's rows whose first column is NOT IN b's: a NULL on either side makes that unknown, unless b is empty."""
    keys = {row[0] for row in b}
    return Counter({r: n for r, n in a.items() if not keys or (r[0] is not None and None not in keys and r[0] not in keys)})


def first(a: Bag, most: int) -> Bag:
    """ORDER BY all columns LIMIT `most`."""
    return Counter(sorted(a.elements())[:most])
