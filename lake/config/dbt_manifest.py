"""Reads dbt's manifest.json: models, sources, seeds and snapshots as records, with what its tests and constraints say of keys. No Spark.

Written for the schemas v10 to v12 (dbt 1.6 and newer), https://schemas.getdbt.com/dbt/manifest/v12.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lake.errors import ConfigError

VERSIONS = range(10, 13)
_VERSION = re.compile(r"/manifest/v(\d+)\.json$")
IDENTIFIER = r'"(?:[^"]|"")*"|`(?:[^`]|``)*`|[A-Za-z_]\w*'
"""A name in SQL, in quotes or without."""
_COLUMN = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class DbtNode:
    """A model, source, seed or snapshot.

    `qualified`: its name after that of its source or package; `relation`: the parts of its name in the warehouse, none of an ephemeral
    model; `code`: the compiled SQL, empty if it was not compiled; `path`: its location, empty if only its name is known.
    """

    kind: Literal["model", "source", "seed", "snapshot"]
    name: str
    qualified: str
    relation: tuple[str, ...]
    materialized: str
    language: str
    code: str
    key: tuple[str, ...]
    description: str
    owner: str
    tags: tuple[str, ...]
    path: str


@dataclass(frozen=True)
class DbtManifest:
    """What Lakejoin needs of a manifest. `adapter`: dbt's adapter, by which the SQL was compiled."""

    adapter: str
    nodes: tuple[DbtNode, ...]


def read_manifest(file: Path) -> DbtManifest:
    """Read a manifest. Raises ConfigError."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        schema = str(data["metadata"]["dbt_schema_version"])
    except OSError as error:
        remedy = 'Name the manifest.json that "dbt compile" writes to target/.'
        raise ConfigError(f"{file} can't be read ({error.strerror}). {remedy}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise ConfigError(f'{file} is no manifest of dbt. Name the manifest.json that "dbt compile" writes to target/.') from error
    version = _VERSION.search(schema)
    if version is None or int(version[1]) not in VERSIONS:
        raise ConfigError(f"{file} has the schema {schema}. Lakejoin reads manifests v10 to v12, which dbt 1.6 and newer versions write.")
    try:
        return DbtManifest(str(data["metadata"].get("adapter_type") or ""), tuple(_nodes(data)))
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ConfigError(f"{file} is not as manifests of {schema} are: {type(error).__name__}: {error}.") from error


def _nodes(data: Mapping[str, Any]) -> Iterator[DbtNode]:
    tested = _tested(data)
    owners = {str(g["name"]): str(_given(g.get("owner") or {}, "email", "name")) for g in (data.get("groups") or {}).values()}
    for identifier, node in {**data["nodes"], **data["sources"]}.items():
        if node["resource_type"] in ("model", "source", "seed", "snapshot"):
            yield _node(node, tested.get(identifier, _Tested()), owners)


def _node(node: Mapping[str, Any], tested: _Tested, owners: Mapping[str, str]) -> DbtNode:
    config, kind = node.get("config") or {}, node["resource_type"]
    meta = {**(node.get("meta") or {}), **(config.get("meta") or {})}
    name = str(node["alias"] if kind == "model" and node.get("version") is not None else node["name"])
    before = node["source_name"] if kind == "source" else node.get("package_name", "dbt")
    relation = parts_of(str(node.get("relation_name") or ""))
    owner = meta.get("owner") or owners.get(str(node.get("group") or config.get("group") or ""), "")
    return DbtNode(
        kind,
        name,
        f"{before}_{name}",
        relation,
        str(config.get("materialized") or ""),
        str(node.get("language") or "sql"),
        str(node.get("compiled_code") or ""),
        _key(node, config, tested),
        str(node.get("description") or "").strip(),
        owner if isinstance(owner, str) else "",
        tuple(dict.fromkeys(str(tag) for tag in [*(node.get("tags") or ()), *_several(config.get("tags"))])),
        _location([config, meta, node.get("external") or {}], relation),
    )


def parts_of(name: str) -> tuple[str, ...]:
    """`"db"."schema"."name"`, in whatever quotes → (db, schema, name)"""
    parts = re.findall(IDENTIFIER, name)
    return tuple(part[1:-1].replace(part[0] * 2, part[0]) if part[0] in '"`' else part for part in parts)


def _location(places: list[Mapping[str, Any]], relation: tuple[str, ...]) -> str:
    """Where the files of a relation are, by dbt's `location_root`, or by a `path` or `location` that names it; empty if nothing does."""
    for place in places:
        whole = _given(place, "path", "location")
        if whole and not set("*{") & set(whole):  # a pattern names files, not a table
            return whole
        if root := _given(place, "location_root"):
            return f"{root.rstrip('/')}/{relation[-1]}" if relation else ""
    return ""


def _given(place: Mapping[str, Any], *names: str) -> str:
    return next((place[name] for name in names if isinstance(place.get(name), str) and place[name]), "")


def _several(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(each) for each in value or ()]


@dataclass(frozen=True)
class _Tested:
    """What tests that fail a build say of the rows of a node: combinations of columns that are unique, and columns that are never NULL."""

    unique: tuple[tuple[str, ...], ...] = ()
    not_null: frozenset[str] = frozenset()


def _tested(data: Mapping[str, Any]) -> dict[str, _Tested]:
    found: dict[str, _Tested] = {}
    for test in data["nodes"].values():
        about, config = test.get("test_metadata") or {}, test.get("config") or {}
        whole = not config.get("where") and str(config.get("severity") or "error").lower() == "error"
        if test["resource_type"] != "test" or not whole:
            continue
        on = test.get("attached_node") or next(iter((test.get("depends_on") or {}).get("nodes") or ()), "")
        before, kwargs = found.get(on, _Tested()), about.get("kwargs") or {}
        column = test.get("column_name") or kwargs.get("column_name")
        if about.get("name") == "unique" and column:
            found[on] = _Tested((*before.unique, (str(column),)), before.not_null)
        elif about.get("name") == "unique_combination_of_columns":
            found[on] = _Tested((*before.unique, tuple(_several(kwargs.get("combination_of_columns")))), before.not_null)
        elif about.get("name") == "not_null" and column:
            found[on] = _Tested(before.unique, before.not_null | {str(column)})
    return found


def _key(node: Mapping[str, Any], config: Mapping[str, Any], tested: _Tested) -> tuple[str, ...]:
    """The key: a constraint, or columns that tests find unique and not NULL, or a model's `unique_key`; none if there are none of these."""
    candidates = [_several(c.get("columns")) for c in node.get("constraints") or () if c.get("type") == "primary_key"]
    columns = (node.get("columns") or {}).values()
    own = [str(c["name"]) for c in columns if any(k.get("type") == "primary_key" for k in c.get("constraints") or ())]
    candidates += [own, *(list(unique) for unique in tested.unique if tested.not_null.issuperset(unique))]
    if node["resource_type"] != "snapshot":  # which has a row for each version of a key
        candidates.append(_several(config.get("unique_key")))
    plain = (tuple(columns) for columns in candidates if columns and all(map(_COLUMN.fullmatch, columns)))
    return next(plain, ())
