"""What a filter compares a column with, where that is another value at another time: x > 3 before, x > 5 now."""

from __future__ import annotations

from dataclasses import dataclass

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Expression
from lake.spark.jvm.gateway import kind_of

_COMPARISONS = frozenset({"GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"})


@dataclass(frozen=True)
class Thresholds:
    """A column, and what it is compared with, at both times: the conditions differ for rows between the two only, both included."""

    column: Expression
    before: Expression
    now: Expression


def thresholds(before: Expression, now: Expression, catalyst: Catalyst) -> Thresholds | None:
    """Those of two forms of one condition; None where they differ by more than one comparison of a column with a constant."""
    pairs = list(zip(*(catalyst.conjuncts(condition.java) for condition in (before, now)), strict=True))
    other = [(one, two) for one, two in pairs if not one.semanticEquals(two)]
    if len(other) != 1 or kind_of(other[0][0]) not in _COMPARISONS:
        return None
    old, new = ((comparison.left(), comparison.right()) for comparison in other[0])
    for column, value in ((0, 1), (1, 0)):
        found = catalyst.expression(old[column])
        if found.plain and old[value].foldable() and new[value].foldable():
            return Thresholds(found, catalyst.expression(old[value]), catalyst.expression(new[value]))
    return None
