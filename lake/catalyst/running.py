"""Runs a node on given rows, by Spark's own operator; brings few rows to the driver as they are inside Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lake.catalyst.expressions import EXPRESSION, PLAN_EXPRESSION
from lake.catalyst.nodes import Expression, Literal, Node
from lake.catalyst.trees import Trees
from lake.errors import InternalError, QueryError
from lake.spark.jvm.gateway import Java
from lake.spark.local_rows import values_of


class Running(Trees):
    """Plans run in one session."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._session, self._normal = spark._jsparkSession, self._jvm.own_normal
        self._plans, self._steps = self._jvm.own_plans, self._jvm.own_steps
        self._of_rows = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows

    def run(self, node: Node, frames: Sequence[DataFrame], values: Mapping[int, Literal] | None = None) -> DataFrame:
        """The node's operator on the given rows, one frame a child: columns as of `node.output`, and `w`.

        Weights pass through; where both sides of a join carry them, they are multiplied. `values`: a literal for each
        subquery in the node's expressions, by its expression id.
        """
        if not node.by_name and not values:
            sides = self.listed([frame._jdf for frame in frames])
            outers = self.listed(list(reversed(node.spine[:-1]))) if len(node.spine) > 1 else None
            placeholders = f" {' '.join(map(str, self._sources))} "
            made = self._plans.ran(self._session, node.plan, sides, self._sessions, outers, placeholders)
            if made is not None:  # below, the placeholder that is left in it is named
                return DataFrame(made, self.spark)
        if node.by_name:
            written = [child.spine[0] for child in node.children]
            bound = [self._plans.asWritten(f._jdf, self._sessions, w) for f, w in zip(frames, written, strict=True)]
        else:
            bound = [self._plans.bound(frame._jdf, self._sessions) for frame in frames]
        children = self._list_of(*bound)
        top = self._plans.over(node.plan, children)
        for outer in [None, *reversed(node.spine[:-1])]:
            top = top if outer is None else outer.withNewChildren(self.seq([top]))
            top = self._with_values(top, values) if values else top
        self._assert_grounded(top)
        return DataFrame(self._plans.named(self._session, top, children), self.spark)

    def same_bits(self, one: Literal, other: Literal) -> bool:
        """Whether two values are the same bit by bit."""
        return bool(self._plans.bits(one.java) == self._plans.bits(other.java))

    def equal(self, one: Literal, other: Literal) -> bool:
        """Whether Catalyst takes two values for equal: -0.0 and 0.0, too."""
        return bool(one.java.equals(other.java))

    def condition(self, node: Node, values: Mapping[int, Literal]) -> Expression:
        """A filter's condition with a literal for each subquery in it, by its expression id."""
        return self.expression(self._with_values(node.plan, values).condition())

    def projected(self, node: Node, values: Mapping[int, Literal]) -> list[Expression]:
        """A projection's expressions, likewise."""
        return self.expressions(self._with_values(node.plan, values).projectList())

    def project(self, frame: DataFrame, expressions: Mapping[str, Expression], keep: bool = False) -> DataFrame:
        """The expressions evaluated over the frame's rows, under the given names (of ours); `keep`: beside its own columns."""
        made = self.listed([e.java for e in expressions.values()])
        names = ",".join(expressions)
        return DataFrame(self._plans.project(self._session, frame._jdf, self._sessions, made, names, keep), self.spark)

    def among(self, rows: DataFrame, on: Sequence[Expression], keys: DataFrame, null_safe: Sequence[bool], few: bool) -> DataFrame:
        """The rows of which some expressions are among the keys, the columns of a frame in their order. `null_safe`: of each, whether NULL
        is a key like any other; `few`: the keys are broadcast."""
        safe = "".join(str(int(each)) for each in null_safe)
        made = self.listed([e.java for e in on])
        return DataFrame(self._steps.among(self._session, rows._jdf, self._sessions, made, keys._jdf, safe, few), self.spark)

    def with_names(self, frame: DataFrame, names: Sequence[str]) -> DataFrame:
        """The frame under other column names (of ours); rows on the driver stay as they are."""
        return DataFrame(self._plans.renamed(self._session, frame._jdf, ",".join(names)), self.spark)

    def packed(self, frame: DataFrame, start: int, end: int) -> str:
        """Some rows of a frame on the driver as a text, bit by bit, in characters that need no quotes; empty for no rows."""
        return "" if end <= start else str(self._jvm.own_margin.packed(frame._jdf, start, end))

    def unpacked(self, text: str, node: Node) -> DataFrame:
        """The rows of which `packed` gave a text, in the columns of a node; none for an empty text."""
        columns = self.listed([a.java for a in node.output])
        return DataFrame(self._jvm.own_margin.unpacked(self._session, columns, text), self.spark)

    def up_to(self, rows: DataFrame, last: DataFrame) -> int:
        """How many of some sorted rows on the driver come no later than a row, the one of another frame, which is among them."""
        return int(self._jvm.own_margin.upTo(rows._jdf, last._jdf))

    def values(self, frame: DataFrame) -> list[list[Any]]:
        """Few rows as Spark holds them, without a job where the optimiser knows them (see `values_of`)."""
        return values_of(frame)

    def value(self, frame: DataFrame) -> Literal:
        """The one value of a frame of one column; NULL where there is no row. Raises QueryError for more rows than one."""
        plan = frame._jdf.queryExecution().analyzed()
        data_type = plan.output().head().dataType()
        rows = self._plans.first(self._session, frame._jdf.queryExecution(), 2)
        if len(rows) > 1:
            raise QueryError("A scalar subquery of the view gave more than one row. Nothing was written. Change the data or the query.")
        arguments = self._objects(2)
        if rows:  # from array to array: on its way through Python a long would come back as an int
            row = rows[0].toSeq(self.seq([data_type])).toArray(self._jvm.scala.reflect.ClassTag.AnyRef())
            self._jvm.java.lang.System.arraycopy(row, 0, arguments, 0, 1)
        self._jvm.java.lang.reflect.Array.set(arguments, 1, data_type)
        return Literal(self.literal(0).makeCopy(arguments))

    def _with_values(self, plan: Java, values: Mapping[int, Literal]) -> Java:
        def fill(expression: Java) -> Java:
            if self.is_a(expression, PLAN_EXPRESSION) and expression.exprId().id() in values:
                return values[expression.exprId().id()].java
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

    def _assert_grounded(self, plan: Java) -> None:
        """No placeholder is left in the plan, nor in a subquery of it (trap 1)."""
        # `plan` is run lazily; a placeholder's rows raise as well, so this is the early and cheap half of the check.
        for rdd in self._plans.rdds(plan).split():
            name = self._sources.get(int(rdd))
            if name is not None:
                raise InternalError(f"A plan was about to run over the placeholder of {name!r}. Nothing was written.")

    def collected(self, frame: DataFrame, limit: int) -> tuple[DataFrame, int] | None:
        """The frame's rows as a local relation, and their number; None where there are more than `limit`.

        Local rows cost no job to read again, let the optimiser fold what is done to them, and are always broadcast.
        """
        return self._counted(self._plans.collected(self._session, frame._jdf, limit))

    def consolidated(self, frame: DataFrame, limit: int) -> tuple[DataFrame, int] | None:
        """The same of weighted rows, consolidated; None also where their types are not simply compared."""
        return self._counted(self._jvm.own_rows.collected(self._session, frame._jdf, limit))

    def held(self, frame: DataFrame, limit: int) -> tuple[DataFrame, int] | None:
        """The same of a frame over a small table. The JVM holds the rows of its data files: a later refresh reads new files only."""
        return self._counted(self._plans.held(self._session, frame._jdf, limit))

    def folded(self, frame: DataFrame, limit: int) -> tuple[DataFrame, int] | None:
        """The same where the optimiser knows the rows already; None where a job would have to run for them."""
        return self._counted(self._plans.folded(self._session, frame._jdf, limit))

    def counted(self, frame: DataFrame) -> tuple[int, dict[str, tuple[int, ...]]]:
        """The number of a frame's rows, and the counts observed while they were computed, by name (missing where no row was observed)."""
        counting = frame.groupBy().count()
        (row,) = counting.collect()
        seen = self.dict(self._plans.observed(counting._jdf))
        return int(row[0]), {name: tuple(counts) for name, counts in seen.items()}

    def _counted(self, local: Java | None) -> tuple[DataFrame, int] | None:
        return None if local is None else (DataFrame(local, self.spark), int(self._plans.size(local)))

    def _frame(self, plan: Java) -> DataFrame:
        return DataFrame(self._of_rows(self._session, plan), self.spark)
