"""Finds in an analysed plan what a view's query must not have: nondeterministic functions, and tables that are not declared."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lake.catalyst import Catalyst
from lake.catalyst.census import Census
from lake.spark.failures import SPARK_ERRORS
from lake.spark.jvm.gateway import Java

NOW = ("now", "today", "tomorrow", "yesterday")
"""Strings that stand for the current time where they are cast to a time."""
TIME_OF_DAY = r"T?\d{1,2}:[\d:.]"
"""How a string begins that has no date: cast to TIMESTAMP, it is a time of the current day."""
_TIMES = ("date", "timestamp", "timestamp_ntz")
_ENVIRONMENT = {
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
    "SparkVersion": "version",
    "SQLKeywords": "sql_keywords",
    "Collations": "collations",
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


@dataclass(frozen=True)
class Inspection:
    """What was found. `environment`: functions of the time, the user, the session or Spark itself, `random`: nondeterministic functions,
    both by name; `sources`: the placeholders that are read, None for a DataFrame that is not one; `undeclared`: other tables, as Spark
    prints them."""

    deterministic: bool
    environment: tuple[str, ...]
    random: tuple[str, ...]
    sources: frozenset[str | None]
    undeclared: tuple[str, ...]


def inspected(plan: Java, catalyst: Catalyst) -> Inspection:
    """Inspect a plan with its subqueries."""
    census = catalyst.census(plan)
    deterministic = bool(plan.deterministic())
    return Inspection(
        deterministic=deterministic,
        environment=tuple(sorted({_ENVIRONMENT[kind.name] for kind in census.kinds if kind.name in _ENVIRONMENT} | _casts_of_now(census))),
        random=(*(() if deterministic else _random(census, catalyst)), *_random_vectors(census)),
        sources=frozenset(catalyst.source_of(java) for _, java in census.of(["LogicalRDD"])),
        # also those of which the optimiser needs only the log, as for count(*)
        undeclared=tuple(str(java.simpleString(80)) for _, java in census.of(_UNDECLARED)),
    )


def _casts_of_now(census: Census) -> set[str]:
    """Casts of literals to times that depend on the current time: of 'now' and the like, and of a time without a date."""
    casts = [java for _, java in census.of(("Cast", "ParseToDate", "ParseToTimestamp")) if java.children().size() == 1]
    constant = [(java, of) for java in casts if str((of := java.children().head()).dataType().typeName()) == "string" and of.foldable()]
    found = {(_folded(of), str(java.dataType().typeName())) for java, of in constant}
    return {f"CAST('{word}' AS {kind})" for word, kind in found if kind in _TIMES and _of_today(word.strip(), kind)}


def _folded(java: Java) -> str:
    """The value of a constant expression; empty where only the optimiser can compute it."""
    try:
        return str(java.eval(None))
    except SPARK_ERRORS:
        return ""


def _of_today(word: str, kind: str) -> bool:
    return word.lower() in NOW or (kind == "timestamp" and re.match(TIME_OF_DAY, word) is not None)


def _random_vectors(census: Census) -> tuple[str, ...]:
    """Encryption with a random initialization vector, which Spark calls deterministic: not in mode ECB, nor with a literal vector."""
    for _, java in census.of(["AesEncrypt"]):
        ecb = java.mode().foldable() and str(java.mode().eval(None)).upper() == "ECB"
        if not ecb and not (java.iv().foldable() and java.iv().eval(None)):
            return ("aes_encrypt without a literal initialization vector",)
    return ()


def _random(census: Census, catalyst: Catalyst) -> tuple[str, ...]:
    """The functions that are nondeterministic themselves, not by their arguments."""
    found = set()
    for _, java in census.where(lambda kind: kind.is_expression):
        if not java.deterministic() and all(child.deterministic() for child in catalyst.list(java.children())):
            found.add(str(java.prettyName()))
    return tuple(sorted(found))
