"""docs/reference/tpcds.md, from benchmarks/results/tpcds.json: what refreshes of TPC-DS's queries did."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from docs.generate.text import cell, paragraphs

_RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "tpcds.json"
_HEAD = "# TPC-DS's queries as views\n\n<!-- Generated from benchmarks/results/tpcds.json by `make docs`. Do not edit. -->\n\n"
Queries = Mapping[str, Mapping[str, Any]]
"""Query → what came of it, as benchmarks/tpcds.py keeps it."""


def page() -> str:
    """The page."""
    found = json.loads(_RESULTS.read_text())
    return f"{_head(found['queries'], found['rounds'])}{''.join(_section(*each, found['queries']) for each in _SECTIONS)}"


def _head(queries: Queries, rounds: int) -> str:
    refreshes = [one for case in queries.values() for one in case["rounds"]]
    exact = sum(one["missing"] == one["surplus"] == 0 for one in refreshes)
    rounded = sum(bool(one["rounded"]) for one in refreshes)
    but = f", {rounded} times but for the rounding of sums of doubles" if rounded else ""
    text = f"""
        TPC-DS is a benchmark of 99 queries over the 24 tables of a retailer. {len(queries)} views (four queries are written in two parts)
        were built over tables of our own generator, and refreshed after each of {rounds} rounds of changes: new sales and returns,
        then updates and deletes in facts and dimensions. After the build and after each refresh all rows were compared with the query run
        again: {exact} of {len(refreshes)} times they were the same{but}. The tables are small, so that this page says what a refresh does,
        and not what it costs. For that, see [performance](../explanation/performance.md)."""
    return f"{_HEAD}{paragraphs(text)}\n"


_SECTIONS: Sequence[tuple[str, str, str]] = (
    ("failed", "Failed", "The build or a refresh ended with an error."),
    ("NOT exact", "Not exact", "The rows of the view were not those of the query."),
    ("recomputed", "Recomputed", "At least one refresh computed the query, or one of its operators, from all rows."),
    ("incremental", "Incremental", "All refreshes read what had changed and what belongs to it."),
)


def _section(answer: str, title: str, text: str, queries: Queries) -> str:
    some = {query: case for query, case in queries.items() if case["answer"] == answer}
    if not some:
        return ""
    reasons = {query: _reason(case) for query, case in some.items()}
    why = any(reasons.values())
    rows = "\n".join(_row(query, case, [reasons[query]] if why else []) for query, case in some.items())
    head = "| Query | Rows | Inserted and deleted |" + (" Why |" if why else "")
    return f"\n## {title} ({len(some)})\n\n{text}\n\n{head}\n|{'---|' * (4 if why else 3)}\n{rows}\n"


def _reason(case: Mapping[str, Any]) -> str:
    return case["error"] or "; ".join(dict.fromkeys(one["reason"] for one in case["rounds"][1:] if one["reason"]))


def _row(query: str, case: Mapping[str, Any], more: Sequence[str]) -> str:
    rounds = case["rounds"]
    rows = f"{rounds[-1]['rows']:,}" if rounds else ""
    changed = ", ".join(f"+{one['inserted']:,} -{one['deleted']:,}" for one in rounds[1:])
    return f"| {' | '.join([query, rows, changed, *map(cell, more)])} |"
