"""From Catalyst's nodes to relations: which rule each operator has, and which columns each source must give."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from lake.catalyst import Catalyst
from lake.catalyst.aggregate_split import total
from lake.catalyst.determinism import order_dependence
from lake.catalyst.first_rows import first_rows, rest_of
from lake.catalyst.guards import guarded
from lake.catalyst.nodes import Expression, Node
from lake.catalyst.window_range import window_range
from lake.errors import DefinitionError
from lake.relations.additive import AddedAggregate
from lake.relations.base import Relation
from lake.relations.by_value import ValueFilter, ValueProject
from lake.relations.first_rows import FirstRows
from lake.relations.joins import InnerJoin, Join, KeyedJoin
from lake.relations.keyed import Keyed
from lake.relations.linear import LINEAR, Linear, UnionAll
from lake.relations.null_aware import NullAwareJoin
from lake.relations.ranged_window import RangedWindow
from lake.relations.source import Constant, Source
from lake.relations.top import Top
from lake.relations.total import Total

_INNER = ("Inner", "Cross")
_BY_VALUE: Mapping[str, type[Linear]] = {"Filter": ValueFilter, "Project": ValueProject}
_CONSTANTS = frozenset({"LocalRelation", "OneRowRelation", "Range"})


def build(node: Node, catalyst: Catalyst, guards: bool = True) -> Relation:
    """The relation of a node tree. Raises DefinitionError for a leaf that is neither a source nor a constant.

    `guards`: operators that depend on the order of rows only for rare values raise an error where these occur (catalyst/guards.py);
    without them these count as order-dependent.
    """
    needed = _needed(node, catalyst)
    return _Builder(catalyst, needed, _together(node, needed), guards).relation(node)


class _Builder:
    def __init__(self, catalyst: Catalyst, needed: frozenset[int], together: Mapping[str, frozenset[str]], guards: bool) -> None:
        self.catalyst, self.needed, self.together, self.guards = catalyst, needed, together, guards

    def relation(self, node: Node, above: tuple[str, ...] = ()) -> Relation:
        """`above`: the kinds of the operators above that look up rows, "Inner" for an inner join."""
        node = total(node, self.catalyst, raising=self.guards)
        node = replace(node, order_dependent=order_dependence(node, self.catalyst, self.guards))
        node = guarded(node, self.catalyst, raising=self.guards)
        if not node.children:
            return self._leaf(node, shared=len(above) > 1 and set(above) != {"Inner"})
        first = first_rows(node, self.catalyst) if not node.most else None
        if first is not None:
            return self._first_rows(node, first, above)
        looking = (*above, *self._looking(node))
        children = [self.relation(child, looking) for child in node.children]
        subqueries = self._subqueries(node)
        if node.kind in LINEAR:
            return (_BY_VALUE.get(node.kind, Linear) if subqueries else Linear)(node, children, subqueries)
        if node.kind == "Union":
            return UnionAll(node, children, subqueries)
        if node.kind == "Join":
            return self._join(node)(node, children, subqueries, catalyst=self.catalyst)
        keys, reason = self._keys(node)
        if node.measures:
            return (Total if node.total else AddedAggregate)(node, children, subqueries, keys=keys)
        if node.most:
            return Top(node, children, subqueries, most=node.most)
        looked = window_range(node, self.catalyst) if node.kind == "Window" else None
        if looked is not None:
            return RangedWindow(node, children, subqueries, keys=keys, looked=looked)
        return Keyed(node, children, subqueries, keys=[keys] + [[]] * (len(children) - 1), reason=reason)

    def _first_rows(self, node: Node, first: Node, above: tuple[str, ...]) -> Relation:
        sort = self.catalyst.sorting(first)
        kept = {a.id: a for a in sort.output if a.id in self.needed}  # each once: a query may name a column twice
        found = FirstRows(first, [self.relation(child, above) for child in first.children], sort=replace(sort, output=tuple(kept.values())))
        rest = rest_of(node, first, self.catalyst)
        if rest is None:
            return found
        subqueries = self._subqueries(rest)
        return (ValueFilter if subqueries else Linear)(rest, [found], subqueries)

    def _subqueries(self, node: Node) -> dict[int, Relation]:
        inner = self.catalyst.subquery_trees(node)
        return {expression: build(subquery, self.catalyst, self.guards) for expression, subquery in inner.items()}

    def _join(self, node: Node) -> type[Join]:
        if self.catalyst.join_type(node) in _INNER:
            return InnerJoin
        return NullAwareJoin if self.catalyst.null_aware_keys(node) and not self.catalyst.equi_keys(node) else KeyedJoin

    def _looking(self, node: Node) -> list[str]:
        if node.kind == "Join":
            return ["Inner" if self.catalyst.join_type(node) in _INNER else "Outer"]
        return [node.kind] if node.kind in ("Aggregate", "Window") and not node.measures else []

    def _leaf(self, node: Node, shared: bool) -> Relation:
        if node.source is not None:
            return Source(node, self.needed, self.together[node.source], shared)
        if node.kind in _CONSTANTS:
            return Constant(node)
        if node.kind.startswith("UnionLoop"):
            raise DefinitionError(
                "The query has a recursive CTE, which is not supported. Compute it into a table in a separate job, and read that table."
            )
        raise DefinitionError(
            f"The query reads {self.catalyst.describe(node)}, which is no table of lakejoin.yml. "
            "Declare the table under `tables:` and read it by that name."
        )

    def _keys(self, node: Node) -> tuple[list[Expression], str]:
        """The keys of a unary operator, or why there are none."""
        if node.kind == "Aggregate":
            keys = self.catalyst.grouping_keys(node)
            reason = "it is one group over all rows"
        elif node.kind == "Window":
            keys = self.catalyst.partition_keys(node)
            reason = "its window has no PARTITION BY"
        else:
            return [], "a LIMIT looks at all rows" if node.kind == "Limit" else f"{node.kind} has no incremental rule"
        usable = [k for k in keys if self.catalyst.hashable(k) and not self.catalyst.is_session(k)]
        return usable, "" if usable else reason if not keys else "its keys can't be looked up (a session window, a map)"


def _needed(root: Node, catalyst: Catalyst) -> frozenset[int]:
    """The attribute ids that any operator reads or the query returns; other columns are not read from a source."""
    known = LINEAR | {"Join", "Aggregate", "Window", "Limit"}
    ids = set(root.output_ids)
    for node in root.walk():
        ids |= catalyst.references(node)
        if node.kind not in known:
            ids |= {i for child in node.children for i in child.output_ids}
    return frozenset(ids)


def _together(root: Node, needed: frozenset[int]) -> dict[str, frozenset[str]]:
    """For each source table the columns that are needed of it, wherever the tree reads it."""
    found: dict[str, frozenset[str]] = defaultdict(frozenset)
    for node in root.walk():
        if node.source is not None:
            found[node.source] |= {a.name for a in node.output if a.id in needed}
    return found
