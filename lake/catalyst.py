"""The only user of Spark's internals: query → node tree, node + rows → rows.

Spark analyses and optimises a view's query once, over placeholder relations of the sources' schemas; the optimised logical
plan is the tree. To run a node on rows of our choosing, its children are replaced by plans whose columns carry the ids that the node
refers to, and the new plan becomes a DataFrame: Spark's own operator, with Spark's own semantics, on the rows that we give it.

Rows travel as DataFrames whose columns are named after the attribute they stand for (`c12` for expression id 12), with the
weight `w` beside them where they are weighted (see weights.py). Pinned with Spark 4.2: classic sessions only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType, _parse_datatype_json_string

from lake import weights
from lake.errors import InternalError, QueryError
from lake.nodes import Attribute, Expression, Node, column_name
from lake.scala import Java, Scala

LIMITS = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Tail"})

_PLACEHOLDER = "LAKEJOIN_PLACEHOLDER: the rows of a source were asked for while its view was being defined"

# Rules that would merge subqueries into structs, or spread one LIMIT or rank over several nodes; Spark applies them again
# by itself to each plan that is run.
_EXCLUDED_RULES = (
    "org.apache.spark.sql.catalyst.optimizer.MergeScalarSubqueries",
    "org.apache.spark.sql.catalyst.optimizer.MergeSubplans",
    "org.apache.spark.sql.catalyst.optimizer.LimitPushDown",
    "org.apache.spark.sql.catalyst.optimizer.LimitPushDownThroughWindow",
    "org.apache.spark.sql.catalyst.optimizer.InferWindowGroupLimit",
)
DEFINITION_SETTINGS = {
    "spark.sql.optimizer.excludedRules": ",".join(_EXCLUDED_RULES),
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.optimizer.runtimeFilter.semiJoinReduction.enabled": "false",
    "spark.sql.cbo.enabled": "false",
    "spark.sql.debug.maxToStringFields": "100000",
    "spark.sql.maxPlanStringLength": "100000000",
}


class Catalyst(Scala):
    """Catalyst as seen from one session; every view has a session of its own, cloned from the caller's."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._jvm = cast(Any, spark._jvm)
        self._session = spark._jsparkSession
        super().__init__(self._jvm)
        self._sources: dict[int, str] = {}
        self._sessions: dict[int, Java] = {}  # ids of columns that Spark marks as session windows, and the mark
        expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        plans = self._jvm.org.apache.spark.sql.catalyst.plans.logical
        self._alias_class, self._literal_class, self._cast = expressions.Alias, expressions.Literal, expressions.Cast
        self._expr_id, self._new_id = expressions.ExprId, expressions.NamedExpression.newExprId
        self._project_class, self._local_limit, self._local_relation = plans.Project, plans.LocalLimit, plans.LocalRelation
        self._expand, self._generate, self._aggregate = plans.Expand, plans.Generate, plans.Aggregate
        self._of_rows = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows
        self._empty, self._unmarked = self.seq([]), self.seq([_SESSION])
        self.aggregate_functions = expressions.aggregate
        self._ansi = self._jvm.org.apache.spark.sql.catalyst.expressions.EvalMode.ANSI()
        self._jvm_id = self._new_id().jvmId()

    # -- definitions ------------------------------------------------------------------------------------------------

    def placeholder(self, name: str, schema: StructType) -> DataFrame:
        """A relation of this schema that stands for a source while the query is defined; reading its rows raises."""
        row = self.spark.range(1).select(F.raise_error(F.lit(_PLACEHOLDER)).cast("bigint").alias("x"))
        rdd = row._jdf.queryExecution().toRdd()
        java_schema = self._jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())
        frame = DataFrame(self._session.internalCreateDataFrame(rdd, java_schema, False), self.spark)
        self._sources[frame._jdf.queryExecution().analyzed().rdd().id()] = name
        return frame

    def parse(self, text: str) -> Java:
        """A query's parsed plan; nothing is run. Raises Spark's ParseException, ValueError where it is no query."""
        plan = self._session.sessionState().sqlParser().parsePlan(text)
        for kind in ("Command", "ParsedStatement"):
            if self.is_a(plan, f"org.apache.spark.sql.catalyst.plans.logical.{kind}"):
                raise ValueError(plan.nodeName())
        return plan

    def frame(self, plan: Java) -> DataFrame:
        """A plan as a DataFrame of this session (analysed, not run)."""
        return self._frame(plan)

    def analysed(self, frame: DataFrame) -> Java:
        """A DataFrame's analysed plan."""
        return frame._jdf.queryExecution().analyzed()

    def optimised(self, frame: DataFrame) -> Java:
        """A DataFrame's optimised plan, the root of a view's tree."""
        return frame._jdf.queryExecution().optimizedPlan()

    def census(self, plan: Java, subqueries: bool = True) -> list[tuple[str, Java]]:
        """(class name, object) of every plan node and expression in the plan, with those in its subqueries or without."""
        found: list[tuple[str, Java]] = []
        rest = [plan]
        while rest:
            java = rest.pop()
            found.append((str(java.getClass().getSimpleName()), java))
            rest += self.list(java.children())
            if self.is_a(java, "org.apache.spark.sql.catalyst.plans.QueryPlan"):
                rest += self.list(java.expressions())
                if java.nodeName() == "UnresolvedWith":
                    rest += self.list(java.innerChildren())
            elif subqueries and self.is_a(java, _PLAN_EXPRESSION):
                rest.append(java.plan())
        return found

    def relation_names(self, plan: Java) -> set[str]:
        """The one-part names of relations in a parsed plan (those of CTEs, too)."""
        parts = [self.list(java.multipartIdentifier()) for kind, java in self.census(plan) if kind == "UnresolvedRelation"]
        return {str(names[0]) for names in parts if len(names) == 1}

    def nondeterministic(self, census: Sequence[tuple[str, Java]]) -> list[str]:
        """The names of the functions that are nondeterministic themselves."""
        found = set()
        for _, java in census:
            random = self.is_a(java, _EXPRESSION) and not java.deterministic()
            if random and all(child.deterministic() for child in self.list(java.children())):
                found.add(str(java.prettyName()))
        return sorted(found)

    def normal_form(self, plan: Java) -> str:
        """The plan as text: ids numbered by first appearance, sources by name and the columns that are used of them.

        A column that a source gained since, and that is not used, leaves it as it was.
        """
        names = {str(self.list(leaf.output())[0].exprId().id()): self.source_of(leaf) for leaf in self.leaves(plan) if _is_source(leaf)}
        lines = [re.sub(r"lambda (\w+?)_\d+#", r"lambda \1#", line.lstrip(" :+-")) for line in str(plan.treeString()).splitlines()]
        used = {str(a.exprId().id()) for a in self.list(plan.output())}
        used |= {i for line in lines if not line.startswith("LogicalRDD") for i in re.findall(r"#(\d+)", line)}
        positional = any(line.startswith("Union") for line in lines)
        kept: list[str] = []
        for line in lines:
            if line.startswith("LogicalRDD"):
                columns = re.findall(r"[^\[ ,]+#(\d+)L?", line)
                line = f"source {names.get(columns[0])} " + " ".join(f"#{i}" for i in columns if i in used)
            if positional or not re.fullmatch(r"Project \[[^()]*\]", line) or " AS " in line or not kept:
                kept.append(line)  # another one only leaves out columns
        numbers: dict[str, str] = {}
        return re.sub(r"#(\d+)L?", lambda m: numbers.setdefault(m.group(1), f"#{len(numbers)}"), "\n".join(kept))

    def leaves(self, plan: Java) -> list[Java]:
        """All leaves of a plan, those in subqueries included."""
        return [java for _, java in self.census(plan) if self.is_a(java, _LEAF)]

    def source_of(self, plan: Java) -> str | None:
        """The source whose placeholder this leaf is, if it is one."""
        return self._sources.get(plan.rdd().id()) if plan.nodeName() == "LogicalRDD" else None

    def mark_sessions(self, analysed: Java, optimised: Java) -> None:
        """Remember which columns of the optimised plan Spark marks as session windows; it may have lost the name, not the mark."""
        if "session_window" in str(analysed.toString()):
            named = [java for kind, java in self.census(optimised) if kind in ("AttributeReference", "Alias")]
            self._sessions = {java.exprId().id(): java.metadata() for java in named if java.metadata().contains(_SESSION)}

    def tree(self, plan: Java) -> Node:
        """The node tree of an optimised logical plan."""
        kind, spine = plan.nodeName(), [plan]
        if kind in LIMITS:
            plan, spine = self._limited(plan)
            kind = plan.nodeName() if plan.nodeName() == "Project" else "Limit"
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

    def projection(self, outputs: Sequence[Java], child: Node) -> Node:
        """A Project over a node."""
        plan = self._project(outputs, child.spine[0])
        return Node("Project", (plan,), (child,), self.attributes(plan.output()))

    def most(self, node: Node) -> int:
        """How many rows an ORDER BY ... LIMIT lets through; 0 where it is not just that (an OFFSET, no order)."""
        kinds = [plan.nodeName() for plan in node.spine]
        return int(str(node.spine[0].limitExpr().eval(None))) if kinds == ["GlobalLimit", "LocalLimit", "Sort"] else 0

    def named(self, expression: Expression) -> Java:
        """The expression as an output column: itself where it is one, else under a name of its own."""
        return expression.java if expression.plain else self.alias(expression.java, "key")

    def subquery_plans(self, node: Node) -> list[tuple[Java, Java]]:
        """(expression, plan) for each subquery that hides in the node's expressions (trap 1)."""
        return [pair for plan in node.spine for pair in self.subquery_expressions(plan)]

    def subquery_expressions(self, plan: Java) -> list[tuple[Java, Java]]:
        """(expression, plan) for each subquery in a plan's own expressions."""
        found: list[tuple[Java, Java]] = []
        for expression in self.list(plan.expressions()):
            self._find_subqueries(expression, found)
        return found

    def _find_subqueries(self, expression: Java, found: list[tuple[Java, Java]]) -> None:
        if self.is_a(expression, _PLAN_EXPRESSION):
            found.append((expression, expression.plan()))
        for child in self.list(expression.children()):
            self._find_subqueries(child, found)

    # -- running ----------------------------------------------------------------------------------------------------

    def run(self, node: Node, frames: Sequence[DataFrame], values: Mapping[int, Java] | None = None) -> DataFrame:
        """The node's operator on the given rows, one frame a child: columns as of `node.output`, and `w`.

        Weights pass through; where both sides of a join carry them, they are multiplied. `values`: a literal for each
        subquery in the node's expressions, by its expression id.
        """
        carried: list[Java] = []
        plans = [self._bound(frame, carried) for frame in frames]
        top = self.with_children(node.plan, plans, carried)
        for outer in reversed(node.spine[:-1]):
            top = outer.withNewChildren(self.seq([top]))
        if values:
            top = self._with_values(top, values)
        return self._named(top, [a.exprId().id() for a in carried])

    def project(self, frame: DataFrame, expressions: Mapping[str, Expression], keep: bool = False) -> DataFrame:
        """The expressions evaluated over the frame's rows, under the given names; `keep`: beside its own columns."""
        carried: list[Java] = []
        plan = self._bound(frame, carried)
        own = [self.alias(a, name) for a, name in zip(self.list(plan.output()), frame.columns, strict=True)] if keep else []
        made = [self.alias(e.java, name) for name, e in expressions.items()]
        return self._frame(self._project(own + made, plan))

    def with_children(self, plan: Java, children: list[Java], carried: list[Java]) -> Java:
        """The plan over other children, with the `carried` weight attributes passed through it."""
        match plan.nodeName():
            case "Project":
                return self._project(self.list(plan.projectList()) + carried, children[0])
            case "Expand":
                projections = [self.seq(self.list(p) + carried) for p in self.list(plan.projections())]
                return self._expand(self.seq(projections), self.seq(self.list(plan.output()) + carried), children[0])
            case "Generate":  # its unrequired columns are given by position, which is no longer theirs
                return self._generate(plan.generator(), self.seq([]), plan.outer(), plan.qualifier(), plan.generatorOutput(), children[0])
            case _:
                return plan.withNewChildren(self.seq(children)) if children else plan

    def _bound(self, frame: DataFrame, carried: list[Java]) -> Java:
        """The frame's plan with each `c<id>` column carrying the expression id it stands for."""
        plan = frame._jdf.queryExecution().analyzed()
        aliases = []
        for attribute, name in zip(self.list(plan.output()), frame.columns, strict=True):
            if name == weights.WEIGHT:
                alias = self.alias(attribute, name)
                carried.append(alias.toAttribute())
            else:
                alias = self.alias(attribute, name, int(name[1:]))
            aliases.append(alias)
        return self._project(aliases, plan)

    def _named(self, plan: Java, weight_ids: list[int]) -> DataFrame:
        """The plan as a frame: columns by attribute id (each once), the product of the weights as `w`."""
        self._assert_grounded(plan)
        ids = [a.exprId().id() for a in self.list(plan.output())]
        names = [weights.WEIGHT if i in weight_ids else column_name(i) for i in ids]
        if self._sessions.keys() & set(ids):  # whoever groups by such a column merges sessions: only the view's own aggregate may
            plan = self._project([self.alias(a, name) for a, name in zip(self.list(plan.output()), names, strict=True)], plan)
        if len(set(names)) == len(names):
            return self._frame(plan).toDF(*names)
        apart = [f"{name}_{n}" if name in names[:n] else name for n, name in enumerate(names)]
        frame = self._frame(plan).toDF(*apart)
        product = " * ".join(a for a, name in zip(apart, names, strict=True) if name == weights.WEIGHT)
        return frame.selectExpr(*[n for n in apart if n in names and n != weights.WEIGHT], *([f"{product} AS w"] if product else []))

    def value(self, frame: DataFrame) -> Java:
        """The one value of a frame of one column, as a literal; NULL where there is no row. Raises QueryError for more rows than one."""
        plan = frame._jdf.queryExecution().analyzed()
        data_type = plan.output().head().dataType()
        rows = self._frame(self._local_limit(self.literal(2), plan))._jdf.queryExecution().executedPlan().executeCollect()
        if len(rows) > 1:
            raise QueryError("A scalar subquery of the view gave more than one row. Nothing was written. Mend the data or the query.")
        arguments = self._objects(2)
        if rows:  # from array to array: on its way through Python a long would come back as an int
            row = rows[0].toSeq(self.seq([data_type])).toArray(self._jvm.scala.reflect.ClassTag.AnyRef())
            self._jvm.java.lang.System.arraycopy(row, 0, arguments, 0, 1)
        self._jvm.java.lang.reflect.Array.set(arguments, 1, data_type)
        return self.literal(0).makeCopy(arguments)

    def _with_values(self, plan: Java, values: Mapping[int, Java]) -> Java:
        def fill(expression: Java) -> Java:
            if self.is_a(expression, _PLAN_EXPRESSION) and expression.exprId().id() in values:
                return values[expression.exprId().id()]
            return self.rebuilt(expression, fill)

        return self._map_expressions(plan, fill)

    def _objects(self, length: int) -> Java:
        return self._jvm.java.lang.reflect.Array.newInstance(self._jvm.java.lang.Class.forName("java.lang.Object"), length)

    def _map_expressions(self, plan: Java, change: Callable[[Java], Java]) -> Java:
        """The plan with `change` applied to each expression among its arguments."""
        arguments = self.list(plan.productIterator().toSeq())
        array = self._objects(len(arguments))
        set_element = self._jvm.java.lang.reflect.Array.set
        for i, argument in enumerate(arguments):
            set_element(array, i, self._map_argument(argument, change))
        return plan.makeCopy(array)

    def _map_argument(self, argument: Any, change: Callable[[Java], Java]) -> Any:
        if not hasattr(argument, "getClass"):
            return argument
        if self.is_a(argument, _EXPRESSION):
            return change(argument)
        if self.is_a(argument, "scala.collection.immutable.Seq"):
            return self.seq([self._map_argument(x, change) for x in self.list(argument)])
        if self.is_a(argument, "scala.Some"):
            return self.some(self._map_argument(argument.get(), change))
        return argument

    def _assert_grounded(self, plan: Java) -> None:
        """No placeholder is left in the plan, nor in a subquery of it (trap 1)."""
        # `plan` is run lazily; a placeholder's rows raise as well, so this is the early and cheap half of the check.
        for leaf in self.list(plan.collectLeaves()):
            name = self.source_of(leaf)
            if name is not None:
                raise InternalError(f"A plan was about to run over the placeholder of {name!r}. Nothing was written.")

    # -- expressions ------------------------------------------------------------------------------------------------

    def expression(self, java: Java) -> Expression:
        """Wrap a JVM expression."""
        references = frozenset(a.exprId().id() for a in self.list(java.references().toSeq()))
        inner = java
        while inner.getClass().getSimpleName() == "Cast" and self._widens(inner):
            inner = inner.child()
        plain = inner.getClass().getSimpleName() == "AttributeReference"
        attribute = inner.exprId().id() if plain else None
        return Expression(java, references, attribute, plain and inner is java)

    def substituted(self, expression: Expression, definitions: Mapping[int, Java]) -> Expression:
        """The expression with attributes replaced by the expressions that define them (by attribute id)."""

        def substitute(java: Java) -> Java:
            if java.getClass().getSimpleName() == "AttributeReference":
                return definitions.get(java.exprId().id(), java)
            return self.rebuilt(java, substitute)

        return self.expression(substitute(expression.java))

    def cast(self, java: Java, ddl: str) -> Java:
        """The expression cast to a type, raising where it does not fit."""
        return self._cast(java, self._data_type(ddl), self.none, self._ansi)

    def definitions(self, node: Node) -> dict[int, Java]:
        """Attribute id → the expression over the child that defines it, for a Project's or an Aggregate's output."""
        named = node.plan.projectList() if node.kind == "Project" else node.plan.aggregateExpressions()
        found = {}
        for expression in self.list(named):
            is_alias = expression.getClass().getSimpleName() == "Alias"
            found[expression.exprId().id()] = expression.child() if is_alias else expression
        return found

    def join_type(self, node: Node) -> str:
        """Inner, Cross, LeftOuter, RightOuter, FullOuter, LeftSemi, LeftAnti or ExistenceJoin."""
        return str(node.plan.joinType().toString()).split("(")[0]

    def equi_keys(self, node: Node) -> list[tuple[Expression, Expression, bool]]:
        """(left, right, null-safe) for each conjunct of a join's condition that equates the two sides and can be hashed."""
        left, right = (child.output_ids for child in node.children)
        found = []
        for conjunct in self._conjuncts(node.plan.condition()):
            kind = conjunct.getClass().getSimpleName()
            if kind not in ("EqualTo", "EqualNullSafe"):
                continue
            a, b = self.expression(conjunct.left()), self.expression(conjunct.right())
            if b.references <= left and a.references <= right:
                a, b = b, a
            if a.references and b.references and a.references <= left and b.references <= right and self.hashable(a) and self.hashable(b):
                found.append((a, b, kind == "EqualNullSafe"))
        return found

    def null_aware_keys(self, node: Node) -> list[tuple[Expression, Expression]]:
        """(left, right) for each conjunct `left = right OR (left = right) IS NULL` of a join's condition, as NOT IN has them."""
        left, right = (child.output_ids for child in node.children)
        found = []
        for conjunct in self._conjuncts(node.plan.condition()):
            if conjunct.getClass().getSimpleName() != "Or":
                continue
            equal, null = conjunct.left(), conjunct.right()
            if [j.getClass().getSimpleName() for j in (equal, null)] != ["EqualTo", "IsNull"] or not null.child().semanticEquals(equal):
                continue
            a, b = self.expression(equal.left()), self.expression(equal.right())
            if a.references and b.references and a.references <= left and b.references <= right and self.hashable(a) and self.hashable(b):
                found.append((a, b))
        return found

    def coalesced(self, expression: Expression) -> list[Expression]:
        """What a coalesce takes the first of; empty for another expression."""
        is_coalesce = expression.java.getClass().getSimpleName() == "Coalesce"
        return self.expressions(expression.java.children()) if is_coalesce else []

    def type_of(self, expression: Expression) -> DataType:
        """The expression's type."""
        return _parse_datatype_json_string(expression.java.dataType().json())

    def unexpanded(self, node: Node) -> frozenset[int]:
        """The output ids of an Expand that are the child's own columns in each of its projections."""
        rows = [[self.expression(e) for e in self.list(p)] for p in self.list(node.plan.projections())]
        columns = zip(node.output, *rows, strict=False)
        return frozenset(a.id for a, *values in columns if all(v.plain and v.attribute == a.id for v in values))

    def hashable(self, expression: Expression) -> bool:
        """Whether rows can be looked up by this expression: no map and no VARIANT in its type."""
        text = expression.java.dataType().json()
        return '"map"' not in text and '"variant"' not in text and expression.java.deterministic() and not self.has_subquery(expression)

    def has_subquery(self, expression: Expression) -> bool:
        """Whether a plan hides in the expression, over placeholders (trap 1)."""
        found: list[tuple[Java, Java]] = []
        self._find_subqueries(expression.java, found)
        return bool(found)

    def is_session(self, expression: Expression) -> bool:
        """Whether this is the value of a session_window: sessions merge physically, so it is no key (trap 6)."""
        return any(a.metadata().contains(_SESSION) for a in self.list(expression.java.references().toSeq()))

    def references(self, plan: Java) -> frozenset[int]:
        """The attribute ids that the plan's own expressions read."""
        return frozenset(a.exprId().id() for a in self.list(plan.references().toSeq()))

    def describe(self, node: Node) -> str:
        """One line on a node, as Spark prints it."""
        return str(node.plan.simpleString(80))

    def expressions(self, sequence: Java) -> list[Expression]:
        """Wrap each expression of a Scala sequence."""
        return [self.expression(e) for e in self.list(sequence)]

    def _conjuncts(self, condition: Java) -> list[Java]:
        if condition.isEmpty():
            return []
        found, rest = [], [condition.get()]
        while rest:
            expression = rest.pop()
            if expression.getClass().getSimpleName() == "And":
                rest += [expression.right(), expression.left()]
            else:
                found.append(expression)
        return found

    def rebuilt(self, java: Java, change: Callable[[Java], Java]) -> Java:
        """The expression with `change` applied to each of its children."""
        children = self.list(java.children())
        return java.withNewChildren(self.seq([change(c) for c in children])) if children else java

    def _widens(self, cast: Java) -> bool:
        """Whether the cast keeps values and their order: from a whole number to a wider one or to a decimal that holds it."""
        narrow, wide = cast.child().dataType(), cast.dataType()
        return (
            str(narrow.typeName()) in _WHOLE
            and (str(wide.typeName()) in _WHOLE or str(wide.typeName()).startswith("decimal"))
            and bool(self._cast.canUpCast(narrow, wide))
        )

    # -- rows on the driver -------------------------------------------------------------------------------------------

    def collected(self, frame: DataFrame, limit: int) -> tuple[DataFrame, int] | None:
        """The frame's rows as a local relation, and their number; None where there are more than `limit`.

        Local rows cost no job to read again, let the optimiser fold what is done to them, and are always broadcast.
        """
        analysed = frame._jdf.queryExecution().analyzed()
        limited = self._frame(self._local_limit(self.literal(limit + 1), analysed))._jdf.queryExecution()
        plan = limited.optimizedPlan()
        if plan.nodeName() == "LocalRelation" and plan.data().size() <= limit:
            return DataFrame(frame._jdf, self.spark), int(plan.data().size())
        rows = limited.executedPlan().executeCollect()
        if len(rows) > limit:
            return None
        data = self._jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(rows)
        output = self.seq([a.newInstance() for a in self.list(plan.output())])
        local = self._local_relation(output, data, False, self.none)
        return self._frame(local).toDF(*frame.columns), len(rows)

    def literal(self, value: int) -> Java:
        """A whole number as an expression."""
        return self._literal_class(value, self._data_type("int"))

    def new_id(self) -> Java:
        """An expression id that no other expression has."""
        return self._new_id()

    def _data_type(self, ddl: str) -> Java:
        return self._jvm.org.apache.spark.sql.types.DataType.fromDDL(ddl)

    # -- records ----------------------------------------------------------------------------------------------------

    def attributes(self, sequence: Java) -> tuple[Attribute, ...]:
        """Wrap each attribute of a Scala sequence."""
        return tuple(Attribute(a.exprId().id(), a.name(), a) for a in self.list(sequence))

    def schema_of(self, plan: Java) -> StructType:
        """The plan's schema."""
        schema = _parse_datatype_json_string(plan.schema().json())
        assert isinstance(schema, StructType)
        return schema

    def _frame(self, plan: Java) -> DataFrame:
        return DataFrame(self._of_rows(self._session, plan), self.spark)

    def _project(self, expressions: Sequence[Java], child: Java) -> Java:
        return self._project_class(self.seq(expressions), child)

    def alias(self, expression: Java, name: str, attribute_id: int | None = None) -> Java:
        """The expression under a name, with an id of its own or a given one; only the latter may be marked as a session window."""
        expr_id = self._new_id() if attribute_id is None else self._expr_id(attribute_id, self._jvm_id)
        mark = self.some(self._sessions[attribute_id]) if attribute_id in self._sessions else self.none
        return self._alias_class(expression, name, expr_id, self._empty, mark, self._unmarked)


def _is_source(plan: Java) -> bool:
    return bool(plan.nodeName() == "LogicalRDD")


_EXPRESSION = "org.apache.spark.sql.catalyst.expressions.Expression"
_LEAF = "org.apache.spark.sql.catalyst.plans.logical.LeafNode"
_SESSION = "spark.sessionWindow"
_PLAN_EXPRESSION = "org.apache.spark.sql.catalyst.expressions.PlanExpression"
_WHOLE = frozenset({"byte", "short", "integer", "long"})
