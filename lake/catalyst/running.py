"""A node run on rows of our choosing, by Spark's own operator; rows that are few are brought to the driver as they are inside Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lake import weights
from lake.catalyst.expressions import EXPRESSION, PLAN_EXPRESSION
from lake.catalyst.trees import Trees
from lake.errors import InternalError, QueryError
from lake.nodes import Expression, Node, column_name
from lake.scala import Java, active


class Running(Trees):
    """Plans run in one session."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        plans = self._jvm.org.apache.spark.sql.catalyst.plans.logical
        self._session = spark._jsparkSession
        self._local_relation = plans.LocalRelation
        self._limit_exec = self._jvm.org.apache.spark.sql.execution.LocalLimitExec
        self._expand, self._generate = plans.Expand, plans.Generate
        self._multiply = self._jvm.org.apache.spark.sql.catalyst.expressions.Multiply
        self._of_rows = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows

    def run(self, node: Node, frames: Sequence[DataFrame], values: Mapping[int, Java] | None = None) -> DataFrame:
        """The node's operator on the given rows, one frame a child: columns as of `node.output`, and `w`.

        Weights pass through; where both sides of a join carry them, they are multiplied. `values`: a literal for each
        subquery in the node's expressions, by its expression id.
        """
        carried: list[Java] = []
        plans = [self._bound(frame, carried) for frame in frames]
        top = self.with_children(node.plan, plans, carried)
        for outer in [None, *reversed(node.spine[:-1])]:
            top = top if outer is None else outer.withNewChildren(self.seq([top]))
            top = self._with_values(top, values) if values else top
        return self._named(top, [a.exprId().id() for a in carried])

    def project(self, frame: DataFrame, expressions: Mapping[str, Expression], keep: bool = False) -> DataFrame:
        """The expressions evaluated over the frame's rows, under the given names; `keep`: beside its own columns."""
        carried: list[Java] = []
        plan = self._bound(frame, carried)
        own = [self.alias(a, name) for a, name in zip(self.list(plan.output()), frame.columns, strict=True)] if keep else []
        made = [self.alias(e.java, name) for name, e in expressions.items()]
        return self._frame(self._project(own + made, plan))

    def with_names(self, frame: DataFrame, names: Sequence[str]) -> DataFrame:
        """The frame under other column names; rows on the driver stay as they are."""
        plan = frame._jdf.queryExecution().analyzed()
        if plan.nodeName() != "LocalRelation":
            return frame.toDF(*names)
        return self._frame(self._of_local(plan, names, plan.data()))

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

    def _of_local(self, plan: Java, names: Sequence[str], data: Java) -> Java:
        """Rows on the driver, in a plan's columns under such names. (For a Project over them the optimiser would copy each row.)"""
        columns = [a.newInstance().withName(name) for a, name in zip(self.list(plan.output()), names, strict=True)]
        return self._local_relation(self.seq(columns), data, False, self.none)

    def _named(self, plan: Java, weight_ids: list[int]) -> DataFrame:
        """The plan as a frame: columns by attribute id (each once), the product of the weights as `w`."""
        self._assert_grounded(plan)
        columns: dict[str, Java] = {}
        for attribute in self.list(plan.output()):
            attribute_id = attribute.exprId().id()
            name = weights.WEIGHT if attribute_id in weight_ids else column_name(attribute_id)
            both = name == weights.WEIGHT and name in columns
            columns[name] = self._multiply(columns[name], attribute) if both else columns.get(name, attribute)
        return self._frame(self._project([self.alias(value, name) for name, value in columns.items()], plan))

    def value(self, frame: DataFrame) -> Java:
        """The one value of a frame of one column, as a literal; NULL where there is no row. Raises QueryError for more rows than one."""
        plan = frame._jdf.queryExecution().analyzed()
        data_type = plan.output().head().dataType()
        rows = self._first(frame._jdf.queryExecution(), 2)
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
            if self.is_a(expression, PLAN_EXPRESSION) and expression.exprId().id() in values:
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
        if self.is_a(argument, EXPRESSION):
            return change(argument)
        if self.is_a(argument, "scala.collection.immutable.Seq"):
            return self.seq([self._map_argument(x, change) for x in self.list(argument)])
        if self.is_a(argument, "scala.Some"):
            return self.some(self._map_argument(argument.get(), change))
        return argument

    def _first(self, query: Java, limit: int) -> Java:
        """At least the first rows of each partition, up to a limit, as Spark holds them.

        The limit is put onto the physical plan: one that Spark plans has a counter with a number of its own in the code that is generated
        for it, so that no refresh could use the code of the one before.
        """
        with active(self._jvm, self._session):
            return self._limit_exec(limit, query.executedPlan()).executeCollect()

    def _assert_grounded(self, plan: Java) -> None:
        """No placeholder is left in the plan, nor in a subquery of it (trap 1)."""
        # `plan` is run lazily; a placeholder's rows raise as well, so this is the early and cheap half of the check.
        for leaf in self.list(plan.collectLeaves()):
            name = self.source_of(leaf)
            if name is not None:
                raise InternalError(f"A plan was about to run over the placeholder of {name!r}. Nothing was written.")

    def collected(self, frame: DataFrame, limit: int) -> tuple[DataFrame, int] | None:
        """The frame's rows as a local relation, and their number; None where there are more than `limit`.

        Local rows cost no job to read again, let the optimiser fold what is done to them, and are always broadcast.
        """
        folded = self.folded(frame, limit)
        if folded is not None:
            return folded
        query = frame._jdf.queryExecution()
        rows = self._first(query, limit + 1)
        if len(rows) > limit:
            return None
        data = self._jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(rows)
        return self._frame(self._of_local(query.optimizedPlan(), frame.columns, data)), len(rows)

    def folded(self, frame: DataFrame, limit: int) -> tuple[DataFrame, int] | None:
        """The same where the optimiser knows the rows already; None where a job would have to run for them."""
        query = frame._jdf.queryExecution()
        plan = query.optimizedPlan()
        if plan.nodeName() != "LocalRelation" or plan.data().size() > limit:
            return None
        if query.analyzed().nodeName() != "LocalRelation":  # the optimiser made it, and would again in each plan to come
            frame = self._frame(self._of_local(plan, frame.columns, plan.data()))
        return DataFrame(frame._jdf, self.spark), int(plan.data().size())

    def _frame(self, plan: Java) -> DataFrame:
        return DataFrame(self._of_rows(self._session, plan), self.spark)
