"""The query that a view's table was built with, kept as a property of the table, so that an edited query can be compared with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from lake.config.models import ViewConfig
from lake.spark.session_digest import digest
from lake.views.definition import Definition

DEFINITION = "lakejoin.definition"
"""JSON: the query, the declared key, and the digest of the fingerprint that both belong to."""


@dataclass(frozen=True)
class Recorded:
    """A query as it was written, and the key that was declared for its view."""

    query: str
    key: tuple[str, ...]


def recorded_property(definition: Definition, view: ViewConfig) -> dict[str, str]:
    """The property for a view's table; none for a view that is a Python function."""
    if not definition.text:
        return {}
    body = {"query": definition.text, "key": list(view.key), "of": digest_of(definition.fingerprint)}
    return {DEFINITION: json.dumps(body, separators=(",", ":"))}


def recorded(properties: Mapping[str, str], fingerprint: Mapping[str, str]) -> Recorded | None:
    """What a table's properties say of the query that its rows were published with; None where they say it of another one, or nothing.

    `fingerprint`: that of the newest stamp. Property and stamp are written in two commits, between which a process may end.
    """
    try:
        body = json.loads(properties.get(DEFINITION, ""))
        found = Recorded(body["query"], tuple(body["key"]))
        return found if body["of"] == digest_of(fingerprint) else None
    except (ValueError, TypeError, KeyError):
        return None


def digest_of(fingerprint: Mapping[str, str]) -> str:
    """A digest of what rows depend on besides the sources (the digest of the text is no part of it)."""
    return digest(json.dumps({k: v for k, v in fingerprint.items() if k != "text"}, sort_keys=True))
