"""Operators inside a query that let through the first rows of all, in an order:

    ORDER BY ... LIMIT n [OFFSET m]                                 the first n + m rows decide
    rank() OVER (ORDER BY ...) <= n, row_number(), dense_rank()     the first rows up to the last one of rank n decide

See relations/first_rows.py for the rule.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from lake.catalyst import Catalyst
from lake.catalyst.determinism import anywhere, order_dependence
from lake.catalyst.nodes import Node
from lake.catalyst.stamp_names import name_in_stamp
from lake.spark.jvm.gateway import Java, kind_of

MOST = 1_000
"""Of an operator that lets through more rows than this the stamp keeps no rows."""
_RANKS = frozenset({"RowNumber", "Rank", "DenseRank"})
_AT_MOST = {"LessThan": 1, "LessThanOrEqual": 0, "EqualTo": 0}
_TURNED = {"GreaterThan": "LessThan", "GreaterThanOrEqual": "LessThanOrEqual", "EqualTo": "EqualTo"}


def first_rows(node: Node, catalyst: Catalyst) -> Node | None:
    """The operator with how many rows it lets through (`most`), and the name under which the stamp has its first rows (`margin`); None for
    another one, and where these rows depend on the order in which the child's arrive.

    A filter of ranks has the filter and the window in its spine, and the window's child.
    """
    if node.kind == "Limit" and not node.order_dependent:
        most = _limit(node, catalyst)
        found = replace(node, most=most) if 0 < most <= MOST else None
    elif node.kind == "Filter" and node.children[0].kind == "Window":
        found = _of_ranks(node, node.children[0], catalyst)
    else:
        found = None
    if found is None or catalyst.subquery_plans(found) or anywhere(found.children[0], catalyst):
        return None
    (child,) = found.children  # its rows are kept as bytes: a type that is widened, also in a subquery, makes them others
    return replace(found, margin=name_in_stamp(found, found.spine[0], catalyst, [catalyst.schema_of(child.spine[0]).json()]))


def rest_of(node: Node, first: Node, catalyst: Catalyst) -> Node | None:
    """The filter of ranks over its first rows, where it has another condition than the one that bounds a rank."""
    only, *others = catalyst.conjuncts(node.plan.condition()) if node.kind == "Filter" else [None]
    return catalyst.over(node, [first]) if others or (only is not None and kind_of(only) == "EqualTo") else None


def _limit(node: Node, catalyst: Catalyst) -> int:
    """How many of the first rows decide what a LIMIT lets through; 0 where they do not."""
    names = [plan.nodeName() for plan in node.spine]
    if names[0] != "GlobalLimit" or names[-1] != "Sort" or "Tail" in names:
        return 0
    offsets = [plan.offsetExpr() for plan in node.spine if plan.nodeName() == "Offset"]
    return sum(int(str(java.eval(None))) for java in [node.spine[0].limitExpr(), *offsets])


def _of_ranks(node: Node, window: Node, catalyst: Catalyst) -> Node | None:
    plan = window.plan
    named = {alias.exprId().id(): kind_of(alias.child().windowFunction()) for alias in catalyst.list(plan.windowExpressions())}
    if not plan.partitionSpec().isEmpty() or plan.orderSpec().isEmpty() or not _RANKS.issuperset(named.values()):
        return None
    if order_dependence(window, catalyst):
        return None
    bounds = [_bound(java, named, catalyst) for java in catalyst.conjuncts(node.plan.condition())]
    least, rank = min((bound for bound in bounds if bound is not None), default=(0, 0))
    if not 0 < least <= MOST:
        return None
    condition = catalyst.made(f"r <= {least}", r={a.id: a.java for a in window.output}[rank])
    spine = (catalyst.filtered(plan, condition), plan)
    return replace(node, spine=spine, children=window.children, most=least, tie_free=window.tie_free)


def _bound(java: Java, ranks: Collection[int], catalyst: Catalyst) -> tuple[int, int] | None:
    """(the most that a rank may be, its attribute id) by a condition; None for another condition."""
    kind, sides = kind_of(java), catalyst.list(java.children())
    if len(sides) == 2 and kind_of(sides[0]) == "Literal":
        kind, sides = _TURNED.get(kind, ""), sides[::-1]
    if kind not in _AT_MOST or kind_of(sides[1]) != "Literal" or not isinstance(value := sides[1].value(), int):
        return None
    rank = catalyst.expression(sides[0])
    return (value - _AT_MOST[kind], rank.attribute) if rank.plain and rank.attribute is not None and rank.attribute in ranks else None
