"""python -m benchmarks.tpcds: TPC-DS's 99 queries as views, four of them in two parts, through two rounds of changes.

With --explain: only what a refresh of each will do, by its definition; no table is made. Otherwise tables are generated and changed twice,
then each query (or each that is named) is built before the changes and refreshed to each round; after each refresh all rows are compared
with the query run again. A query that fails is noted, and the rest goes on. Results go to benchmarks/results/tpcds.json after each query,
where those of other queries stay. docs/reference/tpcds.md is made of them (`python -m docs.generate`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measure import DATA, RESULTS, save
from examples.tpcds.lake import ANSWERS, Explained, Explaining, opened, queries, tables_of
from examples.tpcds.tables import Tpcds
from lake import Lakehouse
from lake.spark.session import make_session

_ROOT = DATA / "tpcds"
_ROUNDS = 2
_SPARK = {
    "spark.master": "local[2]",
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""For tables of some thousand rows and plans that run a few times. Nothing here is timed to be compared; and no refresh falls back for its
cost where its tables have less than 64 MB."""


@dataclass(frozen=True)
class Round:
    """One refresh, and its rows compared with the query's. `mode`, `reason`: as the refresh reports them."""

    mode: str
    reason: str
    inserted: int
    deleted: int
    rows: int
    missing: int
    surplus: int
    rounded: int
    seconds: float

    @property
    def exact(self) -> bool:
        return self.missing == self.surplus == 0


@dataclass
class Case:
    """One query: whether it is incremental by `explain`, its rounds, the build first, and its error if it failed."""

    incremental: bool = False
    reason: str = ""
    rounds: list[Round] = field(default_factory=list)
    error: str = ""

    @property
    def answer(self) -> str:
        """What came of it, in a word or two."""
        if self.error:
            return "failed"
        if not all(one.exact for one in self.rounds):
            return "NOT exact"
        recomputed = any(one.reason or one.mode not in ("build", "incremental", "none") for one in self.rounds[1:])
        return "recomputed" if recomputed else "incremental"


class Bench:
    """The tables with all rounds of changes made, and where each table was after each."""

    def __init__(self, names: Sequence[str]) -> None:
        shutil.rmtree(_ROOT, ignore_errors=True)
        self.lake: Lakehouse = opened(_ROOT, names, _SPARK)
        tables = Tpcds(self.lake.spark, _ROOT, tables_of(names))
        tables.load()
        self.heads = [self._heads()]
        for step in range(1, _ROUNDS + 1):
            tables.change(step)
            self.heads.append(self._heads())

    def _heads(self) -> dict[str, int]:
        return {table: self.lake.source_head(table).version.number for table in self.lake.config.tables}

    def run(self, query: str) -> Case:
        """Build the query's view, refresh it round by round, and compare after each."""
        case = Case()
        try:  # any failure is a result of this query, and the others go on
            found = self.lake.explain(query)
            case.incremental, case.reason = found.incremental, found.reason
            for heads in self.heads:
                case.rounds.append(self._round(query, {table: heads[table] for table in found.sources}))
        except Exception as error:
            case.error = f"{type(error).__name__}: {error}"
        return case

    def _round(self, query: str, heads: Mapping[str, int]) -> Round:
        started = time.monotonic()
        result = self.lake.refresh(query, heads)
        took = time.monotonic() - started
        found = self.lake.verify(query)
        changed = (result.rows_inserted, result.rows_deleted)
        return Round(result.mode, result.reason, *changed, found.rows, found.missing, found.surplus, found.rounding.rows, round(took, 2))


def run(names: Sequence[str]) -> dict[str, Case]:
    """All queries, each kept as soon as it is done."""
    bench, found = Bench(names), dict[str, Case]()
    for query in names:
        case = found[query] = bench.run(query)
        steps = "; ".join(_told(one) for one in case.rounds)
        print(f"{query}: {case.answer}; {steps} {case.error[:2000]}", flush=True)
        keep(found)
    return found


def _told(one: Round) -> str:
    wrong = "" if one.exact else f", {one.missing} MISSING, {one.surplus} TOO MANY"
    return f"{one.mode} +{one.inserted} -{one.deleted} of {one.rows} in {one.seconds} s{wrong}{one.reason and f' ({one.reason})'}"


def keep(found: Mapping[str, Case]) -> None:
    """Write what was found so far, among what was found before of other queries."""
    file = RESULTS / "tpcds.json"
    before = json.loads(file.read_text())["queries"] if file.exists() else {}
    cases = before | {query: {"answer": case.answer, **asdict(case)} for query, case in found.items()}
    counts = Counter(case["answer"] for case in cases.values())
    save("tpcds", {"rounds": _ROUNDS, "counts": counts, "queries": {query: cases[query] for query in sorted(cases)}})


def show(found: Mapping[str, Case]) -> None:
    """What was not incremental, by explain or in fact; then the counts."""
    shown = Table("query", "by explain", "in fact", "why")
    for query, case in found.items():
        if case.answer != "incremental" or not case.incremental:
            why = case.error or "; ".join(dict.fromkeys(one.reason for one in case.rounds[1:] if one.reason)) or case.reason
            shown.add_row(query, "incremental" if case.incremental else "not incremental", case.answer, why)
    Console().print(shown)
    counts = Counter(case.answer for case in found.values())
    Console().print(", ".join(f"{answer}: {count}" for answer, count in counts.items()))


def explained(names: Sequence[str]) -> list[Explained]:
    """What `explain` says of each query; each is reported as soon as it is known, since all of them take minutes."""
    explaining, found = Explaining(make_session(_SPARK)), list[Explained]()
    for name in names:
        cpu = time.process_time()
        found.append(explaining.explained(name))
        told = f"{found[-1].answer} {found[-1].reason}"
        print(f"{name}: {told} ({time.process_time() - cpu:.1f} CPU s of Python)", file=sys.stderr, flush=True)
    return found


def counted(found: Sequence[Explained]) -> dict[str, int]:
    """How many queries get which answer, and how many depend on the order of rows."""
    answers = Counter(one.answer for one in found)
    ordered = sum(bool(one.explanation and one.explanation.warning) for one in found)
    return {**{answer: answers[answer] for answer in ANSWERS}, "order-dependent": ordered}


def as_json(one: Explained) -> dict[str, Any]:
    """One query's answer, with each operator that is recomputed and the rules of all."""
    body: dict[str, Any] = {"answer": one.answer, "reason": one.reason, "recomputed": [list(pair) for pair in one.operators]}
    if one.explanation is not None:
        rules = list(dict.fromkeys(step.rule for step in one.explanation.steps))
        body |= {"key": list(one.explanation.key), "warning": one.explanation.warning, "scope": list(one.explanation.scope), "rules": rules}
    return body


def show_explained(found: Sequence[Explained], as_text: bool) -> None:
    """A row for each query, then the counts."""
    if not as_text:
        print(json.dumps({"queries": {one.query: as_json(one) for one in found}, "counts": counted(found)}, indent=1))
        return
    shown = Table("query", "refresh", "why")
    for one in found:
        warning = one.explanation.warning if one.explanation else ""
        shown.add_row(one.query, one.answer, "; ".join(text for text in (one.reason, warning and f"order-dependent: {warning}") if text))
    Console().print(shown)
    Console().print(", ".join(f"{name}: {count}" for name, count in counted(found).items()))


def main() -> int:
    """Print the table; 1 where a view was not exact or failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("queries", nargs="*", default=[], help="such as q01 q14a; all by default")
    parser.add_argument("--explain", action="store_true", help="only say what a refresh of each query will do")
    parser.add_argument("--json", action="store_true", help="with --explain: print JSON")
    options = parser.parse_args()
    names = options.queries or list(queries())
    if unknown := sorted(set(names) - set(queries())):
        parser.error(f"no such queries: {', '.join(unknown)}; there are {', '.join(queries())}")
    if options.explain:
        show_explained(explained(names), not options.json)
        return 0
    found = run(names)
    show(found)
    return int(any(case.answer in ("failed", "NOT exact") for case in found.values()))


if __name__ == "__main__":
    sys.exit(main())
