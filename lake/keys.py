"""The key of a view: a set of its columns that tells its rows apart, derived through the tree from the sources' primary keys.

Key columns that the query does not select are added to the tree's output, so that they can be carried hidden. A view without
a key is a multiset. A key that follows from grouping is certain; one that leans on a declared primary key is checked when
rows are published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lake.catalyst import Catalyst
from lake.nodes import Expression, Node


@dataclass(frozen=True)
class Key:
    """Attribute ids of the root's output; `declared`: it leans on a primary key that somebody declared."""

    ids: tuple[int, ...]
    declared: bool


def with_key(node: Node, catalyst: Catalyst, primary_keys: Mapping[str, Sequence[str]]) -> tuple[Node, Key | None]:
    """The tree with its key among its output, and the key; (equivalent tree, None) where there is none."""
    below = [with_key(child, catalyst, primary_keys) for child in node.children]
    children, keys = [n for n, _ in below], [k for _, k in below]
    match node.kind:
        case "Project" if keys[0] is not None:
            return _projected(node, children, keys[0], catalyst)
        case "Aggregate":
            return _grouped(node, children, catalyst)
        case "Join":
            return catalyst.over(node, children), _joined(node, children, keys, catalyst)
        case "Filter" | "Sort" | "Window" | "Limit" | "BatchEvalPython" | "ArrowEvalPython":
            return catalyst.over(node, children), keys[0]
        case _:
            return (catalyst.over(node, node.children), None) if node.children else (node, _declared(node, primary_keys))


def _declared(node: Node, primary_keys: Mapping[str, Sequence[str]]) -> Key | None:
    names = {a.name.lower(): a.id for a in node.output}
    columns = primary_keys.get(node.source or "", ())
    return Key(tuple(names[c.lower()] for c in columns), True) if columns else None


def _projected(node: Node, children: Sequence[Node], key: Key, catalyst: Catalyst) -> tuple[Node, Key]:
    aliases: dict[int, int] = {}
    for output_id, java in catalyst.definitions(node).items():
        expression = catalyst.expression(java)
        if expression.plain and expression.attribute is not None:
            aliases.setdefault(expression.attribute, output_id)
    missing = [a for a in children[0].output if a.id in key.ids and a.id not in aliases]
    ids = tuple(aliases.get(i, i) for i in key.ids)
    return catalyst.over(node, children, [a.java for a in missing]), Key(ids, key.declared)


def _grouped(node: Node, children: Sequence[Node], catalyst: Catalyst) -> tuple[Node, Key | None]:
    grouping = catalyst.expressions(node.plan.groupingExpressions())
    if not grouping or not all(catalyst.hashable(g) for g in grouping):
        return catalyst.over(node, node.children), None
    definitions = catalyst.definitions(node)
    ids: list[int] = []
    extra = []
    for expression in grouping:
        found = _defining(expression, definitions)
        if found is None:
            named = catalyst.named(expression)
            extra.append(named)
            found = int(named.exprId().id())
        ids.append(found)
    return catalyst.over(node, node.children, extra), Key(tuple(dict.fromkeys(ids)), False)


def _defining(expression: Expression, definitions: Mapping[int, object]) -> int | None:
    for output_id, java in definitions.items():
        if expression.java.semanticEquals(java):
            return output_id
    return None


def _joined(node: Node, children: Sequence[Node], keys: Sequence[Key | None], catalyst: Catalyst) -> Key | None:
    left, right = keys
    kind = catalyst.join_type(node)
    if kind in ("LeftSemi", "LeftAnti", "ExistenceJoin"):
        return left
    if left is None or right is None:
        return None
    pairs = catalyst.equi_keys(catalyst.over(node, children))
    both = Key(tuple(dict.fromkeys(left.ids + right.ids)), left.declared or right.declared)
    if kind != "FullOuter" and kind != "RightOuter" and _covers(right, [b for _, b, _ in pairs]):
        return Key(left.ids, both.declared)
    if kind != "FullOuter" and kind != "LeftOuter" and _covers(left, [a for a, _, _ in pairs]):
        return Key(right.ids, both.declared)
    return both


def _covers(key: Key, equated: Sequence[Expression]) -> bool:
    """Whether the join's equalities fix the whole key of a side, so that it has one row at the most for each of the other."""
    return set(key.ids) <= {e.attribute for e in equated if e.plain}
