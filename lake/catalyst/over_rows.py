"""Whether a query's rows can be had from another query's: as a SELECT over them, proven by Spark's optimiser.

The SELECT is guessed from the two texts (columns that are written alike, conditions that one has and the other lacks), so it may be
wrong. It counts only where Spark optimises the SELECT over the old query to the same plan as the new query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from lake.catalyst.definitions import DEFINITION_SETTINGS, Catalyst
from lake.catalyst.expressions import PLAN_EXPRESSION
from lake.core.sql import quoted
from lake.spark.failures import SPARK_ERRORS
from lake.spark.jvm.gateway import Java, kind_of
from lake.spark.session import settings

_LAYERS = {"Project": "projectList", "Aggregate": "aggregateExpressions", "Window": "windowExpressions"}
_REWRITTEN = "org.apache.spark.sql.catalyst.expressions.InheritAnalysisRules"
"""Functions that are other expressions once they are analysed, such as nullif."""
_PASSED = ("SubqueryAlias", "Distinct")


@dataclass(frozen=True)
class Query:
    """A query as it was analysed, and as a tree with the columns of its view's table: (name, attribute id of the tree)."""

    analysed: Java
    tree: Java
    columns: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class OverRows:
    """A SELECT over the rows of a query: name → SQL of each column, and the condition (empty: all rows)."""

    columns: tuple[tuple[str, str], ...]
    condition: str = ""

    def applied(self, rows: DataFrame) -> DataFrame:
        """The rows that it selects."""
        chosen = rows.where(self.condition) if self.condition else rows
        return chosen.selectExpr(*[f"{sql} AS {quoted(name)}" for name, sql in self.columns])

    @property
    def renames(self) -> dict[str, str] | None:
        """New name → old name of each column, where each is an old column as it is; else None."""
        plain = {name: old for name, sql in self.columns if (old := _plain(sql)) is not None}
        return plain if len(plain) == len(self.columns) and len(set(plain.values())) == len(plain) else None

    @property
    def computed(self) -> list[str]:
        """The SQL of all that is more than an old column as it is."""
        made = [sql for _, sql in self.columns if _plain(sql) is None]
        return [*made, self.condition] if self.condition else made


def _plain(sql: str) -> str | None:
    """The name of a column that is written alone, in backticks; None for anything else."""
    name = sql[1:-1].replace("``", "`")
    return name if sql == quoted(name) else None


def over_rows(catalyst: Catalyst, old: Query, new: Query) -> OverRows | None:
    """The new query as a SELECT over the rows of the old one, in its table's columns; None where there is none, or it can't be proven.

    Both queries are analysed over the same placeholders.
    """
    try:
        guess = _guess(catalyst, old, new)
        if guess is None:
            return None
        with settings(catalyst.spark, DEFINITION_SETTINGS):
            plans = [catalyst.analysed(frame) for frame in (guess.applied(_frame(catalyst, old)), _frame(catalyst, new))]
            return guess if same_plans(catalyst, *plans) else None
    except SPARK_ERRORS:  # what Spark prints of an expression is not always SQL
        return None


def same_rows(catalyst: Catalyst, old: Query, new: Query) -> bool:
    """Whether Spark optimises both queries to the same plan, with the same columns of their tables."""
    if [name for name, _ in old.columns] != [name for name, _ in new.columns]:
        return False
    with settings(catalyst.spark, DEFINITION_SETTINGS):
        return same_plans(catalyst, *(catalyst.columns_of(query.tree, query.columns) for query in (old, new)))


def same_plans(catalyst: Catalyst, one: Java, other: Java) -> bool:
    """Whether Spark optimises two plans to the same one, but for the names of columns, and their order within the plans. Not where it
    refuses to analyse one of them again."""
    try:
        found, wanted = (catalyst.in_one_form(catalyst.optimised(catalyst.frame(plan))) for plan in (one, other))
        return bool(found.sameResult(wanted)) and catalyst.chains(found) == catalyst.chains(wanted)
    except SPARK_ERRORS:
        return False


def _frame(catalyst: Catalyst, query: Query) -> DataFrame:
    """The query's rows (over placeholders), in the columns of its view's table."""
    return catalyst.frame(catalyst.columns_of(query.tree, query.columns))


# -- the guess -----------------------------------------------------------------------------------------------------------------------------


def _guess(catalyst: Catalyst, old: Query, new: Query) -> OverRows | None:
    rows = {str(a.name()): a for a in catalyst.list(catalyst.analysed(_frame(catalyst, old)).output())}
    written, trees = (_Layers.of(catalyst, plan) for plan in (old.analysed, old.tree))
    names = [name for name, _ in old.columns]
    known = dict(zip([a for _, a in old.columns], names, strict=True))
    by_text = {**trees.texts(old.columns), **dict(zip(written.outputs_as_text, names, strict=False))}
    substitute = _Substitution(catalyst, {text: rows[name] for text, name in by_text.items()})
    asked, made = _Layers.of(catalyst, new.analysed), _Layers.of(catalyst, new.tree)
    columns = list[tuple[str, str]]()
    for place, (name, attribute) in enumerate(new.columns):
        if attribute in known:
            columns.append((name, quoted(known[attribute])))
            continue
        expression = asked.outputs[place] if place < len(asked.outputs) else made.definition(attribute)
        text = None if expression is None else substitute.text(expression)
        if text is None:
            return None
        columns.append((name, text))
    had = set(written.conditions)
    more = [java for text, java in asked.conditions.items() if text not in had]
    conditions = [substitute.text(java) for java in more]
    if None in conditions:
        return None
    return OverRows(tuple(columns), " AND ".join(f"({text})" for text in conditions))


@dataclass(frozen=True)
class _Layers:
    """The outermost projections, windows, aggregate and filters of a plan, written out in terms of what is below them.

    `outputs`: the expression of each output column; `conditions`: text → expression of each condition that all its rows fulfil.
    """

    outputs: Sequence[Java]
    ids: Sequence[int]
    conditions: Mapping[str, Java]

    @staticmethod
    def of(catalyst: Catalyst, plan: Java) -> _Layers:
        outputs = catalyst.list(plan.output())
        ids = [int(a.exprId().id()) for a in outputs]
        conditions = list[Java]()
        aggregated = False
        while True:
            kind = str(plan.nodeName())
            if kind == "Filter":
                conditions += catalyst.conjuncts(plan.condition())
            elif kind in _LAYERS and not (aggregated and kind == "Aggregate"):
                aggregated = aggregated or kind == "Aggregate"
                inner = catalyst.definitions_of(getattr(plan, _LAYERS[kind])())
                outputs, conditions = ([_written_out(catalyst, e, inner) for e in each] for each in (outputs, conditions))
            elif kind not in _PASSED:
                break
            plan = plan.child()
        return _Layers(outputs, ids, {str(java.sql()): java for java in conditions})

    @property
    def outputs_as_text(self) -> list[str]:
        return [str(java.sql()) for java in self.outputs]

    def definition(self, attribute: int) -> Java | None:
        """The expression of an output column, by its attribute id."""
        return self.outputs[self.ids.index(attribute)] if attribute in self.ids else None

    def texts(self, columns: Sequence[tuple[str, int]]) -> dict[str, str]:
        """Text of the expression → name, of some columns."""
        found = [(self.definition(attribute), name) for name, attribute in columns]
        return {str(java.sql()): name for java, name in found if java is not None}


def _written_out(catalyst: Catalyst, java: Java, definitions: Mapping[int, Java]) -> Java:
    return catalyst.substituted(catalyst.expression(java), definitions).java


@dataclass(frozen=True)
class _Substitution:
    """Expressions over what is below the layers, as SQL over the rows. `columns`: text of an expression → the column that holds it."""

    catalyst: Catalyst
    columns: Mapping[str, Java]

    def text(self, expression: Java) -> str | None:
        """SQL over the rows; None where they don't hold what the expression reads."""
        found = self._over(expression)
        if found is None:
            return None
        plain = kind_of(found) == "AttributeReference"
        return quoted(str(found.name())) if plain else str(found.sql())

    def _over(self, java: Java) -> Java | None:
        column = self.columns.get(str(java.sql()))
        if column is not None:
            return column
        kind = kind_of(java)
        if kind in ("AttributeReference", "AggregateExpression", "LambdaFunction") or self.catalyst.is_a(java, PLAN_EXPRESSION):
            return None
        rewritten = self.catalyst.is_a(java, _REWRITTEN)
        children = [self._over(child) for child in self.catalyst.list(java.parameters() if rewritten else java.children())]
        if None in children:
            return None
        if rewritten:
            return self.catalyst.call(str(java.prettyName()), children)
        return java.withNewChildren(self.catalyst.seq(children)) if children else java
