"""Rule 2 where the old side can't be recomputed: the stored rows are the old side.

An operator that depends on the order of rows (a sum of doubles, ties, trap 8) may give, recomputed at `since`, another row than was
published. A view's scope is a set of its columns that can be pushed down to the keys of every such operator. Let K be the values of the
scope under which anything may differ between `since` and `until`. Then

    changes(view) = view.lookup(K, until) - stored(K)

K is found without the rows of an order-dependent relation at `since`: it comes from the changes of the relations below it, and across a
join from the rows at `until` that the other side's changes match (where they differ at `since`, they are among K already).

Example: a sum of doubles by g. A row of group 1 is inserted: the stored row of group 1 is subtracted, not one that is computed now.

    >>> from tests.relations.twin import bag, difference, group, lookup, shown
    >>> until, stored = bag((1, 0.5), (1, 1.5), (2, 3.0)), bag((1, 1, 0.5), (2, 1, 3.0))
    >>> shown(difference(group(lookup(until, {1}), bag()), lookup(stored, {1})))
    {(1, 1, 0.5): -1, (1, 2, 2.0): 1}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from lake.catalyst import Catalyst
from lake.catalyst.determinism import named_in
from lake.catalyst.nodes import Expression
from lake.relations.base import Relation
from lake.relations.budget import FallBackToRecompute
from lake.relations.frames import Changes
from lake.relations.joins import Join
from lake.relations.keyed import Keyed
from lake.relations.linear import Linear, UnionAll
from lake.relations.reading import Reading
from lake.relations.stored import StoredRows
from lake.spark import zset
from lake.spark.zset import is_bitwise

_Part = tuple[Changes, Sequence[Expression]]


def scope(relation: Relation, catalyst: Catalyst) -> tuple[Expression, ...]:
    """The output columns that can be pushed down to the keys of every order-dependent operator; empty where there are none."""
    outputs = [catalyst.expression_of(a) for a in dict.fromkeys(relation.output)]
    usable = [e for e in outputs if catalyst.hashable(e)]
    return tuple(usable[i] for i in sorted(_pushed_to_keys(relation, usable, catalyst)))


def changes(relation: Relation, on: Sequence[Expression], rows: StoredRows, reading: Reading) -> DataFrame | None:
    """The relation's changes against its stored rows, not consolidated; None where nothing changed.

    Raises FallBackToRecompute where no keys bound what may differ.
    """
    parts = _affected(relation, on, reading)
    if not parts:
        return None
    keys = reading.keys(parts).pick(dict(enumerate(on)))
    new = relation.lookup(keys, reading)
    old = relation.restricted(rows(keys), keys, reading)
    return zset.subtract(new.select(*old.columns), old)


def _pushed_to_keys(relation: Relation, on: Sequence[Expression], catalyst: Catalyst) -> frozenset[int]:
    """The positions of `on` that can be pushed down to the keys of every order-dependent operator in the relation."""
    if not relation.order_dependent:
        return frozenset(range(len(on)))
    if isinstance(relation, Join):
        return max((_across(relation, side, on, catalyst) for side in relation.walkable), key=len, default=frozenset())
    found = frozenset(range(len(on)))
    for child, pushed in zip(relation.children, _below(relation, on, catalyst), strict=True):
        positions = list(pushed)
        below = _pushed_to_keys(child, [pushed[i] for i in positions], catalyst)
        found &= {positions[n] for n in below}
    return found if relation.children else frozenset()


def _across(join: Join, side: int, on: Sequence[Expression], catalyst: Catalyst) -> frozenset[int]:
    """The positions of `on` on one side of a join that can be pushed down there, where the other side's changes can be looked up on it."""
    output = join.children[side].node.output_ids
    own = [i for i, e in enumerate(on) if e.attribute is not None and e.references <= output]
    carried = frozenset(own[n] for n in _pushed_to_keys(join.children[side], [on[i] for i in own], catalyst))
    return carried if carried and _links(join, side, [on[i] for i in sorted(carried)], catalyst) else frozenset()


def _links(join: Join, side: int, on: Sequence[Expression], catalyst: Catalyst) -> list[tuple[Expression, Expression]]:
    """(own, other) for the equi-keys by which affected rows of the other side are found on this one, with `on`."""
    pairs = [(right, left) if side else (left, right) for left, right, _ in join.equi_keys]
    carried = _pushed_to_keys(join.children[1 - side], [other for _, other in pairs], catalyst)
    return [pairs[i] for i in sorted(carried) if _chosen_from(join.children[side], [*on, pairs[i][0]], catalyst)]


def _chosen_from(relation: Relation, on: Sequence[Expression], catalyst: Catalyst) -> tuple[Relation, list[Expression]] | None:
    """A relation below this one whose rows don't depend on the order of rows, and whose values of some expressions (as ones over it, `on`
    is) have all that this one's may have, whatever is chosen; None where there is none.

    The stored rows may have another choice than a query would make now. Example: the newest row of each id, `on` its customer: all rows.
    """
    found = list(on)
    while relation.order_dependent:
        if isinstance(relation, Join):
            sides = [side for side in relation.walkable if all(e.references <= relation.children[side].node.output_ids for e in found)]
            below: Mapping[int, Expression] = dict(enumerate(found))
            child = relation.children[sides[0]] if sides else None
        elif len(relation.children) == 1:
            child = relation.children[0]
            if _is_the_same_in_any_order(relation, found, catalyst):
                return relation, found
            below = _passed(relation, found, catalyst)
        else:
            return None
        if child is None or len(below) < len(found):
            return None
        relation, found = child, [below[i] for i in range(len(found))]
    return relation, found


def _passed(relation: Relation, on: Sequence[Expression], catalyst: Catalyst) -> Mapping[int, Expression]:
    """Position → the expression over the child's rows that `on` is made of: a window's rows are its child's."""
    if relation.node.kind == "Window":
        return {i: e for i, e in enumerate(on) if e.references <= relation.children[0].node.output_ids}
    return _below(relation, on, catalyst)[0]


def _is_the_same_in_any_order(relation: Relation, on: Sequence[Expression], catalyst: Catalyst) -> bool:
    """Whether these of an aggregate's columns are: max(id) beside avg(double)."""
    if relation.node.kind != "Aggregate" or relation.children[0].order_dependent or relation.subqueries:
        return False
    keys = [catalyst.type_of(key) for key in catalyst.grouping_keys(relation.node)]
    made = [catalyst.below(relation.node, e) for e in on]
    return all(map(is_bitwise, keys)) and not any(named_in(e, catalyst) for e in made)


def _below(relation: Relation, on: Sequence[Expression], catalyst: Catalyst) -> list[Mapping[int, Expression]]:
    """For each child, position → the expression over it that `on` is made of, where rows of other values can't play a part."""
    match relation:
        case Linear():
            return [relation.pushed(on, catalyst)]
        case UnionAll():
            return [dict(enumerate(relation.below(on, side, catalyst))) for side in range(len(relation.children))]
        case Keyed() if len(relation.children) == 1:
            return [relation.pushed(on, catalyst)]
        case _:
            return [{} for _ in relation.children]


def _affected(relation: Relation, on: Sequence[Expression], reading: Reading) -> list[_Part]:
    """Changes and expressions over them whose values cover those of `on` under which rows of the relation may differ."""
    if not relation.order_dependent:
        found = reading.changes_of(relation)
        return [(found, on)] if found is not None else []
    if any(_changed(subquery, reading) for subquery in relation.subqueries.values()):
        raise FallBackToRecompute(f"{relation.node.kind} was recomputed with the whole query: the value of a subquery may have changed")
    if isinstance(relation, Join):
        return _affected_of_join(relation, on, reading)
    below = _below(relation, on, reading.catalyst)
    return [
        part
        for child, pushed in zip(relation.children, below, strict=True)
        for part in _affected(child, [pushed[i] for i in range(len(on))], reading)
    ]


def _affected_of_join(join: Join, on: Sequence[Expression], reading: Reading) -> list[_Part]:
    wanted = frozenset(range(len(on)))
    side = next(s for s in join.walkable if _across(join, s, on, reading.catalyst) == wanted)
    child = join.children[side]
    links = _links(join, side, on, reading.catalyst)
    parts = _affected(child, on, reading)
    driving = _affected(join.children[1 - side], [other for _, other in links], reading)
    if driving:
        chosen = _chosen_from(child, [*on, *(own for own, _ in links)], reading.catalyst)
        assert chosen is not None
        child, on, owns = chosen[0], chosen[1][: len(on)], chosen[1][len(on) :]
        keys = reading.keys(driving).pick(dict(enumerate(owns)))
        parts.append((reading.frames.keep_rows(child.lookup(keys, reading)), on))
    return parts


def _changed(relation: Relation, reading: Reading) -> bool:
    if not relation.order_dependent:
        return reading.changes_of(relation) is not None
    return any(_changed(r, reading) for r in [*relation.children, *relation.subqueries.values()])
