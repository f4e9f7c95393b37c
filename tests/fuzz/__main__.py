"""Draw queries and histories until the time is over: `python -m tests.fuzz --seconds 600 --seed 7`.

Each refresh is judged by the law, with both ends from plain Spark. Prints what was exercised (operator × rule × kind of change) and
fails where a view was wrong, where an operator was never exercised, or where less than 90 % of the refreshes that had changes to
show were incremental. With --edits, queries are edited, and the views brought to the edited ones; prints each edit by its kind.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from lake.relations.base import Relation
from lake.relations.joins import Join
from lake.spark.session import make_session
from tests.conftest import LONG
from tests.fuzz.edits import DDL, Edited, WrongEditError, edited_lake
from tests.fuzz.histories import KINDS, History
from tests.fuzz.queries import SCHEMAS, Generator, Query
from tests.relations.laws import Rows, View

EXPECTED = [
    "filter",
    "project",
    "join|join_with_residual",
    "left_join|left_join_with_residual",
    "right_join|right_join_with_residual",
    "full_join|full_join_with_residual",
    "aggregate",
    "distinct",
    "semi|exists",
    "anti|not_exists",
    "in",
    "not_in",
    "exists_or",
    "union_all",
    "union|intersect|except",
    "intersect_all|except_all",
    "window_rank|window_dense_rank",
    "window_row_number",
    "top_n",
    "correlated_scalar",
    "correlated_single",
    "lateral|left_lateral",
    "pivot",
    "window_range",
    "explode",
    "grouping_sets",
]


@dataclass
class Found:
    """What a run did: refreshes judged, those that had changes to show, those of them that were incremental, and what was exercised;
    `refused`: queries that Spark itself can't plan."""

    refused: int = 0
    refreshes: int = 0
    moved: int = 0
    incremental: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    coverage: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    recomputed: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        return self.incremental / max(1, self.moved)

    def unexercised(self) -> list[str]:
        """Operators (alternatives parted by |) that no refresh with changes went through."""
        seen = {operator.replace(" ", "_") for operator in self.operators}
        return [e for e in EXPECTED if not seen & set(e.split("|"))]


class WrongError(Exception):
    """A view that is not what Spark says; the text shows the smallest case found."""


def case(spark: SparkSession, seed: int, steps: int, found: Found) -> None:
    """One query over one history. Raises WrongError."""
    draw = random.Random(seed)
    query = Generator(draw).query(draw.choice([1, 2, 2, 3]))
    history = History(draw)
    if not _planned_by_spark(spark, query):
        found.refused += 1
        return
    view = View(spark, DDL, query.sql)
    tables = history.tables
    before = view.truth(tables)
    for _ in range(steps):
        after_tables, done = history.step()
        after = view.truth(after_tables)
        expected = Counter({row: after[row] - before[row] for row in {*before, *after} if after[row] != before[row]})
        limit = draw.choice([40_000, 40_000, 3])
        if view.changes(tables, after_tables, limit) != expected:
            raise WrongError(smallest(spark, query, tables, after_tables, seed))
        found.refreshes += 1
        if expected:
            reasons = [reason for reason in view.recomputed if reason]
            found.moved += 1
            found.incremental += not reasons
            found.recomputed.update(r.split(":")[0] for r in reasons)
            kinds = {kind for table, kind in done if table in view.definition.sources}
            found.operators.update(set(query.operators))
            nodes = {(_name(r), r.rule) for r in view.definition.relation.walk()}
            found.coverage.update((name, rule, kind) for name, rule in nodes for kind in kinds)
        tables, before = after_tables, after


def _planned_by_spark(spark: SparkSession, query: Query) -> bool:
    """Whether plain Spark can plan it. INTERSECT ALL with a column selected twice, for one, it can't (PLAN_VALIDATION_FAILED), nor some
    projections over a union (its optimizer's PushProjectionThroughUnion finds a column missing)."""
    session = spark.newSession()
    for table, ddl in DDL.items():
        session.createDataFrame([], ddl).createOrReplaceTempView(table)
    try:
        session.sql(query.sql).collect()
    except (PySparkException, Py4JJavaError) as error:
        if not any(bug in str(error) for bug in ("PLAN_VALIDATION_FAILED", "PushProjectionThroughUnion")):
            raise
        return False
    return True


def _name(relation: Relation) -> str:
    return f"Join {relation.join_type}" if isinstance(relation, Join) else relation.node.kind


def smallest(spark: SparkSession, query: Query, since: dict[str, Rows], until: dict[str, Rows], seed: int) -> str:
    """The smallest part of a query that is wrong, over as few rows as still show it."""
    part = next((q for q in query.walk() if _wrong(spark, q, since, until)), query)
    for tables in (since, until):
        for name in tables:
            for row in list(tables[name]):
                fewer = {n: list(rows) for n, rows in tables.items()}
                fewer[name].remove(row)
                trial = (fewer, until) if tables is since else (since, fewer)
                if _wrong(spark, part, *trial):
                    tables[name] = fewer[name]
    shown = "\n".join(f"  {t}: {since[t]}\n   → {until[t]}" for t in SCHEMAS if since[t] or until[t])
    return f"seed {seed}: not what Spark says\n{part.sql}\n{shown}\nin\n{query.sql}"


def _wrong(spark: SparkSession, query: Query, since: dict[str, Rows], until: dict[str, Rows]) -> bool:
    try:
        View(spark, DDL, query.sql).assert_law(since, until)
    except AssertionError:
        return True
    except Exception:  # another error than the one looked for: not a smaller case of it
        return False
    return False


def run(spark: SparkSession, seed: int, seconds: float, most: int = 1_000_000, steps: int = 3) -> Found:
    """Cases from the seed on until the time is over. Raises WrongError."""
    found, started = Found(), time.monotonic()
    for number in range(most):
        if time.monotonic() - started > seconds:
            break
        try:
            case(spark, seed + number, steps, found)
        except WrongError:
            raise
        except Exception as error:
            raise WrongError(f"seed {seed + number}: {type(error).__name__}: {error}") from error
    return found


def run_edits(spark: SparkSession, seed: int, seconds: float, most: int = 1_000_000) -> Edited:
    """Edits from the seed on until the time is over. Raises WrongEditError."""
    found, started = Edited(), time.monotonic()
    for number in range(most):
        if time.monotonic() - started > seconds:
            break
        folder = Path(tempfile.mkdtemp(prefix="edits-"))
        try:
            edited_lake(spark, folder, seed + number, lambda query: _planned_by_spark(spark, query), found)
        except WrongEditError:
            raise
        except Exception as error:
            raise WrongEditError(f"seed {seed + number}: {type(error).__name__}: {error}") from error
        finally:
            shutil.rmtree(folder)
    return found


def _main_of_edits(console: Console, seed: int, seconds: float) -> int:
    try:
        found = run_edits(make_session(LONG), seed, seconds)
    except WrongEditError as error:
        console.print(str(error), markup=False, soft_wrap=True)
        return 1
    kinds = sorted({kind for _, kind in found.kinds})
    table = Table("edit", *kinds)
    for edit in sorted({edit for edit, _ in found.kinds}):
        table.add_row(edit, *(str(found.kinds[edit, kind]) for kind in kinds))
    console.print(table)
    console.print(f"{found.kinds.total()} edits, and {found.refreshes} refreshes after them")
    return 0


def main() -> int:
    """Run, print the coverage, and say whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--edits", action="store_true", help="edits of queries instead of refreshes")
    options = parser.parse_args()
    console = Console()
    if options.edits:
        return _main_of_edits(console, options.seed * 1_000_000, options.seconds)
    try:
        found = run(make_session(LONG), options.seed * 1_000_000, options.seconds)
    except WrongError as error:
        console.print(str(error), markup=False, soft_wrap=True)
        return 1
    table = Table("operator", "rule", "refreshes by kind of change")
    for name, rule in sorted({(name, rule) for name, rule, _ in found.coverage}):
        kinds = ", ".join(f"{kind} {found.coverage[name, rule, kind]}" for kind in KINDS)
        table.add_row(name, rule, kinds)
    console.print(table)
    console.print(", ".join(f"{operator} {n}" for operator, n in sorted(found.operators.items())))
    console.print(f"{found.refreshes} refreshes, {found.moved} with changes to show, {found.share:.0%} of those incremental")
    if found.refused:
        console.print(f"{found.refused} queries that Spark itself can't plan")
    for reason, number in found.recomputed.most_common():
        console.print(f"  {number} × {reason}", markup=False)
    missing = found.unexercised()
    if missing:
        console.print(f"never exercised: {', '.join(missing)}")
    return 1 if missing or found.share < 0.9 else 0


if __name__ == "__main__":
    sys.exit(main())
