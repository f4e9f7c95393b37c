"""Which results are not functions of their inputs as multisets, though Spark calls them deterministic (trap 8).

The order in which rows arrive shows in sums of floats (rounding), in collected lists, and wherever ties are broken at random.
Computing the old side anew could then give a row that the view does not hold. Such a view is refreshed by computing it anew
and publishing the difference to what it holds.
"""

from __future__ import annotations

from lake.catalyst import Catalyst
from lake.relations.base import Relation
from lake.scala import Java

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
_SUMS = frozenset({"Sum", "Average", "TrySum", "TryAverage"})


def order_dependence(relation: Relation, catalyst: Catalyst) -> str | None:
    """What in the tree depends on the order of rows, in words; None where nothing does."""
    for plan in relation.node.spine:
        for expression in catalyst.list(plan.expressions()):
            for kind, java in catalyst.census(expression):
                found = _named(kind, java)
                if found is not None:
                    return found
    if relation.node.kind == "Limit":
        return "LIMIT, which breaks ties between equal sort keys at random"
    for below in [*relation.children, *relation.subqueries.values()]:
        found = order_dependence(below, catalyst)
        if found is not None:
            return found
    return None


def _named(kind: str, java: Java) -> str | None:
    if kind in _ALWAYS:
        return f"{_ALWAYS[kind]}, whose result depends on the order of rows"
    if kind in _MOMENTS:
        return f"{java.prettyName()}, which adds up floating-point numbers: their rounding depends on the order of rows"
    if kind in _SUMS and str(java.child().dataType().typeName()) in ("float", "double"):
        return f"{java.prettyName()} of floating-point numbers: their rounding depends on the order of rows"
    if kind == "SpecifiedWindowFrame" and str(java.frameType().toString()) == "RowFrame":
        return "a window frame of ROWS, which depends on the order of rows with equal sort keys"
    return None
