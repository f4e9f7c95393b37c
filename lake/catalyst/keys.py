"""The key of a view: a set of its columns that tells its rows apart, derived through the tree from the sources' primary keys.

Key columns that the query does not select are added to the tree's output, so that they can be carried hidden. A view without
a key is a multiset. A key that follows from grouping is certain; one that depends on a declared primary key is checked when
rows are published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lake.catalyst import Catalyst
from lake.catalyst.determinism import order_dependence, ordered_by
from lake.catalyst.nodes import Expression, Node
from lake.spark.jvm.gateway import Java
from lake.spark.types import exactly_comparable


@dataclass(frozen=True)
class Key:
    """Attribute ids of the root's output; `declared`: it depends on a declared primary key; `null`: one of the rows may have
    nothing but NULLs in it; `of_no_null`: two of them would, if declared primary keys of both sides of a full join were NULL."""

    ids: tuple[int, ...]
    declared: bool
    null: bool = True
    of_no_null: bool = False


@dataclass(frozen=True)
class SourceKey:
    """The columns of a source's key, none where it has no key; `null`: one row may have nothing but NULLs in them. A primary key of a table
    is declared not to; a view may have a group of NULLs."""

    columns: tuple[str, ...]
    null: bool


@dataclass(frozen=True)
class Carrying:
    """A tree equivalent to the query's, with its key and its scope among its output.

    `scope`: attribute ids by which the view is refreshed from what it holds: the partitions of order-dependent windows
    (relations/order_dependent.py; groups are in the key), or all columns of an operator whose rows the view holds (relations/stored.py).
    """

    node: Node
    key: Key | None
    scope: tuple[int, ...] = ()


def carrying(node: Node, catalyst: Catalyst, source_keys: Mapping[str, SourceKey]) -> Carrying:
    """The tree with the key of its rows, and its scope, among its output."""
    below = [carrying(child, catalyst, source_keys) for child in node.children]
    children, keys = [b.node for b in below], [b.key for b in below]
    match node.kind:
        case "Project":
            return _projected(node, below[0], catalyst)
        case "Aggregate":
            grouped, key = _grouped(node, children, catalyst)
            return Carrying(grouped, key, tuple(a.id for a in grouped.output) if node.measures else ())
        case "Join":
            one_sided = catalyst.join_type(node) in ("LeftSemi", "LeftAnti", "ExistenceJoin")
            scope = below[0].scope if one_sided else below[0].scope + below[1].scope
            return Carrying(catalyst.over(node, children), _joined(node, children, keys, catalyst), scope)
        case "Window":
            return Carrying(catalyst.over(node, children), keys[0], below[0].scope + _partition(node, catalyst))
        case "Limit" if _of_equal_rows(node, catalyst):
            return Carrying(node, None, tuple(a.id for a in node.output) if node.most else ())
        case "Limit" if node.most:
            limited = catalyst.over(node, children)
            return Carrying(limited, keys[0], tuple(a.id for a in limited.output))
        case "Filter" if (first := catalyst.one_of_each(node)) and (partition := _columns(first.plan.partitionSpec(), catalyst)):
            return Carrying(catalyst.over(node, children), Key(partition, False), below[0].scope)
        case "Filter" | "Sort" | "Limit" | "BatchEvalPython" | "ArrowEvalPython":
            return Carrying(catalyst.over(node, children), keys[0], below[0].scope)
        case _:
            return Carrying(catalyst.over(node, node.children), None) if node.children else Carrying(node, _declared(node, source_keys))


def _of_equal_rows(node: Node, catalyst: Catalyst) -> bool:
    """Whether rows that tie in an ORDER BY ... LIMIT are the same. With a key carried beside them they would not be, and the LIMIT would
    depend on the order in which they arrive."""
    return not node.tie_free and {a.id for a in node.children[0].output} <= ordered_by(node, catalyst)


def tie_free(node: Node, catalyst: Catalyst, source_keys: Mapping[str, SourceKey]) -> Node:
    """The tree with those windows and ORDER BY ... LIMITs marked whose partition and order hold a key of their rows, so that none tie."""
    children = tuple(tie_free(child, catalyst, source_keys) for child in node.children)
    if node.kind in ("Window", "Limit"):
        key = carrying(children[0], catalyst, source_keys).key
        ordered = _equal(ordered_by(node, catalyst), children[0], catalyst)
        free = key is not None and set(key.ids) <= ordered
        return replace(node, children=children, tie_free=("declared" if key.declared else "derived") if key is not None and free else "")
    return replace(node, children=children)


def _equal(ids: set[int], node: Node, catalyst: Catalyst, identical: bool = False) -> set[int]:
    """Some columns with those that inner joins and renames below make equal to them. (Under a union those hold for one input only.)

    `identical`: without columns that may be equal and not the same: -0.0 and 0.0, strings of a collation.
    """
    pairs = []
    for below in _above_unions(node):
        if below.kind == "Join" and catalyst.join_type(below) == "Inner":
            equated = [(a, b) for a, b, _ in catalyst.equi_keys(below) if a.plain and b.plain]
            pairs += [{a.attribute, b.attribute} for a, b in equated if not identical or exactly_comparable(catalyst.type_of(a))]
        elif below.kind == "Project":
            defined = [(output, catalyst.expression(java)) for output, java in catalyst.definitions(below).items()]
            pairs += [{output, e.attribute} for output, e in defined if e.plain]
    found = set(ids)
    for _ in pairs:  # as often as a chain of them can be long
        found |= {i for pair in pairs if pair & found for i in pair if i is not None}
    return found


def _above_unions(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children if node.kind != "Union" else ():
        yield from _above_unions(child)


def _declared(node: Node, source_keys: Mapping[str, SourceKey]) -> Key | None:
    names, key = {a.name.lower(): a.id for a in node.output}, source_keys.get(node.source or "")
    return Key(tuple(names[c.lower()] for c in key.columns), True, key.null) if key is not None and key.columns else None


def _partition(node: Node, catalyst: Catalyst) -> tuple[int, ...]:
    if not order_dependence(node, catalyst, guarded=False):
        return ()
    return tuple(e.attribute for e in catalyst.partition_keys(node) if e.plain and e.attribute is not None)


def _columns(expressions: Java, catalyst: Catalyst) -> tuple[int, ...]:
    """The columns that some expressions are; none where one of them is another expression, or can't be compared."""
    found = catalyst.expressions(expressions)
    ids = tuple(e.attribute for e in found if e.plain and e.attribute is not None and catalyst.hashable(e))
    return ids if len(ids) == len(found) else ()


def _projected(node: Node, below: Carrying, catalyst: Catalyst) -> Carrying:
    aliases: dict[int, int] = {}
    for output_id, java in catalyst.definitions(node).items():
        expression = catalyst.expression(java)
        if expression.plain and expression.attribute is not None:
            aliases.setdefault(expression.attribute, output_id)
    key = below.key.ids if below.key is not None else ()
    wanted = {*key, *below.scope}
    for lost in sorted(wanted - {*aliases}):  # another column that always has the same value will do
        same = _equal({lost}, below.node, catalyst, identical=True) & {*aliases}
        if same:
            aliases[lost] = aliases[min(same)]
    missing = [a for a in below.node.output if a.id in wanted and a.id not in aliases]
    ids, scope = (tuple(aliases.get(i, i) for i in found) for found in (key, below.scope))
    ids = tuple(dict.fromkeys(ids))  # two of its columns may be identical to one
    return Carrying(
        catalyst.over(node, [below.node], [a.java for a in missing]), replace(below.key, ids=ids) if below.key is not None else None, scope
    )


def _grouped(node: Node, children: Sequence[Node], catalyst: Catalyst) -> tuple[Node, Key | None]:
    grouping = catalyst.grouping_keys(node)
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
    null = all(g.java.nullable() for g in grouping)
    return catalyst.over(node, node.children, extra), Key(tuple(dict.fromkeys(ids)), False, null)


def _defining(expression: Expression, definitions: Mapping[int, object]) -> int | None:
    for output_id, java in definitions.items():
        if expression.java.semanticEquals(java):
            return output_id
    return None


def _joined(node: Node, children: Sequence[Node], keys: Sequence[Key | None], catalyst: Catalyst) -> Key | None:
    """Both sides' keys; one side's, where it has one row at the most for each of the other's. None where a full join may give two rows with
    nothing but NULLs: one of either side, neither of which has a match."""
    left, right = keys
    kind = catalyst.join_type(node)
    if kind in ("LeftSemi", "LeftAnti", "ExistenceJoin", "LeftSingle"):
        return left
    if left is None or right is None:
        return None
    pairs = catalyst.equi_keys(catalyst.over(node, children))
    declared, of_no_null = left.declared or right.declared, left.of_no_null or right.of_no_null
    if kind != "FullOuter" and kind != "RightOuter" and _covers(right, [b for _, b, _ in pairs]):
        return replace(left, declared=declared, of_no_null=of_no_null)
    if kind != "FullOuter" and kind != "LeftOuter" and _covers(left, [a for a, _, _ in pairs]):
        return replace(right, declared=declared, of_no_null=of_no_null)
    null = {"FullOuter": left.null or right.null, "LeftOuter": left.null, "RightOuter": right.null}.get(kind, left.null and right.null)
    if kind == "FullOuter" and left.null and right.null:
        return None
    of_no_null = of_no_null or (kind == "FullOuter" and all(key.null or key.declared for key in (left, right)))
    return Key(tuple(dict.fromkeys(left.ids + right.ids)), declared, null, of_no_null)


def _covers(key: Key, equated: Sequence[Expression]) -> bool:
    """Whether the join's equalities fix the whole key of a side, so that it has one row at the most for each of the other."""
    return set(key.ids) <= {e.attribute for e in equated if e.plain}
