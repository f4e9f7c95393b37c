"""Finds which tables and views a view reads, from the text of its query, without a JVM."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from lake.config.models import Config
from lake.config.view_sources import one_query, query_text


@dataclass(frozen=True)
class Reads:
    """The tables and views that a view reads. There may be tables too many, and views too many if it is not `sure`."""

    names: tuple[str, ...]
    sure: bool = True


def reads(name: str, config: Config) -> Reads:
    """What a view reads: the relations that its query names, or the parameters of its function (all tables if there is no source file).
    Raises ConfigError if the text can't be read."""
    view = config.view(name)
    others = [n for n in [*config.tables, *config.views] if n != name]
    if view.function is not None:
        parameters = _parameters(view.function, config.directory)
        return Reads(tuple(n for n in others if (n in config.tables if parameters is None else {n, n.replace(".", "_")} & {*parameters})))
    text = query_text(view, config)
    words = {word.lower() for word in re.findall(r"\w+", text)}
    found = Reads(tuple(n for n in others if n.lower().rpartition(".")[2] in words))
    if not any(n in config.views for n in found.names):
        return found  # a table too many only starts a refresh that has nothing to do
    relations = _relations(text)
    return Reads(found.names, sure=False) if relations is None else Reads(tuple(n for n in others if n.lower() in relations))


def _relations(text: str) -> set[str] | None:
    """The tables that a query names, by the scopes of its names; None if it can't be parsed here (Spark reports the error)."""
    import sqlglot  # half a second: only if views read views
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    try:
        scopes = traverse_scope(sqlglot.parse_one(one_query(text), dialect="spark"))
    except sqlglot.errors.SqlglotError:
        return None
    tables = [source for scope in scopes for source in scope.sources.values() if isinstance(source, exp.Table)]
    return {".".join(part.name for part in table.parts).lower() for table in tables}


def _parameters(function: str, directory: Path) -> list[str] | None:
    """The parameters of a function, read from its source file beside the configuration; None if it is not there."""
    module, _, wanted = function.partition(":")
    file = directory / Path(*module.split(".")).with_suffix(".py")
    if not file.is_file():
        return None
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == wanted:
            return [argument.arg for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
    return None
