"""A query's normal form: a text that is the same for the same query in every process, for the fingerprint of its view.

The text is made from the analysed plan, which is a function of the query and the schemas alone. The optimised plan is not: where the
optimiser goes through a set of expressions, their order depends on expression ids, which differ from process to process.
"""

from __future__ import annotations

import re

from lake.catalyst.census import Census
from lake.catalyst.running import Running
from lake.spark.jvm.gateway import Java
from lake.spark.session import settings

_SOURCE = "LogicalRDD"
"""What a placeholder is in a plan."""
_SETTINGS = {"spark.sql.optimizer.nestedSchemaPruning.enabled": "false"}
"""Fields of structs are pruned in the order of a hash map."""
_MACHINE = re.compile(r", splits=(None|Some\(\d+\))")
"""What a plan says of the machine that it was made on: the default parallelism, in a Range."""


class NormalForms(Running):
    """Plans as text."""

    def normal_form(self, analysed: Java) -> str:
        """The analysed plan without the columns that no one reads, as text: expression ids numbered by first appearance, sources by name
        with the columns that are read, then the columns whose position matters (of unions, of subqueries, of the result), and the values
        of all literals bit by bit.

        A column that a source gains, and that the query does not read, leaves the text as it was.
        """
        with settings(self.spark, _SETTINGS):
            plan = self._normal.pruned(analysed)
        census = self.census(plan)
        sources = [(self.source_of(java), self.attributes(java.output())) for _, java in census.of([_SOURCE])]
        names = {str(a.id): (source, a.name.lower().replace("#", "%23")) for source, columns in sources for a in columns}
        lines = self._lines(plan, census)
        read = {i for line in lines if not line.startswith(_SOURCE) for i in re.findall(r"#(\d+)", line)}
        kept = [self._named(line, names, read) for line in lines if not _only_prunes(line)]
        numbers: dict[str, str] = {}
        numbered = re.sub(r"#(\d+)L?", lambda m: numbers.setdefault(m.group(1), f"#{len(numbers)}"), "\n".join(kept))
        values = [f"{kind} {java.dataType().json()} {self._plans.bits(java)}" for kind, java in self._literals(census)]
        values += [f"{kind} {self._plans.bits(java)}" for kind, java in census.of(("InSet", "LocalRelation"))]
        return "\n".join([numbered, *values])

    def _lines(self, plan: Java, census: Census) -> list[str]:
        text = _MACHINE.sub("", str(self._plans.escaped(plan).treeString()))
        lines = [re.sub(r"lambda (\w+?)_\d+#", r"lambda \1#", line.lstrip(" :+-")) for line in text.splitlines()]
        for kind, java in census.where(lambda kind: kind.name == "Union" or kind.has_plan):
            if kind == "Union":
                lines.append(f"union of {'; '.join(map(self._places, self.list(java.children())))}")
            else:
                lines.append(f"subquery gives {self._places(java.plan())}")
        return [*lines, f"gives {self._places(plan)}"]

    def _named(self, line: str, names: dict[str, tuple[str | None, str]], read: set[str]) -> str:
        """A source's line with its name, and those of its columns that are read; another line as it is."""
        ids = [i for i in re.findall(r"#(\d+)L?", line) if i in names] if line.startswith(_SOURCE) else []
        return f"source {names[ids[0]][0]} " + " ".join(f"{names[i][1]}#{i}" for i in ids if i in read) if ids else line

    def _literals(self, census: Census) -> list[tuple[str, Java]]:
        """The literals among these, without the objects that functions carry, which the text names."""
        return [(kind, java) for kind, java in census.of(["Literal"]) if str(java.dataType().typeName()) != "object"]

    def _places(self, plan: Java) -> str:
        return " ".join(f"#{a.id}" for a in self.attributes(plan.output()))


def _only_prunes(line: str) -> bool:
    """Whether the line is a Project that only leaves out columns."""
    return re.fullmatch(r"Project \[[^()]*\]|Project", line) is not None and " AS " not in line
