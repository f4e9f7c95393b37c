"""Estimates what an incremental refresh and a full recompute cost, both in bytes that a query reads.

Constants are ratios of CPU seconds measured on TPC-H at scale 1 (docs/decisions/0010): a query reads about 43 MB of its tables in a second,
joins and aggregates included; a lookup reads three times as much; a refresh takes 0.7 seconds, 0.1 for each of its operators, and 0.5 more
where its changes are too many for the driver; a change takes eleven microseconds, and as much again for each operator.

Example: a join of tables of 300 MB into a view of 100 KB. Recompute: 302 MB. Incremental: 32 MB + 4 MB for the join + 24 MB and 98 MB for
100,000 changes + a third of the files of lookups, which is more than 302 MB where these files have more than 432 MB.
"""

from __future__ import annotations

_MB = 1 << 20
SMALL = 64 * _MB
"""Views whose tables have fewer bytes in total never fall back for their cost: either way takes a second or two."""
SMALL_TABLE = _MB
"""A table of fewer bytes is read in full, once, and held: looking keys up in it costs more jobs than it has files."""
MOST_LOCAL = 40_000
"""The most rows that are brought to the driver."""
_START, _OPERATOR, _MANY, _CHANGE = 32 * _MB, 4 * _MB, 24 * _MB, 1 << 9
_LOOKUP, _MOVED = 3, 16
"""Bytes of files that cost as much as one byte that a query reads: files of lookups; files of changes, most of which have few,
marked by deletion vectors."""
_WRITTEN = 16


def of_recompute(read: int, stored: int) -> int:
    """A full recompute: `read` bytes of tables, compared with `stored` bytes of the view, and the difference published."""
    return read + _WRITTEN * stored


def of_start(operators: int, moved: int) -> int:
    """A refresh in which this many operators look up rows, after it has read changes from files of `moved` bytes."""
    return _START + operators * _OPERATOR + moved // _MOVED


def of_lookup(files: int) -> int:
    """A lookup in files of this many bytes."""
    return files // _LOOKUP


def of_changes(operators: int, rows: int) -> int:
    """Processing this many changes, once they are read, where this many operators look up rows."""
    return rows * (1 + operators) * _CHANGE + (_MANY if rows > MOST_LOCAL else 0)


def most_changes(operators: int, budget: int) -> int:
    """How many changes a refresh may have before a full recompute is cheaper, without lookups."""
    left, change = budget - of_start(operators, 0), of_changes(operators, 1)
    return max(0, min(left, MOST_LOCAL * change) // change, (left - _MANY) // change)
