"""Wraps Catalyst's expressions: what they read, what they may be used for, and new ones made of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, _parse_datatype_json_string

from lake.catalyst.nodes import Attribute, Expression
from lake.spark.jvm.gateway import Java, Scala, jvm_of, kind_of
from lake.spark.types import comparable


class Expressions(Scala):
    """Expressions as seen from one session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._jvm = jvm_of(spark)
        super().__init__(self._jvm)
        expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        self._alias_class, self._literal_class, self._cast = expressions.Alias, expressions.Literal, expressions.Cast
        self._new_id = expressions.NamedExpression.newExprId
        self._empty, self._unmarked = self.seq([]), self.seq([SESSION])
        self._ansi = expressions.EvalMode.ANSI()
        self._sessions = self._jvm.java.util.HashMap()  # ids of columns that Spark marks as session windows, and the mark
        self.aggregate_functions = expressions.aggregate

    def expression(self, java: Java) -> Expression:
        """Wrap a JVM expression."""
        references, attribute, as_it_is = pickle.loads(self._trees.expression(java))
        return Expression(java, frozenset(references), attribute, attribute is not None and as_it_is)

    def expressions(self, sequence: Java) -> list[Expression]:
        """Wrap each expression of a Scala sequence."""
        return [self.expression(e) for e in self.list(sequence)]

    def expression_of(self, attribute: Attribute) -> Expression:
        """An attribute as an expression."""
        return self.expression(attribute.java)

    def same(self, a: Expression, b: Expression) -> bool:
        """Whether two expressions give the same value for every row, as far as Catalyst can tell."""
        return bool(a.java.semanticEquals(b.java))

    def moved(self, expression: Expression, own: Sequence[Attribute], other: Sequence[Attribute]) -> Expression:
        """The expression over `own` columns as one over `other` columns, which match them by position."""
        return self.substituted(expression, {a.id: b.java for a, b in zip(own, other, strict=True)})

    def substituted(self, expression: Expression, definitions: Mapping[int, Java]) -> Expression:
        """The expression with attributes replaced by the expressions that define them (by attribute id)."""

        def substitute(java: Java) -> Java:
            if kind_of(java) == "AttributeReference":
                return definitions.get(java.exprId().id(), java)
            return self.rebuilt(java, substitute)

        return self.expression(substitute(expression.java))

    def rebuilt(self, java: Java, change: Callable[[Java], Java]) -> Java:
        """The expression with `change` applied to each of its children."""
        children = self.list(java.children())
        return java.withNewChildren(self.seq([change(c) for c in children])) if children else java

    def cast(self, java: Java, ddl: str) -> Java:
        """The expression cast to a type, raising where it does not fit."""
        return self._cast(java, self._data_type(ddl), self.none, self._ansi)

    def call(self, function: str, arguments: Sequence[Java]) -> Java:
        """A call of a function by its name, not analysed."""
        functions = getattr(self._jvm.org.apache.spark.sql.catalyst.analysis, "UnresolvedFunction$")
        return getattr(functions, "MODULE$").apply(function, self.seq(arguments), False)

    def absolute(self, java: Java) -> Java:
        """The absolute value of an expression."""
        return self._jvm.org.apache.spark.sql.catalyst.expressions.Abs(java)

    def made(self, text: str, **parts: Java) -> Java:
        """A new expression, from SQL over names that stand for other expressions."""
        names = [f"CAST(NULL AS {part.dataType().sql()}) AS {name}" for name, part in parts.items()]
        plan = self.spark.range(0).selectExpr(*names).selectExpr(f"{text} AS made")._jdf.queryExecution().analyzed()
        ids = [int(a.exprId().id()) for a in self.list(plan.child().output())]
        expression = self.expression(plan.projectList().head().child())
        return self.substituted(expression, dict(zip(ids, parts.values(), strict=True))).java

    def literal(self, value: int) -> Java:
        """A whole number as an expression."""
        return self._literal_class(value, self._data_type("int"))

    def coalesced(self, expression: Expression) -> list[Expression]:
        """What a coalesce takes the first of; empty for another expression."""
        is_coalesce = kind_of(expression.java) == "Coalesce"
        return self.expressions(expression.java.children()) if is_coalesce else []

    def type_of(self, expression: Expression) -> DataType:
        """The expression's type."""
        return _parse_datatype_json_string(expression.java.dataType().json())

    def _data_type(self, ddl: str) -> Java:
        return self._jvm.org.apache.spark.sql.types.DataType.fromDDL(ddl)

    def hashable(self, expression: Expression) -> bool:
        """Whether rows can be looked up by this expression: no map and no VARIANT in its type."""
        return comparable(self.type_of(expression)) and expression.java.deterministic() and not self.has_subquery(expression)

    def has_subquery(self, expression: Expression) -> bool:
        """Whether a plan hides in the expression, over placeholders (trap 1)."""
        return bool(self.subqueries(self.seq([expression.java])))

    def subqueries(self, expressions: Java) -> list[tuple[Java, Java]]:
        """(expression, plan) for each subquery in a sequence of expressions."""
        return [(self._held(*java), self._held(*plan)) for java, plan in pickle.loads(self._trees.subqueries(expressions))]

    def is_session(self, expression: Expression) -> bool:
        """Whether this is the value of a session_window: sessions merge physically, so it is no key (trap 6)."""
        return any(a.metadata().contains(SESSION) for a in self.list(expression.java.references().toSeq()))

    def named(self, expression: Expression) -> Java:
        """The expression as an output column: itself where it is one, else under a name of its own."""
        return expression.java if expression.plain else self.alias(expression.java, "key")

    def alias(self, expression: Java, name: str) -> Java:
        """The expression under a name, with an id of its own, and not marked as a session window."""
        return self._alias_class(expression, name, self._new_id(), self._empty, self.none, self._unmarked)

    def plain(self, expression: Java, name: str) -> Java:
        """The same without any metadata."""
        nothing = self.some(self._jvm.org.apache.spark.sql.types.Metadata.empty())
        return self._alias_class(expression, name, self._new_id(), self._empty, nothing, self._empty)

    def new_id(self) -> Java:
        """An expression id that no other expression has."""
        return self._new_id()

    def attributes(self, sequence: Java) -> tuple[Attribute, ...]:
        """Wrap each attribute of a Scala sequence."""
        found = pickle.loads(self._trees.attributes(sequence))
        return tuple(Attribute(i, name, sequence, place) for place, (i, name) in enumerate(found))


EXPRESSION = "org.apache.spark.sql.catalyst.expressions.Expression"
PLAN_EXPRESSION = "org.apache.spark.sql.catalyst.expressions.PlanExpression"
SESSION = "spark.sessionWindow"
