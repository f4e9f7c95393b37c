"""Finds the columns of a view whose last digits depend on the order in which Spark adds: those made of sums of floating-point numbers.

SELECT g, count(*) AS n, avg(x) AS mean, max(x) AS most FROM t GROUP BY g, with a DOUBLE x → {mean}

A column is one where its type is FLOAT or DOUBLE, and it is a sum, average or another moment of FLOAT or DOUBLE values, an average of
BIGINT values, or computed from such a column through columns that hold floating-point numbers. All others are exact: whole numbers,
decimals, texts, extremes of what is stored, and what a comparison with a sum decides.

In the same way it finds the columns made of maxima and minima of floating-point numbers, whose zero may be 0.0 or -0.0 (guards.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lake.catalyst import Catalyst
from lake.catalyst.expressions import PLAN_EXPRESSION
from lake.catalyst.guards import is_extreme_of_floats
from lake.catalyst.nodes import Node
from lake.catalyst.sums import type_name
from lake.spark.jvm.gateway import Java, kind_of

_SUMS = frozenset({"Sum", "TrySum", "Average", "TryAverage", "Product"})
_MOMENTS = frozenset(
    [
        *("StddevPop", "StddevSamp", "VariancePop", "VarianceSamp", "Skewness", "Kurtosis"),
        *("Corr", "PearsonCorrelation", "CovPopulation", "CovSample"),
        *("RegrReplacement", "RegrR2", "RegrSXY", "RegrSlope", "RegrIntercept"),
    ]
)
_AVERAGES = ("Average", "TryAverage")
_FLOATS = ("float", "double")
_Is = Callable[[Java], bool]


def rounded(node: Node, catalyst: Catalyst) -> frozenset[int]:
    """The attribute ids of the node's output that are such columns."""
    return _numbers(node, _traced(node, catalyst, _adds))


def of_either_zero(node: Node, catalyst: Catalyst) -> frozenset[int]:
    """The attribute ids of the node's output that are made of maxima and minima of floating-point numbers."""
    return _numbers(node, _traced(node, catalyst, is_extreme_of_floats))


def _numbers(node: Node, ids: frozenset[int]) -> frozenset[int]:
    return frozenset(a.id for a in node.output if a.id in ids and type_name(a.java) in _FLOATS)


def _adds(java: Java) -> bool:
    """Whether it is a function that adds up floating-point numbers."""
    kind = kind_of(java)
    if kind in _AVERAGES and type_name(java.child()) == "long":  # added up as a double, which is exact up to 2^53
        return True
    return kind in _MOMENTS or (kind in _SUMS and type_name(java.child()) in _FLOATS)


def _traced(node: Node, catalyst: Catalyst, origin: _Is) -> frozenset[int]:
    """The columns made of functions of some kind, of all types that hold floating-point numbers, structs and arrays of them included."""
    inner = [_traced(child, catalyst, origin) for child in node.children]
    below = frozenset[int]().union(*inner)
    if node.kind == "Union":  # its output is by position
        sides = [[a.id in found for a in child.output] for child, found in zip(node.children, inner, strict=True)]
        return frozenset(a.id for a, *of_sides in zip(node.output, *sides, strict=True) if any(of_sides))
    made = _made(node, catalyst)
    found = {i for i, values in made.items() if any(_holds_floats(v) and _made_of(v, origin, below, catalyst) for v in values)}
    return frozenset(found | {a.id for a in node.output if a.id not in made and a.id in below})


def _made(node: Node, catalyst: Catalyst) -> dict[int, Sequence[Java]]:
    """Attribute id → the expressions over the children that make it; columns that are passed on are left out."""
    if node.kind in ("Project", "Aggregate"):
        return {i: (java,) for i, java in catalyst.definitions(node).items()}
    if node.kind == "Window":
        windows = [e for plan in node.spine if plan.nodeName() == "Window" for e in catalyst.list(plan.windowExpressions())]
        return {int(e.exprId().id()): (e,) for e in windows}
    if node.kind == "Expand":
        rows = [catalyst.list(projection) for projection in catalyst.list(node.plan.projections())]
        return {a.id: values for a, *values in zip(node.output, *rows, strict=True)}
    if node.kind == "Generate":
        return {int(a.exprId().id()): (node.plan.generator(),) for a in catalyst.list(node.plan.generatorOutput())}
    return {}


def _made_of(java: Java, origin: _Is, below: frozenset[int], catalyst: Catalyst) -> bool:
    """Whether an expression has such a function in it, itself or in a subquery, or reads a column that is made of one.

    What has no floating-point numbers as its value, such as a condition, passes nothing on.
    """
    if not _holds_floats(java):
        return False
    if origin(java):
        return True
    if kind_of(java) == "AttributeReference":
        return int(java.exprId().id()) in below
    if catalyst.is_a(java, PLAN_EXPRESSION):
        return bool(_traced(catalyst.tree(java.plan()), catalyst, origin))
    window = kind_of(java) == "WindowExpression"
    inner = [java.windowFunction()] if window else catalyst.list(java.children())
    return any(_made_of(child, origin, below, catalyst) for child in inner)


def _holds_floats(java: Java) -> bool:
    """Whether there are floating-point numbers in its values, in elements and fields included."""
    return any(name in str(java.dataType().catalogString()).lower() for name in _FLOATS)
