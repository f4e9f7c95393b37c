"""Finds in an analysed plan what a view's query must not have: nondeterministic functions, and tables that are not declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lake.catalyst import Catalyst
from lake.catalyst.expressions import EXPRESSION
from lake.spark.jvm.gateway import Java

NOW = ("now", "today", "tomorrow", "yesterday")
"""Strings that stand for the current time where they are cast to a time."""
_TIMES = ("date", "timestamp", "timestamp_ntz")
_TIME_AND_USER = {
    "CurrentDate": "current_date",
    "CurDateExpressionBuilder": "curdate",
    "CurrentTimestamp": "current_timestamp",
    "CurrentTime": "current_time",
    "Now": "now",
    "LocalTimestamp": "localtimestamp",
    "CurrentTimeZone": "current_timezone",
    "CurrentUser": "current_user",
    "CurrentDatabase": "current_database",
    "CurrentCatalog": "current_catalog",
    "CurrentPath": "current_path",
    "VariableReference": "a session variable",
    "Sample": "TABLESAMPLE",
}
_UNDECLARED = (
    "LogicalRelation",
    "DataSourceV2Relation",
    "DataSourceV2ScanRelation",
    "HiveTableRelation",
    "InMemoryRelation",
    "ExternalRDD",
)
"""Leaves of a plan that read rows, and are no placeholders."""

_Census = Sequence[tuple[str, Java]]


@dataclass(frozen=True)
class Inspection:
    """What was found. `time_and_user`: functions of the time, the user or the session, `random`: nondeterministic functions, both by name;
    `sources`: the placeholders that are read, None for a DataFrame that is not one; `undeclared`: other tables, as Spark prints them."""

    deterministic: bool
    time_and_user: tuple[str, ...]
    random: tuple[str, ...]
    sources: frozenset[str | None]
    undeclared: tuple[str, ...]


def inspected(plan: Java, catalyst: Catalyst) -> Inspection:
    """Inspect a plan with its subqueries."""
    census = catalyst.census(plan)
    deterministic = bool(plan.deterministic())
    return Inspection(
        deterministic=deterministic,
        time_and_user=tuple(sorted({_TIME_AND_USER[kind] for kind, _ in census if kind in _TIME_AND_USER} | _casts_of_now(census))),
        random=(*(() if deterministic else _random(census, catalyst)), *_random_vectors(census)),
        sources=frozenset(catalyst.source_of(java) for kind, java in census if kind == "LogicalRDD"),
        # also those of which the optimiser needs only the log, as for count(*)
        undeclared=tuple(str(java.simpleString(80)) for kind, java in census if kind in _UNDECLARED),
    )


def _casts_of_now(census: _Census) -> set[str]:
    """Casts of 'now' and the like to times."""
    casts = [(java, java.children().head()) for kind, java in census if kind in ("Cast", "ParseToDate", "ParseToTimestamp")]
    found = {str(of.eval(None)): str(java.dataType().typeName()) for java, of in casts if of.foldable()}
    return {f"CAST('{word}' AS {kind})" for word, kind in found.items() if kind in _TIMES and word.strip().lower() in NOW}


def _random_vectors(census: _Census) -> tuple[str, ...]:
    """Encryption with a random initialization vector, which Spark calls deterministic: not in mode ECB, nor with a literal vector."""
    for java in (java for kind, java in census if kind == "AesEncrypt"):
        ecb = java.mode().foldable() and str(java.mode().eval(None)).upper() == "ECB"
        if not ecb and not (java.iv().foldable() and java.iv().eval(None)):
            return ("aes_encrypt without a literal initialization vector",)
    return ()


def _random(census: _Census, catalyst: Catalyst) -> tuple[str, ...]:
    """The functions that are nondeterministic themselves, not by their arguments."""
    found = set()
    for _, java in census:
        random = catalyst.is_a(java, EXPRESSION) and not java.deterministic()
        if random and all(child.deterministic() for child in catalyst.list(java.children())):
            found.add(str(java.prettyName()))
    return tuple(sorted(found))
