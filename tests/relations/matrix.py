"""docs/reference/sql.md, from the queries that the law is tested on: `make docs`. Each law test checks its own line of it."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import SparkSession

from lake.spark.session import make_session
from lake.views.explain import explain
from tests.conftest import QUICK
from tests.relations.cases import QUERIES, SCHEMAS, SECTIONS
from tests.relations.laws import View

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "reference" / "sql.md"
_ROW_BY_ROW = ("Source", "Project", "Filter", "Sort")
_HEAD = f"""# SQL: what is incremental

Any deterministic Spark query can be a view: one SELECT, or a Python function from DataFrames to a DataFrame. This table is made from
the {len(QUERIES)} queries on which the law of every operator is tested (`tests/relations/cases.py`), over the tables
{"; ".join(f"`{t}({ddl})`" for t, ddl in SCHEMAS.items())}.
All are exact. `lakejoin explain VIEW` says the same of your own; `explain --strict`, or `refresh_mode: incremental` in lakejoin.yml,
fails where anything would be recomputed. Supported since version 0.1.0, unless a line says otherwise.

Filters, projections and explodes are applied to the changes, and are not named again below.
"""


def line(name: str, view: View) -> str:
    """A query's row of the table: what it is, how it is refreshed, the query itself."""
    query = re.sub(r"\s+", " ", view.query).replace("|", "\\|")
    return f"| {name.replace('_', ' ')} | {rule(view)} | `{query}` |"


def rule(view: View) -> str:
    """How the query is refreshed, in a few words."""
    definition = view.definition
    found = explain(definition, {})
    if definition.carried:
        return next(s.rule for s in found.steps if s.rule.startswith(("added", "renewed")))
    if definition.scope:
        return f"computed anew by ({', '.join(found.scope)}), against the rows held"
    if definition.recomputed:
        return f"**recomputed**: {definition.recomputed}"
    rules = [f"{s.operator}: {s.rule}" for s in found.steps if not s.operator.startswith(_ROW_BY_ROW)]
    reasons = [f"**{s.operator} recomputed**: {s.reason}" for s in found.steps if s.reason]
    return "; ".join(dict.fromkeys(reasons or rules)) or "applied to the changes"


def text(spark: SparkSession) -> str:
    """The whole document."""
    parts = [_HEAD]
    for title, queries in SECTIONS.items():
        parts.append(f"\n## {title}\n\n| construct | rule | example |\n|---|---|---|\n")
        parts += [line(name, View(spark, SCHEMAS, query)) + "\n" for name, query in queries.items()]
    return "".join(parts)


if __name__ == "__main__":
    DOCUMENT.write_text(text(make_session(QUICK)))
