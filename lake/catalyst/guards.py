"""Aggregates whose result depends on the order of rows only for rare values: they raise where these occur, or choose one of the results.

    avg(x) of whole numbers   →   IF(sum(abs(x)) > 2^53, raise_error(...), avg(x))
    max(x) of doubles         →   IF(max(x) = 0 AND x has zeros of both signs, 0.0, max(x))

Spark adds whole numbers up as doubles to average them. While their magnitudes add up to 2^53 at the most, every partial sum is a whole
number that a double holds. (The sum of magnitudes is itself one of doubles: rounding never takes it back below 2^53.) It averages narrow
decimals as whole numbers, too (DecimalAggregates). Where a guarded operator raises, the view is refreshed as one that depends on the
order of rows.

-0.0 and 0.0 are equal by Spark's comparison, so that its maximum or minimum is whichever comes first. Both are right; here it is always
0.0 where both occur, in whatever order, so that a view is a function of its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Node
from lake.catalyst.sums import WHOLE, like, type_name
from lake.spark.jvm.gateway import Java, kind_of

LARGEST = 2**53
"""Up to here a double holds every whole number."""
INEXACT = "LAKEJOIN_INEXACT"
"""What the error of a guarded aggregate says."""
TOO_LARGE = f"magnitude >= {LARGEST}D"
"""The condition, as SQL over the sum of magnitudes, under which an average of whole numbers may have been rounded."""
_WIDE = frozenset({"integer", "long"})
"""Whole numbers whose sums may come near the bound: of bytes and shorts it takes 2^38 rows."""
_FLOATS = frozenset({"float", "double"})
_ZEROS = "IF(CAST(x AS DOUBLE) = 0D, IF(CAST(x AS STRING) = '-0.0', 2, 1), 0)"


@dataclass(frozen=True)
class _Guard:
    """Aggregates under the same FILTER as the guarded one, by name, the condition over them (and over `value`, the guarded one) under which
    the result is `instead`; `raises`: that is an error."""

    beside: Mapping[str, Java]
    condition: str
    instead: str
    raises: bool


def raised(data_type: str) -> str:
    """The error instead of a result of some type, as SQL."""
    return f"CAST(raise_error('{INEXACT}') AS {data_type})"


def unless_too_large(average: str) -> str:
    """An average of whole numbers, as SQL, or the error where it may have been rounded."""
    return f"IF({TOO_LARGE}, {raised('DOUBLE')}, {average})"


def rarely_inexact(java: Java) -> str:
    """Under which values an aggregate function that is guarded depends on the order of rows, in words; empty for another function."""
    kind, of = kind_of(java), type_name(java.child())
    if kind == "Average" and of in WHOLE:
        return "whole numbers that add up to more than 2^53: their rounding depends on the order of rows"
    return ""


def is_extreme_of_floats(java: Java) -> bool:
    """Whether a function is a maximum or minimum of floating-point numbers, the sign of whose zero Spark leaves to the order of rows."""
    return kind_of(java) in ("Max", "Min") and type_name(java.child()) in _FLOATS


def guarded(node: Node, catalyst: Catalyst, raising: bool = True) -> Node:
    """An aggregate or a window whose result does not depend on the order of rows for rare values; another node as it is.

    `raising`: what can't be made so raises an error for them; without, it depends on the order of rows.
    """
    if node.measures or node.tie_free or node.kind not in ("Aggregate", "Window"):
        return node
    made = partial(_guard, catalyst=catalyst, raising=raising)
    return _guarded_aggregate(node, catalyst, made) if node.kind == "Aggregate" else _guarded_window(node, catalyst, made)


def _guard(aggregate: Java, catalyst: Catalyst, raising: bool) -> _Guard | None:
    function, functions = aggregate.aggregateFunction(), catalyst.aggregate_functions
    kind = kind_of(function)
    if kind not in ("Average", "Max", "Min"):
        return None
    child, of = function.child(), str(aggregate.dataType().sql())
    if raising and kind == "Average" and type_name(child) in _WIDE:
        magnitude = functions.Sum(catalyst.made("abs(CAST(x AS DOUBLE))", x=child))
        beside = {"magnitude": like(aggregate, magnitude, catalyst)}
        return _Guard(beside, TOO_LARGE, raised(of), raises=True)
    if is_extreme_of_floats(function):
        zeros = functions.BitOrAgg(catalyst.made(_ZEROS, x=child))
        return _Guard({"zeros": like(aggregate, zeros, catalyst)}, "value = 0 AND zeros = 3", f"CAST(0 AS {of})", raises=False)
    return None


def _chosen(guard: _Guard, value: Java, beside: Mapping[str, Java], catalyst: Catalyst) -> Java:
    return catalyst.made(f"IF({guard.condition}, {guard.instead}, value)", value=value, **beside)


def _guarded_aggregate(node: Node, catalyst: Catalyst, made: Callable[[Java], _Guard | None]) -> Node:
    found = []

    def guard(java: Java) -> Java:
        if kind_of(java) != "AggregateExpression":
            return catalyst.rebuilt(java, guard)
        of = made(java)
        if of is None:
            return java
        found.append(of)
        return _chosen(of, java, of.beside, catalyst)

    outputs = [guard(java) for java in catalyst.list(node.plan.aggregateExpressions())]
    return replace(catalyst.aggregate(node, outputs), guarded=any(of.raises for of in found)) if found else node


def _guarded_window(node: Node, catalyst: Catalyst, made: Callable[[Java], _Guard | None]) -> Node:
    """The window with the aggregates of its guards beside its own, and a projection over it, as one operator."""
    window, named, checked, raises = node.plan, [], {}, False
    for alias in catalyst.list(window.windowExpressions()):
        of, function = alias.child(), alias.child().windowFunction()
        guard = made(function) if kind_of(function) == "AggregateExpression" else None
        if guard is None:
            named.append(alias)
            continue
        value = catalyst.alias(of, "value")
        beside = {
            name: catalyst.alias(of.withNewChildren(catalyst.seq([java, of.windowSpec()])), name) for name, java in guard.beside.items()
        }
        named += [value, *beside.values()]
        chosen = _chosen(guard, value.toAttribute(), {name: a.toAttribute() for name, a in beside.items()}, catalyst)
        checked[int(alias.exprId().id())] = alias.withNewChildren(catalyst.seq([chosen]))
        raises = raises or guard.raises
    if not checked:
        return node
    below = catalyst.window(window, named)
    outputs = [checked.get(int(a.exprId().id()), a) for a in catalyst.list(window.output())]
    above = catalyst.projection(outputs, replace(node, spine=(below,), output=catalyst.attributes(below.output()))).plan
    return replace(node, spine=(above, below), output=catalyst.attributes(above.output()), guarded=raises)
