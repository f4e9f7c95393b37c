"""An aggregate over all rows with DISTINCT values of one expression, in two steps, so that both are incremental:

    count(DISTINCT x), sum(y)   →   count(x), sum(s)  over  x, sum(y) AS s by x

The inner aggregate has each value once, so what was DISTINCT is not any more. Its groups are refreshed by affected keys; the outer one
can be added up (aggregate_split.py). Which functions can stand beside DISTINCT ones: counts, sums and averages of whole numbers and short
decimals, minima and maxima. Several DISTINCT expressions are rewritten by Spark (distinct_rewrite.py).

    avg(y) of whole numbers   →   sum(s) / sum(n)  over  sum(y) AS s, count(y) AS n by x

which is what Spark gives while the magnitudes add up to less than 2^53; from there on it raises (guards.py).
"""

from __future__ import annotations

from dataclasses import replace

from lake.catalyst import Catalyst
from lake.catalyst.guards import unless_too_large
from lake.catalyst.nodes import Expression, Node
from lake.catalyst.sums import WHOLE, average_of, like, tries, type_name
from lake.spark.jvm.gateway import Java, kind_of
from lake.spark.zset import is_bitwise

_OF_VALUES = frozenset({"Count", "Sum", "Average", "Min", "Max"})
_MOST_DIGITS = 18
"""Of a decimal whose sums are added up: Spark gives a sum of sums 20 digits more, and has 38."""


def in_two_steps(node: Node, catalyst: Catalyst, raising: bool = False) -> Node:
    """The same rows by two aggregates; the same node where it is another one, or can't be done. `raising`: averages of whole numbers may
    raise an error where they depend on the order of rows; without, they are not done in steps."""
    if node.kind != "Aggregate" or node.measures or catalyst.grouping_keys(node) or catalyst.subquery_plans(node):
        return node
    functions = [java for _, java in catalyst.census(node.plan.aggregateExpressions(), subqueries=False).of(["AggregateExpression"])]
    distinct = [java for java in functions if java.isDistinct()]
    if not distinct or not all(_has_steps(java, raising) for java in functions if not java.isDistinct()):
        return node
    value = catalyst.expression(distinct[0].aggregateFunction().children().head())
    grouped = catalyst.hashable(value) and is_bitwise(catalyst.type_of(value)) and not catalyst.is_session(value)
    if not grouped or not all(_is_of(java, value.java, catalyst) for java in distinct):
        return node
    return _Steps(node, catalyst, value).node()


def _is_of(aggregate: Java, value: Java, catalyst: Catalyst) -> bool:
    """Whether an aggregate of DISTINCT values is one of this expression's, of all rows."""
    function = aggregate.aggregateFunction()
    children = catalyst.list(function.children())
    same = len(children) == 1 and children[0].semanticEquals(value)
    return kind_of(function) in _OF_VALUES and same and aggregate.filter().isEmpty()


def _has_steps(aggregate: Java, raising: bool) -> bool:
    """Whether what a function gives for each value can be made one for all."""
    function = aggregate.aggregateFunction()
    kind = kind_of(function)
    if kind in ("Sum", "Average"):
        may = raising or kind == "Sum" or type_name(function.child()) not in WHOLE
        return may and _has_few_digits(function.child()) and not tries(function)
    return kind in ("Count", "Min", "Max")


class _Steps:
    def __init__(self, node: Node, catalyst: Catalyst, value: Expression) -> None:
        self.original, self.catalyst, self.package = node, catalyst, catalyst.aggregate_functions
        self.value, self.named = value.java, catalyst.named(value)
        self.inner: list[Java] = []
        self.raises = False

    def node(self) -> Node:
        catalyst, plan = self.catalyst, self.original.plan
        outputs = [self.replaced(java) for java in catalyst.list(plan.aggregateExpressions())]
        inner = catalyst.grouped(self.original, [self.value], [self.named, *self.inner])
        outer = replace(self.original, children=(inner,))
        return replace(catalyst.grouped(outer, [], outputs), guarded=self.raises)

    def replaced(self, java: Java) -> Java:
        """The expression with each aggregate in it as one over the inner step."""
        if kind_of(java) != "AggregateExpression":
            return self.catalyst.rebuilt(java, self.replaced)
        function = java.aggregateFunction()
        if java.isDistinct():
            return self._over(java, function.withNewChildren(self.catalyst.seq([self.named.toAttribute()])))
        if kind_of(function) == "Average":
            return self._average(java, function)
        below = self._below(java)
        if kind_of(function) in ("Min", "Max"):
            return self._over(java, function.withNewChildren(self.catalyst.seq([below])))
        total = self._over(java, self.package.Sum(below))
        if kind_of(function) == "Count":
            return self.catalyst.made("coalesce(n, 0L)", n=total)
        return self.catalyst.cast(total, str(java.dataType().sql()))

    def _average(self, aggregate: Java, function: Java) -> Java:
        """Of decimals by Spark's own expression over their sum and count, of whole numbers by a division of these."""
        catalyst, child = self.catalyst, function.child()
        of_decimals = type_name(child) not in WHOLE
        summed = child if of_decimals else catalyst.cast(child, "decimal(20,0)")
        parts = {"total": self.package.Sum(summed), "n": self.package.Count(catalyst.seq([child]))}
        parts |= {} if of_decimals else {"magnitude": self.package.Sum(catalyst.absolute(summed))}
        found = {name: self._total(aggregate, part) for name, part in parts.items()}
        if not of_decimals:
            self.raises = True
            return catalyst.made(unless_too_large("CAST(total AS DOUBLE) / nullif(CAST(n AS DOUBLE), 0D)"), **found)
        of_sum = str(catalyst.list(function.aggBufferAttributes())[0].dataType().sql())
        return average_of(function, [catalyst.cast(found["total"], of_sum), catalyst.made("coalesce(n, 0L)", n=found["n"])], catalyst)

    def _total(self, aggregate: Java, function: Java) -> Java:
        """The sum, over all values, of what a function gives for each, under the same FILTER as an aggregate."""
        return self._over(aggregate, self.package.Sum(self._below(like(aggregate, function, self.catalyst))))

    def _below(self, aggregate: Java) -> Java:
        """A column of the inner step with an aggregate of each group."""
        alias = self.catalyst.alias(aggregate, "step")
        self.inner.append(alias)
        return alias.toAttribute()

    def _over(self, aggregate: Java, function: Java) -> Java:
        """A function over the inner step, of all its rows."""
        return aggregate.copy(function, aggregate.mode(), False, self.catalyst.none, self.catalyst.new_id())


def _has_few_digits(java: Java) -> bool:
    kind = type_name(java)
    return kind in WHOLE or (kind.startswith("decimal") and int(java.dataType().precision()) <= _MOST_DIGITS)
