"""Aggregates whose result depends on the order of rows only for rare values: they raise where these occur.

    avg(x) of whole numbers   →   IF(sum(abs(x)) > 2^53, raise_error(...), avg(x))
    max(x) of doubles         →   IF(max(x) = 0 AND x has zeros of both signs, raise_error(...), max(x))

Spark adds whole numbers up as doubles to average them. While their magnitudes add up to 2^53 at the most, every partial sum is a whole
number that a double holds. (The sum of magnitudes is itself one of doubles: rounding never takes it back below 2^53.) It averages narrow
decimals as whole numbers, too (DecimalAggregates). And -0.0 and 0.0 are equal by Spark's comparison, so that a maximum or minimum is
whichever comes first.

Where a guarded operator raises, the view is refreshed as one that depends on the order of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Node
from lake.spark.jvm.gateway import Java

LARGEST = 2**53
"""Up to here a double holds every whole number."""
INEXACT = "LAKEJOIN_INEXACT"
"""What the error of a guarded aggregate says."""
_WIDE = frozenset({"integer", "long"})
_WHOLE = _WIDE | {"byte", "short"}
"""Of bytes and shorts it takes 2^38 rows to come near the bound."""
_FLOATS = frozenset({"float", "double"})
_ZEROS = "IF(CAST(x AS DOUBLE) = 0D, IF(CAST(x AS STRING) = '-0.0', 2, 1), 0)"


@dataclass(frozen=True)
class _Guard:
    """Aggregates under the same FILTER as the guarded one, by name, and the condition over them (and over `value`, the guarded one)
    under which it raises."""

    beside: Mapping[str, Java]
    condition: str


def rarely_inexact(java: Java) -> str:
    """Under which values an aggregate function that is guarded depends on the order of rows, in words; empty for another function."""
    kind, of = str(java.getClass().getSimpleName()), str(java.child().dataType().typeName())
    if kind == "Average" and of in _WHOLE:
        return "whole numbers that add up to more than 2^53: their rounding depends on the order of rows"
    if kind in ("Max", "Min") and of in _FLOATS:
        return "-0.0 and 0.0, which are equal: which of them it is depends on the order of rows"
    return ""


def guarded(node: Node, catalyst: Catalyst) -> Node:
    """An aggregate or a window that raises where its result depends on the order of rows for rare values; another node as it is."""
    if node.measures or node.tie_free or node.kind not in ("Aggregate", "Window"):
        return node
    return _guarded_aggregate(node, catalyst) if node.kind == "Aggregate" else _guarded_window(node, catalyst)


def _guard(aggregate: Java, catalyst: Catalyst) -> _Guard | None:
    function = aggregate.aggregateFunction()
    kind, functions = str(function.getClass().getSimpleName()), catalyst.aggregate_functions
    if kind not in ("Average", "Max", "Min"):
        return None
    child = function.child()
    of = str(child.dataType().typeName())
    if kind == "Average" and of in _WIDE:
        magnitude = functions.Sum(catalyst.made("abs(CAST(x AS DOUBLE))", x=child))
        return _Guard({"magnitude": _like(aggregate, magnitude, catalyst)}, f"magnitude >= {LARGEST}D")
    if kind in ("Max", "Min") and of in _FLOATS:
        zeros = functions.BitOrAgg(catalyst.made(_ZEROS, x=child))
        return _Guard({"zeros": _like(aggregate, zeros, catalyst)}, "value = 0 AND zeros = 3")
    return None


def _like(aggregate: Java, function: Java, catalyst: Catalyst) -> Java:
    return aggregate.copy(function, aggregate.mode(), False, aggregate.filter(), catalyst.new_id())


def _raising(guard: _Guard, value: Java, beside: Mapping[str, Java], catalyst: Catalyst) -> Java:
    data_type = str(value.dataType().sql())
    text = f"IF({guard.condition}, CAST(raise_error('{INEXACT}') AS {data_type}), value)"
    return catalyst.made(text, value=value, **beside)


def _guarded_aggregate(node: Node, catalyst: Catalyst) -> Node:
    found = []

    def guard(java: Java) -> Java:
        if java.getClass().getSimpleName() != "AggregateExpression":
            return catalyst.rebuilt(java, guard)
        made = _guard(java, catalyst)
        if made is None:
            return java
        found.append(java)
        return _raising(made, java, made.beside, catalyst)

    outputs = [guard(java) for java in catalyst.list(node.plan.aggregateExpressions())]
    return replace(catalyst.aggregate(node, outputs), guarded=True) if found else node


def _guarded_window(node: Node, catalyst: Catalyst) -> Node:
    """The window with the aggregates of its guards beside its own, and a projection over it, as one operator."""
    window, named, checked = node.plan, [], {}
    for alias in catalyst.list(window.windowExpressions()):
        of, function = alias.child(), alias.child().windowFunction()
        guard = _guard(function, catalyst) if function.getClass().getSimpleName() == "AggregateExpression" else None
        if guard is None:
            named.append(alias)
            continue
        value = catalyst.alias(of, "value")
        beside = {
            name: catalyst.alias(of.withNewChildren(catalyst.seq([java, of.windowSpec()])), name) for name, java in guard.beside.items()
        }
        named += [value, *beside.values()]
        raising = _raising(guard, value.toAttribute(), {name: a.toAttribute() for name, a in beside.items()}, catalyst)
        checked[int(alias.exprId().id())] = alias.withNewChildren(catalyst.seq([raising]))
    if not checked:
        return node
    below = catalyst.window(window, named)
    outputs = [checked.get(int(a.exprId().id()), a) for a in catalyst.list(window.output())]
    above = catalyst.projection(outputs, replace(node, spine=(below,), output=catalyst.attributes(below.output()))).plan
    return replace(node, spine=(above, below), output=catalyst.attributes(above.output()), guarded=True)
