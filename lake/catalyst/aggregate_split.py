"""An aggregate as columns that can be added up, and a projection over them that gives the query's own.

    sum(x), avg(x), count(y) by g   →   project(sum / n, ...)  over  count(*), sum(x), count(x), count(y) by g

Which aggregates can: counts, sums and averages of whole numbers and decimals, min and max, without DISTINCT. An average of
decimals is evaluated from its sum and count by Spark's own expression; one of whole numbers is stored beside its sum and count
(guards.py). See relations/additive.py for the rule (trap 10).
"""

from __future__ import annotations

from dataclasses import replace

from lake.catalyst import Catalyst
from lake.catalyst.determinism import anywhere
from lake.catalyst.distinct_steps import in_two_steps
from lake.catalyst.guards import unless_too_large
from lake.catalyst.nodes import Measure, Node
from lake.catalyst.stamp_names import name_in_stamp
from lake.catalyst.sums import WHOLE, average_of, like, tries, type_name
from lake.spark.jvm.gateway import Java, kind_of

_COMPARED = WHOLE | {"string", "date", "timestamp", "timestamp_ntz", "boolean"}


def stored(node: Node, catalyst: Catalyst) -> Node:
    """The tree with its root, or the operator under projections, prepared to be refreshed from the stored rows: an aggregate is split
    in two, an ORDER BY ... LIMIT is marked. The same tree where it is neither, or can't be."""
    if catalyst.subquery_plans(node):
        return node
    if node.kind in ("Project", "Sort"):
        child = stored(node.children[0], catalyst)
        return node if child is node.children[0] else catalyst.over(node, [child])
    if not node.children or anywhere(node.children[0], catalyst):
        return node
    if node.kind == "Limit":
        most = catalyst.most(node)
        return replace(node, most=most, margin=name_in_stamp(node, node.plan, catalyst) if most else "")
    return _split_in_steps(node, catalyst) if node.kind == "Aggregate" else node


def total(node: Node, catalyst: Catalyst, raising: bool = True) -> Node:
    """An aggregate over all rows, anywhere in a query, split so that the stamp can keep its row; the same node where it is another one, or
    can't be. `raising`: averages of whole numbers raise an error where they depend on the order of rows (guards.py)."""
    if node.kind != "Aggregate" or node.measures or catalyst.grouping_keys(node):
        return node
    if catalyst.subquery_plans(node) or anywhere(node.children[0], catalyst):
        return node
    project = _split_in_steps(node, catalyst, raising)
    if project is node:
        return node
    (below,) = project.children
    below = replace(below, total=name_in_stamp(below, below.plan, catalyst))
    return _raising(project, below, catalyst) if raising else replace(project, children=(below,))


def _raising(project: Node, below: Node, catalyst: Catalyst) -> Node:
    """The projection over a split aggregate, in which averages of whole numbers raise an error where they may have been rounded."""
    columns = {a.id: a.java for a in below.output}
    guarded = {
        m.id: catalyst.made(unless_too_large("value"), magnitude=columns[m.parts[1]], value=columns[m.id])
        for m in below.measures
        if m.parts is not None
    }
    outputs = [catalyst.substituted(e, guarded).java for e in catalyst.expressions(project.plan.projectList())]
    return replace(catalyst.projection(outputs, below), guarded=project.guarded or bool(guarded))


def _split_in_steps(node: Node, catalyst: Catalyst, raising: bool = False) -> Node:
    whole = in_two_steps(node, catalyst, raising)
    found = split(whole, catalyst)
    return node if found is whole else replace(found, guarded=whole.guarded)


def split(node: Node, catalyst: Catalyst) -> Node:
    """An aggregate split in two; the same node where it can't be added up."""
    groups = catalyst.expressions(node.plan.groupingExpressions())
    if not all(g.plain and catalyst.hashable(g) and not catalyst.is_session(g) for g in groups):
        return node
    try:
        return _Split(node, catalyst).node()
    except _UnsupportedError:
        return node


def of_distinct(node: Node, catalyst: Catalyst) -> bool:
    """Whether a function of an aggregate is one of DISTINCT values."""
    found = catalyst.census(node.plan.aggregateExpressions(), subqueries=False).of(["AggregateExpression"])
    (child,) = node.children
    return any(each.kind == "Expand" for each in (child, *child.children)) or any(java.isDistinct() for _, java in found)


class _UnsupportedError(Exception):
    """An aggregate function that can't be added up."""


class _Split:
    def __init__(self, node: Node, catalyst: Catalyst) -> None:
        self.original, self.catalyst = node, catalyst
        self.package = catalyst.aggregate_functions
        self.aliases: list[tuple[Java, Java]] = []  # (aggregate expression, its output)
        self.measures: list[Measure] = []

    def node(self) -> Node:
        plan, catalyst = self.original.plan, self.catalyst
        self.rows()
        outputs = [self.replaced(e) for e in catalyst.list(plan.aggregateExpressions())]
        named = [*catalyst.list(plan.groupingExpressions()), *[alias for _, alias in self.aliases]]
        below = catalyst.aggregate(self.original, named)
        return catalyst.projection(outputs, replace(below, measures=tuple(self.measures)))

    def replaced(self, java: Java) -> Java:
        """The expression with each aggregate in it replaced by what it is made of."""
        if kind_of(java) == "AggregateExpression":
            return self.value(java)
        return self.catalyst.rebuilt(java, self.replaced)

    def value(self, aggregate: Java) -> Java:
        function = aggregate.aggregateFunction()
        kind = kind_of(function)
        if aggregate.isDistinct() or tries(function):
            raise _UnsupportedError
        match kind:
            case "Count":
                plain = aggregate.filter().isEmpty() and all(
                    c.foldable() and not c.nullable() for c in self.catalyst.list(function.children())
                )
                return self.rows() if plain else self.measure("count", aggregate)
            case "Sum" if _exact(function.child()):
                return self.sum(aggregate, function.child(), aggregate)
            case "Average" if type_name(function.child()) in WHOLE:
                return self.average_of_whole_numbers(aggregate, function.child())
            case "Average" if _exact(function.child()):
                return self.average(aggregate, function)
            case "Min" | "Max" if type_name(function.child()) in _COMPARED or type_name(function.child()).startswith("decimal"):
                return self.measure(kind.lower(), aggregate)
            case _:
                raise _UnsupportedError

    def average(self, aggregate: Java, function: Java) -> Java:
        """Of decimals: by Spark's own expression, from their sum and count."""
        child = function.child()
        total = self.sum(aggregate, child, like(aggregate, self.package.Sum(child), self.catalyst))
        buffers = self.catalyst.list(function.aggBufferAttributes())
        values = [total, self.count(aggregate, child)]
        if [v.dataType().json() for v in values] != [b.dataType().json() for b in buffers]:
            raise _UnsupportedError
        return average_of(function, values, self.catalyst)

    def average_of_whole_numbers(self, aggregate: Java, child: Java) -> Java:
        """Itself, with what it is recomputed from while the sum of magnitudes is at most 2^53, and that sum."""
        whole = self.catalyst.cast(child, "decimal(20,0)")
        sums = [self.package.Sum(of) for of in (whole, self.catalyst.absolute(whole))]
        parts = [self.sum(aggregate, child, like(aggregate, function, self.catalyst)) for function in sums]
        count = int(self.count(aggregate, child).exprId().id())
        total, magnitude = (int(part.exprId().id()) for part in parts)
        return self.measure("average", aggregate, count, (total, magnitude))

    def sum(self, aggregate: Java, child: Java, summed: Java) -> Java:
        count = int(self.count(aggregate, child).exprId().id())
        return self.measure("sum", summed, count)

    def count(self, aggregate: Java, child: Java) -> Java:
        return self.measure("count", like(aggregate, self.package.Count(self.catalyst.seq([child])), self.catalyst))

    def rows(self) -> Java:
        one = self.catalyst.literal(1)
        return self.measure("rows", self.package.Count(self.catalyst.seq([one])).toAggregateExpression())

    def measure(self, kind: str, aggregate: Java, count: int | None = None, parts: tuple[int, int] | None = None) -> Java:
        """The output column of an aggregate, one for equal ones."""
        for known, alias in self.aliases:
            if known.semanticEquals(aggregate):
                return alias.toAttribute()
        alias = self.catalyst.alias(aggregate, kind)
        self.aliases.append((aggregate, alias))
        data_type = aggregate.dataType()
        scale = int(data_type.scale()) if type_name(aggregate).startswith("decimal") else 0
        self.measures.append(Measure(int(alias.exprId().id()), kind, str(data_type.sql()), scale, count, parts))
        return alias.toAttribute()


def _exact(java: Java) -> bool:
    return type_name(java) in WHOLE or type_name(java).startswith("decimal")
