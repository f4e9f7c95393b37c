"""Makes a lakejoin.yml of a dbt project: models become views, sources, seeds and snapshots become tables. No Spark.

In compiled SQL dbt writes relations by their names in the warehouse. Each is replaced by the name of the view or table that it is now:

    SELECT o.id FROM "db"."shop"."stg_orders" o   →   SELECT o.id FROM stg_orders o
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import yaml

from lake.config.dbt_manifest import IDENTIFIER, DbtManifest, DbtNode, parts_of
from lake.config.loader import load
from lake.config.models import Config
from lake.errors import ConfigError

_SPARK = ("spark", "databricks", "glue", "fabricspark", "")
_QUOTES_ARE_STRINGS = (*_SPARK, "bigquery", "mysql", "clickhouse")
"""Adapters whose SQL has strings in double quotes; in that of others, names are."""
_TOKEN = re.compile(
    rf"(?P<kept>--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*')|(?P<name>(?:{IDENTIFIER})(?:\s*\.\s*(?:{IDENTIFIER}))*)", re.DOTALL
)
_CTE = re.compile(rf"(?:\bwith\b(?:\s+recursive\b)?|,)\s*({IDENTIFIER})\s*(?:\([^()]*\)\s*)?\bas\s*\(", re.IGNORECASE)
_ALIAS = re.compile(rf"\s+(?:as\s+)?({IDENTIFIER})", re.IGNORECASE)
_CLAUSES = re.compile(
    "on|where|join|inner|left|right|full|cross|outer|semi|anti|natural|using|group|order|having|union|except|intersect|minus|limit|offset"
    "|lateral|window|qualify|tablesample|pivot|unpivot|distribute|cluster|sort",
    re.IGNORECASE,
)
"""Words after a table's name that are no alias of it."""
_HEAD = """# Written by lakejoin import dbt from {source}.
# Views are stored in `target`, apart from the tables that dbt builds. ${{VARIABLES}} come from the environment.
"""


@dataclass(frozen=True)
class NotImported:
    """A node that is no view. `as_table`: views read it, so it is a table, which dbt goes on to build."""

    name: str
    reason: str
    as_table: bool = False


@dataclass(frozen=True)
class Imported:
    """A configuration that was made of a manifest, as the text of its file."""

    text: str
    views: tuple[str, ...]
    tables: tuple[str, ...]
    skipped: tuple[NotImported, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "text"}


def import_dbt(manifest: DbtManifest, source: str) -> Imported:
    """The configuration of a manifest. `source`: the manifest's name, for a comment. Raises ConfigError if no model can be a view."""
    names = _named(manifest.nodes)
    relations = {_lowered(node.relation): (name, node.relation[-1]) for node, name in names.items() if node.relation}
    rewriting = _Rewriting(relations, manifest.adapter)
    skipped = {node: reason for node in manifest.nodes if node.kind == "model" and (reason := _no_view(node, names[node], rewriting))}
    views = [node for node in manifest.nodes if node.kind == "model" and node not in skipped]
    if not views:
        listed = "".join(f"\n- {node.name}: {reason}" for node, reason in skipped.items()) or " It has no models."
        raise ConfigError(f"No model of {source} can be a view.{listed}")
    rewritten = {node: rewriting.of(node.code) for node in views}
    read = {name for _, found in rewritten.values() for name in found}
    others = [n for n in manifest.nodes if n.kind != "model" or (n in skipped and n.relation and names[n] in read)]
    data = {
        "root": ".",
        "tables": {names[node]: _table(node) for node in others},
        "views": {names[node]: _view(node, rewritten[node][0]) for node in views},
    }
    load(data)  # what it can't load must not be written
    missing = tuple(NotImported(names[node], reason, node in others) for node, reason in skipped.items())
    text = _HEAD.format(source=source) + yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return Imported(text, tuple(data["views"]), tuple(data["tables"]), missing, tuple(_warnings(manifest)))


def _named(nodes: Sequence[DbtNode]) -> dict[DbtNode, str]:
    """The name of each node: its own; with its source or package before it, if another node has that name. Models choose first."""
    found: dict[DbtNode, str] = {}
    taken = set[str]()
    for node in sorted(nodes, key=lambda node: node.kind != "model"):
        plain = [re.sub(r"\W", "_", name, flags=re.ASCII) for name in (node.name, node.qualified)]
        numbered = (f"{plain[1]}_{number}" for number in range(2, len(nodes) + 3))
        name = next(name for name in [*plain, *numbered] if name.lower() not in taken)
        found[node] = name
        taken.add(name.lower())
    return found


def _no_view(node: DbtNode, name: str, rewriting: _Rewriting) -> str:
    """Why a model can't be a view, empty if it can."""
    if node.materialized == "ephemeral":
        return "it is ephemeral: dbt has put its SQL into that of the models that read it"
    if node.language != "sql":
        return f"it is written in {node.language.capitalize()}: write a function for it (`function: module:name`)"
    if not node.code.strip():
        return 'it was not compiled: run "dbt compile" first'
    if _lowered(node.relation) in {_lowered(parts) for parts in _relations_in(node.code)}:
        return 'its SQL is that of an incremental run, which reads its own table: run "dbt compile --full-refresh" first'
    if "${" in node.code:
        return "its SQL has ${...}, which lakejoin.yml would take for a variable: put it in a file (`query_file`)"
    if hidden := rewriting.hidden(node.code):
        return f"it has a CTE named {hidden}, which would hide the table of that name that it also reads: rename the CTE"
    return "" if Config.is_view_name(name) else f"a view can't be named {name}: give the model another name"


def _lowered(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)


def _relations_in(code: str) -> Iterator[tuple[str, ...]]:
    return (parts_of(token["name"]) for token in _TOKEN.finditer(code) if token["name"])


@dataclass
class _Rewriting:
    """Replaces relations in SQL. `relations`: the new name of each and the last part of the old one, by its parts in lower case."""

    relations: Mapping[tuple[str, ...], tuple[str, str]]
    adapter: str

    def of(self, code: str) -> tuple[str, set[str]]:
        """The SQL with new names, and those that are in it."""
        pieces, found, end = list[str](), set[str](), 0
        for token in _TOKEN.finditer(code):
            pieces += [_tidy(code[end : token.start()]), token["kept"] or self._name(token["name"], code[token.end() :], found)]
            end = token.end()
        text = "".join([*pieces, _tidy(code[end:])]).strip().rstrip(";").rstrip()
        return text + "\n" if "\n" in text else text, found

    def hidden(self, code: str) -> str:
        """The name of a CTE that a relation would be taken for, outside of the CTE's own query; empty if there is none."""
        plain = _TOKEN.sub(lambda token: " " * len(token[0]) if token["kept"] else token[0], code)
        queries = [(parts_of(cte[1])[0].lower(), cte.start(), _closing(plain, cte.end())) for cte in _CTE.finditer(plain)]
        for token in _TOKEN.finditer(code):
            new, _ = self.relations.get(_lowered(parts_of(token["name"] or "")), ("", ""))
            for cte, start, end in queries:
                if new.lower() == cte and token.start() > end > start:
                    return new
        return ""

    def _name(self, name: str, after: str, found: set[str]) -> str:
        parts = parts_of(name)
        for length in (len(parts), 3, 2):
            known = self.relations.get(_lowered(parts[:length])) if length <= len(parts) else None
            if known is None:
                continue
            new, old = known
            found.add(new)
            if length < len(parts):  # a column with the whole name of its table
                return ".".join(f"`{part}`" if not part.isidentifier() else part for part in [old, *parts[length:]])
            alias = _ALIAS.match(after)
            aliased = new.lower() == old.lower() or (alias is not None and not _CLAUSES.fullmatch(alias[1]))
            return new if aliased else f"{new} AS `{old}`"
        return name if self.adapter in _QUOTES_ARE_STRINGS else re.sub(r'"((?:[^"]|"")*)"', _in_backticks, name)


def _closing(code: str, start: int) -> int:
    """Where the parenthesis closes that was opened before a place in SQL without strings and comments."""
    depth = 1
    for place in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return place
    return len(code)


def _in_backticks(quoted: re.Match[str]) -> str:
    return "`" + quoted[1].replace('""', '"').replace("`", "``") + "`"


def _tidy(between: str) -> str:
    """What is between names and strings, without what keeps YAML from writing the lines of a text as they are."""
    return re.sub(r"[ \t]+(?=\r?\n)", "", between).replace("\r\n", "\n").expandtabs(4)


def _table(node: DbtNode) -> dict[str, Any]:
    name = ".".join(part if re.fullmatch(r"\w+", part) else f"`{part}`" for part in node.relation)
    place = {"path": node.path} if node.path else {"name": name}
    return {**place, **({"primary_key": list(node.key)} if node.key else {})}


def _view(node: DbtNode, query: str) -> dict[str, Any]:
    description = node.description.replace("${", "$ {")  # no variable
    settings: dict[str, Any] = {"description": description, "owner": node.owner, "tags": list(node.tags), "key": list(node.key)}
    return {name: value for name, value in settings.items() if value} | {"query": query}


def _warnings(manifest: DbtManifest) -> Iterator[str]:
    if manifest.adapter not in _SPARK:
        yield f"The models were compiled for {manifest.adapter}, and Lakejoin runs Spark SQL: look through the queries."


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)
