"""Averages of whole numbers, which Spark adds up as doubles: exact up to 2^53, in any order of the rows.

    avg(x)   →   IF(sum(abs(x)) <= 2^53, avg(x), raise_error(...))

Every partial sum is then a whole number that a double holds. (The sum of magnitudes is itself one of doubles: rounding never takes it
back below 2^53.) Beyond the bound an average depends on the order of rows, as one of doubles does: the guarded operator fails, and the
view is refreshed as one that depends on the order of rows. Spark averages narrow decimals as whole numbers, too (DecimalAggregates).
"""

from __future__ import annotations

from dataclasses import replace

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Node
from lake.spark.jvm.gateway import Java

LARGEST = 2**53
"""Up to here a double holds every whole number."""
INEXACT = "LAKEJOIN_INEXACT"
"""What the error of a guarded average says."""
_WIDE = frozenset({"integer", "long"})
_WHOLE = _WIDE | {"byte", "short"}
"""Of bytes and shorts it takes 2^38 rows to come near the bound."""


def is_average(java: Java) -> bool:
    """Whether an aggregate function is an average of whole numbers."""
    return str(java.getClass().getSimpleName()) == "Average" and str(java.child().dataType().typeName()) in _WHOLE


def guarded(node: Node, catalyst: Catalyst) -> Node:
    """An aggregate or a window whose averages of whole numbers raise beyond the bound; another node as it is."""
    if node.measures or node.tie_free or node.kind not in ("Aggregate", "Window"):
        return node
    return _guarded_aggregate(node, catalyst) if node.kind == "Aggregate" else _guarded_window(node, catalyst)


def _guarded_aggregate(node: Node, catalyst: Catalyst) -> Node:
    found = []

    def guard(java: Java) -> Java:
        if java.getClass().getSimpleName() != "AggregateExpression":
            return catalyst.rebuilt(java, guard)
        if not _unbounded(java.aggregateFunction()):
            return java
        found.append(java)
        return catalyst.raising_above(java, _magnitude(java, catalyst), LARGEST, INEXACT)

    outputs = [guard(java) for java in catalyst.list(node.plan.aggregateExpressions())]
    return replace(catalyst.aggregate(node, outputs), guarded=True) if found else node


def _guarded_window(node: Node, catalyst: Catalyst) -> Node:
    """The window with the sums of magnitudes beside its averages, and a projection over it, as one operator."""
    window, named, checked = node.plan, [], {}
    for alias in catalyst.list(window.windowExpressions()):
        of, function = alias.child(), alias.child().windowFunction()
        if function.getClass().getSimpleName() != "AggregateExpression" or not _unbounded(function.aggregateFunction()):
            named.append(alias)
            continue
        average = catalyst.alias(of, "average")
        magnitude = catalyst.alias(of.withNewChildren(catalyst.seq([_magnitude(function, catalyst), of.windowSpec()])), "magnitude")
        named += [average, magnitude]
        raising = catalyst.raising_above(average.toAttribute(), magnitude.toAttribute(), LARGEST, INEXACT)
        checked[int(alias.exprId().id())] = alias.withNewChildren(catalyst.seq([raising]))
    if not checked:
        return node
    below = catalyst.window(window, named)
    outputs = [checked.get(int(a.exprId().id()), a) for a in catalyst.list(window.output())]
    above = catalyst.projection(outputs, replace(node, spine=(below,), output=catalyst.attributes(below.output()))).plan
    return replace(node, spine=(above, below), output=catalyst.attributes(above.output()), guarded=True)


def _unbounded(function: Java) -> bool:
    return is_average(function) and str(function.child().dataType().typeName()) in _WIDE


def _magnitude(average: Java, catalyst: Catalyst) -> Java:
    """The sum of the absolute values of what is averaged, as a double."""
    child = catalyst.cast(average.aggregateFunction().child(), "double")
    summed = catalyst.aggregate_functions.Sum(catalyst.absolute(child))
    return average.copy(summed, average.mode(), False, average.filter(), catalyst.new_id())
