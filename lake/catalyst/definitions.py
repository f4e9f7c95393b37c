"""A view's query as a plan: parsed, analysed and optimised over placeholders, searched and put in normal form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, _parse_datatype_json_string

from lake.catalyst.expressions import EXPRESSION, PLAN_EXPRESSION, QUERY_PLAN, SESSION
from lake.catalyst.running import Running
from lake.spark.jvm.gateway import Java

_SOURCE = "LogicalRDD"
"""What a placeholder is in a plan."""
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


class Catalyst(Running):
    """Catalyst as seen from one session; every view has a session of its own, cloned from the caller's."""

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

    def relation_names(self, plan: Java) -> set[str]:
        """The one-part names of relations in a parsed plan, without those that stand for a CTE there."""
        return set(self._free_names(plan, frozenset()))

    def _free_names(self, java: Java, ctes: frozenset[str]) -> Iterator[str]:
        kind = str(java.getClass().getSimpleName())
        if kind == "UnresolvedRelation":
            names = [str(name) for name in self.list(java.multipartIdentifier())]
            if len(names) == 1 and names[0].lower() not in ctes:
                yield names[0]
            return
        if kind == "UnresolvedWith":
            for cte in self.list(java.cteRelations()):
                yield from self._free_names(cte._2(), ctes)  # a CTE is not known in itself, but after itself
                ctes |= {str(cte._1()).lower()}
        below = self.list(java.children())
        if self.is_a(java, QUERY_PLAN):
            below += self.list(java.expressions())
        elif self.is_a(java, PLAN_EXPRESSION):
            below.append(java.plan())
        for inner in below:
            yield from self._free_names(inner, ctes)

    def nondeterministic(self, census: Sequence[tuple[str, Java]]) -> list[str]:
        """The names of the functions that are nondeterministic themselves."""
        found = set()
        for _, java in census:
            random = self.is_a(java, EXPRESSION) and not java.deterministic()
            if random and all(child.deterministic() for child in self.list(java.children())):
                found.add(str(java.prettyName()))
        return sorted(found)

    def normal_form(self, plan: Java) -> str:
        """The plan as text: ids numbered by first appearance, sources by name with the columns that are used of them, at last the columns
        that go by their places (of unions, of subqueries, of the result) and the values that are written in it.

        A column that a source gained since, and that is not used, leaves it as it was.
        """
        census = self.census(plan)
        columns = [(self.source_of(java), a) for kind, java in census if kind == _SOURCE for a in self.list(java.output())]
        names = {str(a.exprId().id()): (source, str(a.name()).lower().replace("#", "%23")) for source, a in columns}
        text = str(self._plans.escaped(plan).treeString())
        lines = [re.sub(r"lambda (\w+?)_\d+#", r"lambda \1#", line.lstrip(" :+-")) for line in text.splitlines()]
        for kind, java in census:
            if kind == "Union":
                lines.append(f"union of {'; '.join(map(self._places, self.list(java.children())))}")
            elif self.is_a(java, PLAN_EXPRESSION):
                lines.append(f"subquery gives {self._places(java.plan())}")
        lines.append(f"gives {self._places(plan)}")
        used = {i for line in lines if not line.startswith(_SOURCE) for i in re.findall(r"#(\d+)", line)}
        kept: list[str] = []
        for line in lines:
            ids = [i for i in re.findall(r"#(\d+)L?", line) if i in names]
            if line.startswith(_SOURCE) and ids:
                line = f"source {names[ids[0]][0]} " + " ".join(f"{names[i][1]}#{i}" for i in ids if i in used)
            if not re.fullmatch(r"Project \[[^()]*\]", line) or " AS " in line:
                kept.append(line)  # another one only leaves out columns
        numbers: dict[str, str] = {}
        values = [f"{kind} {java.dataType().json()} {self._plans.bits(java)}" for kind, java in self._literals(census)]
        values += [f"{kind} {self._plans.bits(java)}" for kind, java in census if kind in ("InSet", "LocalRelation")]
        return "\n".join([re.sub(r"#(\d+)L?", lambda m: numbers.setdefault(m.group(1), f"#{len(numbers)}"), "\n".join(kept)), *values])

    def _literals(self, census: Sequence[tuple[str, Java]]) -> list[tuple[str, Java]]:
        """The literals among these, without what functions carry with them as objects, which the text names."""
        return [(kind, java) for kind, java in census if kind == "Literal" and str(java.dataType().typeName()) != "object"]

    def _places(self, plan: Java) -> str:
        return " ".join(f"#{a.exprId().id()}" for a in self.list(plan.output()))

    def mark_sessions(self, analysed: Java, optimised: Java) -> None:
        """Remember which columns of the optimised plan Spark marks as session windows; it may have lost the name, not the mark."""
        if "session_window" in str(analysed.toString()):
            named = [java for kind, java in self.census(optimised) if kind in ("AttributeReference", "Alias")]
            for java in named:
                if java.metadata().contains(SESSION):
                    self._plans.mark(self._sessions, java)

    def schema_of(self, plan: Java) -> StructType:
        """The plan's schema."""
        schema = _parse_datatype_json_string(plan.schema().json())
        assert isinstance(schema, StructType)
        return schema
