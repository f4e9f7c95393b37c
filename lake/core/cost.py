"""What an incremental refresh costs against the query computed anew, both in bytes that a query reads.

Constants are CPU seconds measured on TPC-H at scale 1, as ratios (docs/decisions/0010): a query gets through about 90 MB of its tables
in a second, joins and aggregates included; a lookup through twice as many; a refresh takes 0.7 seconds, and 0.2 for each of its
operators, whatever the rows; a change takes five microseconds, and as many again for each operator.

Example: a join of tables of 300 MB into a view of 100 KB. Anew: 302 MB. Incremental: 64 MB + 16 MB for the join + 98 MB for 100,000 changes
+ half of what is looked up: 302 MB are passed where that is more than 247 MB.
"""

from __future__ import annotations

_MB = 1 << 20
SMALL = 64 * _MB
"""Tables that are smaller, taken together, are refreshed incrementally whatever it costs: either way it is a second or two."""
_START, _OPERATOR, _CHANGE = 64 * _MB, 16 * _MB, 1 << 9
_LOOKUP, _MOVED = 2, 8
"""Bytes of files that cost as much as one that a query reads: where keys are looked up; where changes are read, most of whose files hold
few, marked by deletion vectors."""
_WRITTEN = 16


def recompute(read: int, held: int) -> int:
    """The query computed anew over so many bytes, compared with the view's rows of so many, and the difference published."""
    return read + _WRITTEN * held


def begun(operators: int, moved: int) -> int:
    """A refresh in which so many operators look rows up, once it has read changes out of files of so many bytes."""
    return _START + operators * _OPERATOR + moved // _MOVED


def looked_up(files: int) -> int:
    """A lookup in files of so many bytes."""
    return files // _LOOKUP


def changed(operators: int, rows: int) -> int:
    """What comes with so many changes, beyond finding them, where so many operators look rows up."""
    return rows * (1 + operators) * _CHANGE


def most_changes(operators: int, budget: int) -> int:
    """How many changes a refresh may have until the query computed anew is cheaper, lookups not counted."""
    return max(0, budget - begun(operators, 0)) // changed(operators, 1)
