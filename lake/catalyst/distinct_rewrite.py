"""Several DISTINCT aggregates as Spark rewrites them, and the proof that `first` is no choice there (RewriteDistinctAggregates).

    SELECT s, count(DISTINCT v), count(DISTINCT id), sum(x) FROM t GROUP BY s   →

    Aggregate [s]               count(v) FILTER (gid = 1), count(id) FILTER (gid = 2), first(sum, ignoreNulls) FILTER (gid = 0)
    +- Aggregate [s, v, id, gid]     sum(x)
       +- Expand [s, NULL, NULL, 0, x], [s, v, NULL, 1, NULL], [s, NULL, id, 2, NULL]

Exactly one projection of the Expand has the gid of the FILTER, and in that one all columns by which only the inner aggregate groups are
constants. So the inner aggregate has one row at the most of that gid for each outer group: `first` is a function of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Expression, Node
from lake.spark.jvm.gateway import Java, kind_of


def of_one_row(aggregate: Java, node: Node, catalyst: Catalyst) -> bool:
    """Whether an aggregate function of a node is `first` over one row of each group at the most."""
    if kind_of(aggregate.aggregateFunction()) != "First" or aggregate.filter().isEmpty():
        return False
    inner = node.children[0]
    if inner.kind != "Aggregate" or inner.children[0].kind != "Expand":
        return False
    outer = _columns([catalyst.below(inner, key) for key in catalyst.grouping_keys(node)])
    grouped = _columns(catalyst.grouping_keys(inner))
    if outer is None or grouped is None or not outer <= grouped:
        return False
    expand = inner.children[0]
    rows = [catalyst.list(projection) for projection in catalyst.list(expand.plan.projections())]
    return any(
        gid in grouped - outer and _constant_in_one(rows, [a.id for a in expand.output], gid, value, grouped - outer)
        for gid, value in _equalities(aggregate.filter().get(), inner, catalyst)
    )


def _columns(expressions: Sequence[Expression]) -> set[int] | None:
    """The columns that some expressions are; None where one of them is another expression."""
    found = {e.attribute for e in expressions if e.plain and e.attribute is not None}
    return found if all(e.plain for e in expressions) else None


def _equalities(condition: Java, inner: Node, catalyst: Catalyst) -> list[tuple[int, Java]]:
    """(column, literal) of the conjuncts `column = literal` of a condition, the columns as those that `inner` has them from."""
    found = []
    for conjunct in catalyst.conjuncts(condition):
        if kind_of(conjunct) != "EqualTo":
            continue
        for one, other in ((conjunct.left(), conjunct.right()), (conjunct.right(), conjunct.left())):
            column = catalyst.below(inner, catalyst.expression(one))
            if column.plain and column.attribute is not None and kind_of(other) == "Literal":
                found.append((column.attribute, other))
    return found


def _constant_in_one(rows: list[list[Java]], ids: list[int], gid: int, value: Java, distinct: set[int]) -> bool:
    """Whether all projections have a literal as `gid`, just one of them has this `value`, and all `distinct` columns are literals in it."""
    if not distinct <= set(ids) or not all(_is_literal(row[ids.index(gid)]) for row in rows):
        return False
    chosen = [row for row in rows if row[ids.index(gid)].semanticEquals(value)]
    return len(chosen) == 1 and all(_is_literal(chosen[0][ids.index(i)]) for i in distinct)


def _is_literal(java: Java) -> bool:
    return kind_of(java) == "Literal"
