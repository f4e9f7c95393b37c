"""Estimates the cost of an incremental refresh and of a full recompute, both in bytes that a query reads.

Constants are CPU seconds measured on TPC-H at scale 1, as ratios (docs/decisions/0010): a query gets through about 90 MB of its tables in a
second, joins and aggregates included; a lookup through twice as many; a refresh takes 0.7 seconds and 0.2 for each of its operators,
however few the rows; a change takes five microseconds, and five more for each operator.

Example: a join of tables of 300 MB into a view of 100 KB. Full recompute: 302 MB. Incremental: 64 MB + 16 MB for the join + 98 MB for
100,000 changes + half of what is looked up: 302 MB are passed where that is more than 247 MB.
"""

from __future__ import annotations

_MB = 1 << 20
SMALL = 64 * _MB
"""If all tables together are smaller, the refresh is always incremental: either way takes a second or two."""
_START, _OPERATOR, _CHANGE = 64 * _MB, 16 * _MB, 1 << 9
_LOOKUP, _MOVED = 2, 8
"""How many bytes of files cost as much as one byte that a query reads: in lookups; in reading changes, which are few rows of each file."""
_WRITTEN = 16


def recompute(read: int, held: int) -> int:
    """A full recompute that reads this many bytes of sources, compares with this many stored bytes, and publishes the difference."""
    return read + _WRITTEN * held


def begun(operators: int, moved: int) -> int:
    """The fixed cost of a refresh with this many operators that look rows up, and of reading changes from files of this many bytes."""
    return _START + operators * _OPERATOR + moved // _MOVED


def looked_up(files: int) -> int:
    """A lookup in files of this many bytes."""
    return files // _LOOKUP


def changed(operators: int, rows: int) -> int:
    """The cost of processing this many changes through this many operators that look rows up, reading them not included."""
    return rows * (1 + operators) * _CHANGE


def most_changes(operators: int, budget: int) -> int:
    """The number of changes above which a full recompute is cheaper, lookups not counted."""
    return max(0, budget - begun(operators, 0)) // changed(operators, 1)
