"""Makes node trees of Catalyst's logical plans, tells what each node does with its rows, and changes trees."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from lake.catalyst.census import Census, Kind
from lake.catalyst.expressions import Expressions
from lake.catalyst.nodes import Expression, Node
from lake.spark.jvm.gateway import Java, kind_of

LIMITS = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Tail"})
_CHAINS = ("Add", "Multiply")
_FIRST = {"EqualTo": "1", "LessThanOrEqual": "1", "LessThan": "2"}


class Trees(Expressions):
    """Plans as seen from one session."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        plans = self._jvm.org.apache.spark.sql.catalyst.plans.logical
        self._project_class, self._filter, self._aggregate, self._window = plans.Project, plans.Filter, plans.Aggregate, plans.Window
        self._sort = plans.Sort
        self._sources: dict[int, str] = {}  # placeholders, by the id of their RDD

    def tree(self, plan: Java) -> Node:
        """The node tree of an optimised logical plan."""
        kind, spine = plan.nodeName(), [plan]
        if kind in LIMITS:
            plan, spine = self._limited(plan)
            kind = plan.nodeName() if plan.nodeName() == "Project" else "Limit"
        elif kind == "Window" and plan.orderSpec().isEmpty() and self._numbers(plan):
            plan = self._ordered(plan)
            kind, spine = "Project", [plan]
        children = tuple(self.tree(child) for child in self.list(spine[-1].children()))
        return Node(kind, tuple(spine), children, self.attributes(plan.output()), self.source_of(plan))

    def _limited(self, plan: Java) -> tuple[Java, list[Java]]:
        """A LIMIT with the sort below it as one spine. Columns that it is sorted by and that are projected away in between are
        projected away above: (Project, [Project]) over the LIMIT."""
        limits = [plan]
        while limits[-1].children().head().nodeName() in LIMITS:
            limits.append(limits[-1].children().head())
        below = limits[-1].children().head()
        if below.nodeName() == "Sort":
            return plan, [*limits, below]
        if below.nodeName() == "Project" and below.child().nodeName() == "Sort" and not self.subquery_expressions(below):
            inner = below.child()
            for limit in reversed(limits):
                inner = limit.withNewChildren(self.seq([inner]))
            outer = below.withNewChildren(self.seq([inner]))
            return outer, [outer]
        return plan, limits

    def _numbers(self, window: Java) -> list[Java]:
        """The row numbers among a window's expressions."""
        named = self.list(window.windowExpressions())
        return [java for java in named if kind_of(java.child().windowFunction()) == "RowNumber"]

    def _ordered(self, window: Java) -> Java:
        """A Project over a window that numbers rows in the order of the Sort below it, or in any.

        Spark makes a LATERAL subquery's ORDER BY ... LIMIT a row number, and forgets its order where a Project lies in between: it depends
        on the order in which rows arrive, and refuses the plan when it is analysed again.
        """
        below, child = window.child(), window.child()
        while below.nodeName() == "Project":
            below = below.child()
        by = self.list(below.order()) if below.nodeName() == "Sort" else [self._ascending(e) for e in self.list(window.partitionSpec())]
        if below.nodeName() == "Sort":
            had = {a.exprId().id() for a in self.list(child.output())}
            lost = [a for order in by for a in self.list(order.references().toSeq()) if a.exprId().id() not in had]
            child = self._passing(child, list({a.exprId().id(): a for a in lost}.values()))
        expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        named = []
        for alias in self.list(window.windowExpressions()):
            function, spec = alias.child().windowFunction(), alias.child().windowSpec()
            again = expressions.WindowSpecDefinition(spec.partitionSpec(), self.seq(by), spec.frameSpecification())
            named.append(alias.withNewChildren(self.seq([expressions.WindowExpression(function, again)])))
        ordered = self._window(self.seq(named), window.partitionSpec(), self.seq(by), child, window.hint())
        return self._project(self.list(window.output()), ordered)

    def _ascending(self, expression: Java) -> Java:
        expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        up = getattr(getattr(expressions, "Ascending$"), "MODULE$")
        return expressions.SortOrder(expression, up, up.defaultNullOrdering(), self.seq([]))

    def _passing(self, plan: Java, more: Sequence[Java]) -> Java:
        """Projects over a Sort, with some of its columns among theirs; the Sort itself left out."""
        if plan.nodeName() == "Sort":
            return plan.child()
        return self._project([*self.list(plan.projectList()), *more], self._passing(plan.child(), more))

    def over(self, node: Node, children: Sequence[Node], extra: Sequence[Java] = ()) -> Node:
        """The node over other children, with more output columns where it is a Project or an Aggregate."""
        plan = node.plan.withNewChildren(self.seq([child.spine[0] for child in children])) if children else node.plan
        if extra and node.kind == "Project":
            plan = self._project(self.list(plan.projectList()) + list(extra), plan.child())
        elif extra:
            named = self.seq(self.list(plan.aggregateExpressions()) + list(extra))
            plan = self._aggregate(plan.groupingExpressions(), named, plan.child(), plan.hint())
        spine = [plan]
        for outer in reversed(node.spine[:-1]):
            spine.insert(0, outer.withNewChildren(self.seq([spine[0]])))
        return replace(node, spine=tuple(spine), children=tuple(children), output=self.attributes(spine[0].output()))

    def aggregate(self, node: Node, outputs: Sequence[Java]) -> Node:
        """An aggregate of the same groups with other output columns."""
        plan = self._aggregate(node.plan.groupingExpressions(), self.seq(outputs), node.plan.child(), node.plan.hint())
        return replace(node, spine=(plan,), output=self.attributes(plan.output()))

    def grouped(self, node: Node, groups: Sequence[Java], outputs: Sequence[Java]) -> Node:
        """An aggregate of other groups, with other output columns, over the children of the node."""
        (child,) = node.children
        plan = self._aggregate(self.seq(groups), self.seq(outputs), child.spine[0], node.plan.hint())
        return replace(node, spine=(plan,), output=self.attributes(plan.output()))

    def window(self, window: Java, named: Sequence[Java]) -> Java:
        """A window of the same partitions and order with other expressions."""
        return self._window(self.seq(named), window.partitionSpec(), window.orderSpec(), window.child(), window.hint())

    def projection(self, outputs: Sequence[Java], child: Node) -> Node:
        """A Project over a node."""
        plan = self._project(outputs, child.spine[0])
        return Node("Project", (plan,), (child,), self.attributes(plan.output()))

    def most(self, node: Node) -> int:
        """How many rows an ORDER BY ... LIMIT lets through; 0 where it is not just that (an OFFSET, no order)."""
        kinds = [plan.nodeName() for plan in node.spine]
        return int(str(node.spine[0].limitExpr().eval(None))) if kinds == ["GlobalLimit", "LocalLimit", "Sort"] else 0

    def subquery_plans(self, node: Node) -> list[tuple[Java, Java]]:
        """(expression, plan) for each subquery that hides in the node's expressions (trap 1)."""
        return [pair for plan in node.spine for pair in self.subquery_expressions(plan)]

    def subquery_trees(self, node: Node) -> dict[int, Node]:
        """Expression id → tree, for each subquery in the node's expressions."""
        return {int(expression.exprId().id()): self.tree(plan) for expression, plan in self.subquery_plans(node)}

    def subquery_expressions(self, plan: Java) -> list[tuple[Java, Java]]:
        """(expression, plan) for each subquery in a plan's own expressions."""
        return self.subqueries(plan.expressions())

    def definitions(self, node: Node) -> dict[int, Java]:
        """Attribute id → the expression over the child that defines it, for a Project's or an Aggregate's output."""
        return self.definitions_of(node.plan.projectList() if node.kind == "Project" else node.plan.aggregateExpressions())

    def definitions_of(self, named: Java) -> dict[int, Java]:
        """The same for a sequence of named expressions."""
        return {i: self._held(*java) for i, java in pickle.loads(self._trees.definitions(named))}

    def below(self, node: Node, expression: Expression) -> Expression:
        """An expression over the output of a Project or an Aggregate as one over its child."""
        return self.substituted(expression, self.definitions(node))

    def columns_of(self, plan: Java, columns: Sequence[tuple[str, int]]) -> Java:
        """A Project of some columns of a plan, as (name, attribute id); plain as those of a view's table: no CHAR, which Spark pads."""
        java = {a.id: a.java for a in self.attributes(plan.output())}
        return self._project([self.plain(java[attribute], name) for name, attribute in columns], plan)

    def in_one_form(self, plan: Java) -> Java:
        """An optimised plan with the columns of each aggregate in one order, below a projection to its own columns.

        The optimiser leaves the order as it finds it, and a projection that only renames as well.
        """
        columns = self.list(plan.output())
        while plan.nodeName() == "Project":
            definitions = self.definitions_of(plan.projectList())
            inner = [definitions[c.exprId().id()] for c in columns]
            if not all(kind_of(java) == "AttributeReference" for java in inner):
                break
            columns, plan = inner, plan.child()
        return self._project([self.alias(java, "column") for java in columns], self._sorted(plan))

    def chains(self, java: Java) -> list[str]:
        """The sums and products in a plan or an expression, as they are written. Spark takes them for the same in any order, but of
        floating-point numbers the order changes the last digits, and of whole numbers what overflows."""
        return sorted(str(found.sql()) for _, found in self.census(java).of(_CHAINS))

    def _sorted(self, plan: Java) -> Java:
        children = self.list(plan.children())
        plan = plan.withNewChildren(self.seq([self._sorted(child) for child in children])) if children else plan
        if plan.nodeName() != "Aggregate":
            return plan
        named = sorted(self.list(plan.aggregateExpressions()), key=lambda java: str(self._unnamed(java).sql()))
        return self._aggregate(plan.groupingExpressions(), self.seq(named), plan.child(), plan.hint())

    def _unnamed(self, java: Java) -> Java:
        return java.child() if kind_of(java) == "Alias" else java

    def filtered(self, plan: Java, condition: Java) -> Java:
        """The rows of a plan that fulfil a condition over its columns."""
        return self._filter(condition, plan)

    def sorting(self, node: Node) -> Node:
        """The order in which a LIMIT, or ranks of all rows, take the rows of their child, as a sort of these."""
        plan, (child,) = node.plan, node.children
        if plan.nodeName() != "Sort":
            plan = self._sort(plan.orderSpec(), True, plan.child(), self.none)
        return Node("Sort", (plan,), node.children, child.output)

    def grouping_keys(self, node: Node) -> list[Expression]:
        """The expressions by which an aggregate groups."""
        return self.expressions(node.plan.groupingExpressions())

    def partition_keys(self, node: Node) -> list[Expression]:
        """The expressions by which a window is partitioned."""
        return self.expressions(node.plan.partitionSpec())

    def join_type(self, node: Node) -> str:
        """Inner, Cross, LeftOuter, RightOuter, FullOuter, LeftSemi, LeftAnti, ExistenceJoin, or LeftSingle: a left join with one match at
        the most, of a correlated subquery."""
        return str(node.plan.joinType().toString()).split("(")[0]

    def equi_keys(self, node: Node) -> list[tuple[Expression, Expression, bool]]:
        """(left, right, null-safe) for each conjunct of a join's condition that equates the two sides and can be hashed."""
        found = []
        for conjunct in self._conjuncts(node.plan.condition()):
            kind = kind_of(conjunct)
            pair = self._sides(node, conjunct) if kind in ("EqualTo", "EqualNullSafe") else None
            if pair is not None:
                found.append((*pair, kind == "EqualNullSafe"))
        return found

    def null_aware_keys(self, node: Node) -> list[tuple[Expression, Expression]]:
        """(left, right) for each conjunct `left = right OR (left = right) IS NULL` of a join's condition, as NOT IN has them."""
        found = []
        for conjunct in self._conjuncts(node.plan.condition()):
            if kind_of(conjunct) != "Or":
                continue
            equal, null = conjunct.left(), conjunct.right()
            if [kind_of(j) for j in (equal, null)] != ["EqualTo", "IsNull"] or not null.child().semanticEquals(equal):
                continue
            pair = self._sides(node, equal)
            if pair is not None:
                found.append(pair)
        return found

    def _sides(self, node: Node, equal: Java) -> tuple[Expression, Expression] | None:
        """(left, right) of an equality between a join's two sides, whichever way round it is written; None where it is another one, or
        can't be hashed."""
        left, right = (child.output_ids for child in node.children)
        a, b = self.expression(equal.left()), self.expression(equal.right())
        if b.references <= left and a.references <= right:
            a, b = b, a
        apart = a.references and b.references and a.references <= left and b.references <= right
        return (a, b) if apart and self.hashable(a) and self.hashable(b) else None

    def _conjuncts(self, condition: Java) -> list[Java]:
        return [] if condition.isEmpty() else self.conjuncts(condition.get())

    def conjuncts(self, condition: Java) -> list[Java]:
        """The conditions that all must hold for this one to hold."""
        found, rest = [], [condition]
        while rest:
            expression = rest.pop()
            if kind_of(expression) == "And":
                rest += reversed(self.list(expression.children()))
            else:
                found.append(expression)
        return found

    def one_of_each(self, node: Node) -> Node | None:
        """The Window below a Filter that lets through one row of each of its partitions: that whose row number is 1; else None."""
        window = node.children[0]
        if window.kind == "Project" and window.children[0].kind == "Window":
            window = window.children[0]
        if window.kind != "Window":
            return None
        numbers = {alias.exprId().id() for alias in self._numbers(window.plan)}
        found = [c for c in self._conjuncts(self.some(node.plan.condition())) if kind_of(c) in _FIRST]
        tested = [(_FIRST[kind_of(c)], self.expression(c.left()), str(c.right().toString())) for c in found]
        return window if any(e.plain and e.attribute in numbers and value == wanted for wanted, e, value in tested) else None

    def unexpanded(self, node: Node) -> frozenset[int]:
        """The output ids of an Expand that are the child's own columns in each of its projections."""
        rows = [[self.expression(e) for e in self.list(p)] for p in self.list(node.plan.projections())]
        columns = zip(node.output, *rows, strict=False)
        return frozenset(a.id for a, *values in columns if all(v.plain and v.attribute == a.id for v in values))

    def references(self, node: Node) -> frozenset[int]:
        """The attribute ids that the node's own expressions read."""
        return frozenset(i for plan in node.spine for i in pickle.loads(self._trees.references(plan)))

    def describe(self, node: Node) -> str:
        """One line on a node, as Spark prints it."""
        return str(node.plan.simpleString(80))

    def source_of(self, plan: Java) -> str | None:
        """The source whose placeholder this leaf is, if it is one."""
        return self._sources.get(plan.rdd().id()) if plan.nodeName() == "LogicalRDD" else None

    def census(self, plan: Java, subqueries: bool = True, without: Sequence[Java] = ()) -> Census:
        """Every node and expression in a plan or an expression, or in each of a sequence of these, with those in their subqueries or not;
        `without`: expressions to leave out, with all that they contain."""
        found = self._trees.census(plan, subqueries, self.java_list(self.seq(without)) if without else None)
        return Census(found, tuple(Kind(*kind) for kind in pickle.loads(found.kinds())))

    def _project(self, expressions: Sequence[Java], child: Java) -> Java:
        return self._project_class(self.seq(expressions), child)
