"""A view's query as a plan: parsed, analysed and optimised over placeholders, and searched."""

from __future__ import annotations

import pickle

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, _parse_datatype_json_string

from lake.catalyst.expressions import SESSION
from lake.catalyst.normal_form import NormalForms
from lake.spark.jvm.gateway import Java

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


class Catalyst(NormalForms):
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
        """The names of relations in a parsed plan (with their schema, if given), without those that stand for a CTE there."""
        return {".".join(parts) for parts in pickle.loads(self._trees.relationNames(plan))}

    def output_ids(self, plan: Java) -> list[int]:
        """The attribute ids of the plan's columns."""
        return [a.id for a in self.attributes(plan.output())]

    def mark_sessions(self, analysed: Java, optimised: Java) -> None:
        """Remember which columns of the optimised plan Spark marks as session windows; it may have lost the name, not the mark."""
        if "session_window" in str(analysed.toString()):
            for _, java in self.census(optimised).of(("AttributeReference", "Alias")):
                if java.metadata().contains(SESSION):
                    self._plans.mark(self._sessions, java)

    def schema_of(self, plan: Java) -> StructType:
        """The plan's schema."""
        schema = _parse_datatype_json_string(plan.schema().json())
        assert isinstance(schema, StructType)
        return schema
