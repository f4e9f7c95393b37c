"""Which results are not functions of their inputs as multisets, though Spark calls them deterministic (trap 8).

The order in which rows arrive shows in sums of floats (rounding), in collected lists, and wherever ties are broken at random.
Recomputing the old side could then give a row that is not stored. The old side of such an operator is read from the stored rows
(relations/order_dependent.py), and never recomputed.
"""

from __future__ import annotations

from collections.abc import Iterator

from lake.catalyst import Catalyst
from lake.catalyst.census import Kind
from lake.catalyst.distinct_rewrite import of_one_row
from lake.catalyst.guards import rarely_inexact
from lake.catalyst.nodes import Expression, Node
from lake.catalyst.sums import type_name
from lake.spark.jvm.gateway import Java, kind_of
from lake.spark.zset import is_bitwise

_ALWAYS = {
    "First": "first",
    "Last": "last",
    "AnyValue": "any_value",
    "CollectList": "collect_list",
    "CollectSet": "collect_set",
    "ListAgg": "listagg",
    "Mode": "mode",
    "MaxBy": "max_by",
    "MinBy": "min_by",
    "MaxMinByK": "max_by or min_by of several",
    "ApproximatePercentile": "approx_percentile",
    "HistogramNumeric": "histogram_numeric",
    "CountMinSketchAgg": "count_min_sketch",
    "BloomFilterAggregate": "bloom_filter_agg",
    "ReduceAggregator": "reduce",
    "RowNumber": "row_number",
    "NTile": "ntile",
    "Lag": "lag",
    "Lead": "lead",
    "NthValue": "nth_value",
    "PythonUDAF": "a Python aggregate",
    "Product": "product",
    "VectorSum": "vector_sum",
    "VectorAvg": "vector_avg",
}
_MOMENTS = frozenset(
    [
        "StddevPop",
        "StddevSamp",
        "VariancePop",
        "VarianceSamp",
        "Skewness",
        "Kurtosis",
        "Corr",
        "CovPopulation",
        "CovSample",
        "PearsonCorrelation",
        "RegrReplacement",
        "RegrR2",
        "RegrSXY",
        "RegrSlope",
        "RegrIntercept",
    ]
)
_SUMS = frozenset({"Sum", "Average"})
_FLOATS = ("float", "double")
_RANKS = frozenset({"Rank", "DenseRank", "PercentRank", "CumeDist"})
_ASKED = _MOMENTS | _SUMS | {*_ALWAYS, "WindowExpression", "Max", "Min"}
_SKETCHES = ("Hll", "Theta", "Kll", "Tuple", "ApproxTopK")


def order_dependence(node: Node, catalyst: Catalyst, guarded: bool = True) -> str:
    """What in the node's own expressions depends on the order of rows, in words; empty where nothing does.

    `guarded`: what depends on it only for rare values does not, since it is guarded against them (guards.py).
    """
    if node.kind in ("Window", "Limit") and (node.tie_free or set(node.children[0].output_ids) <= ordered_by(node, catalyst)):
        return ""  # rows come in one order only, or are the same
    if node.by_name:
        return f"{node.kind}, whose Python function is given rows in any order"
    return _named_first(node, catalyst, guarded) or (
        "LIMIT, which breaks ties between equal sort keys at random" if node.kind == "Limit" else ""
    )


def ordered_by(node: Node, catalyst: Catalyst) -> set[int]:
    """The columns in which rows that tie in a window, or in an ORDER BY ... LIMIT, are the same bit by bit."""
    plan = node.plan
    if node.kind == "Window":
        partitions, orders = catalyst.list(plan.partitionSpec()), catalyst.list(plan.orderSpec())
    else:
        sorted_all = plan.nodeName() == "Sort" and bool(getattr(plan, "global")())  # SORT BY sorts what comes together by chance
        partitions, orders = [], catalyst.list(plan.order()) if sorted_all else []
    found = [catalyst.expression(java) for java in [*partitions, *[order.child() for order in orders]]]
    return {e.attribute for e in found if e.plain and e.attribute is not None and is_bitwise(catalyst.type_of(e))}


def _named_first(node: Node, catalyst: Catalyst, guarded: bool) -> str:
    if node.kind == "Aggregate" and any(_collated(java) for java in catalyst.list(node.plan.groupingExpressions())):
        return "groups of strings that are equal by their collation: which of them stands for its group depends on the order of rows"
    census = [found for plan in node.spine for found in _choices(plan.expressions(), node, catalyst)]
    return next(filter(None, (_named(kind, java, guarded) for kind, java in census)), "")


def _choices(expressions: Java, node: Node, catalyst: Catalyst) -> Iterator[tuple[str, Java]]:
    """What may depend on an order in a sequence of expressions, without each `first` that Spark wrote itself, over one row."""
    found = catalyst.census(expressions, subqueries=False)
    aggregates = found.of(["AggregateExpression"]) if node.kind == "Aggregate" else ()
    of_one = [aggregate for _, aggregate in aggregates if of_one_row(aggregate, node, catalyst)]
    return (catalyst.census(expressions, subqueries=False, without=of_one) if of_one else found).where(_may_depend)


def _may_depend(kind: Kind) -> bool:
    """Whether there is anything to ask of an expression."""
    return kind.name in _ASKED or kind.name.startswith(_SKETCHES)


def named_in(expression: Expression, catalyst: Catalyst) -> str:
    """What in an expression depends on the order of rows, in words; empty where nothing does."""
    found = catalyst.census(expression.java, subqueries=False).where(_may_depend)
    named = (_named(kind, java, guarded=False) for kind, java in found)
    return next(filter(None, named), "")


def anywhere(node: Node, catalyst: Catalyst) -> bool:
    """Whether anything in the node, below it, or in its subqueries depends on the order of rows."""
    inner = [*node.children, *[catalyst.tree(plan) for _, plan in catalyst.subquery_plans(node)]]
    return bool(order_dependence(node, catalyst)) or any(anywhere(n, catalyst) for n in inner)


def _named(kind: str, java: Java, guarded: bool) -> str:
    if kind in _ALWAYS:
        return f"{_ALWAYS[kind]}, whose result depends on the order of rows"
    if kind == "WindowExpression" and _within_ties(java):
        return "a window frame of ROWS, which depends on the order of rows with equal sort keys"
    if kind in _MOMENTS or kind.startswith(_SKETCHES):
        return f"{java.prettyName()}, whose rounding depends on the order of rows"
    if kind in ("Max", "Min") and _collated(java.child()):
        return f"{java.prettyName()} of strings that may be equal by their collation: which of them it is depends on the order of rows"
    if kind in ("Max", "Min") and _nests_floats(java.child()):
        return f"{java.prettyName()} of values with -0.0 and 0.0 in them, which are equal: which of them it is depends on the order of rows"
    if kind in _SUMS and type_name(java.child()) in _FLOATS:
        return f"{java.prettyName()} of floating-point numbers: their rounding depends on the order of rows"
    if kind == "Average" and not guarded and (of := rarely_inexact(java)):
        return f"{java.prettyName()} of {of}"
    return ""


def _collated(java: Java) -> bool:
    """Whether there are strings in a value that its collation may take for equal though they differ."""
    return " collate " in str(java.dataType().catalogString()).lower()


def _nests_floats(java: Java) -> bool:
    """Whether there are floating-point numbers in the fields or elements of a value."""
    text = str(java.dataType().catalogString())
    return text not in _FLOATS and any(kind in text for kind in _FLOATS)


def _within_ties(window: Java) -> bool:
    """Whether a window's frame begins or ends among rows that sort the same. A rank has such a frame, and does not look at it."""
    frame = window.windowSpec().frameSpecification()
    if kind_of(frame) != "SpecifiedWindowFrame" or str(frame.frameType().toString()) != "RowFrame":
        return False
    if kind_of(window.windowFunction()) in _RANKS:
        return False
    return [str(frame.lower().sql()), str(frame.upper().sql())] != ["UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING"]
