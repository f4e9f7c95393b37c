"""Joins: rule 1 (bilinear) for inner joins, rule 2 (affected keys) with a shortcut for the others.

Rule 1:

    changes(A ⋈ B) = ΔA ⋈ B_since + A_until ⋈ ΔB
                   = ΔA ⋈ B_until + A_until ⋈ ΔB - ΔA ⋈ ΔB          (B_since = B_until - ΔB)

A term whose Δ is empty is not computed. B_until and A_until are looked up by the equi-keys of the other side's Δ, and the
lookup walks on through nested joins, so that no two full inputs are ever joined.

Example: A and B each get a row of key 1. Both of the first terms find the pair of the new rows; the third subtracts it once.

    >>> from tests.relations.twin import bag, difference, join, plus, shown, times
    >>> a, b, a2, b2 = bag((1, 'x')), bag(), bag((1, 'x'), (1, 'y')), bag((1, 'z'))
    >>> da, db = difference(a2, a), difference(b2, b)
    >>> shown(join(da, b2)), shown(join(a2, db)), shown(join(da, db))
    ({(1, 'y', 1, 'z'): 1}, {(1, 'x', 1, 'z'): 1, (1, 'y', 1, 'z'): 1}, {(1, 'y', 1, 'z'): 1})
    >>> changes = plus(join(da, b2), join(a2, db), times(join(da, db), -1))
    >>> changes == difference(join(a2, b2), join(a, b))
    True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Expression, Node
from lake.relations.base import Relation
from lake.relations.frames import Changes
from lake.relations.keyed import Keyed
from lake.relations.lookup_keys import Keys
from lake.relations.reading import Reading
from lake.spark import zset


class Join(Relation):
    """What all joins share: equi-keys, and walking by them from rows of one side to the other."""

    looks_up = True

    def __init__(
        self, node: Node, children: Sequence[Relation], subqueries: Mapping[int, Relation] | None = None, *, catalyst: Catalyst
    ) -> None:
        Relation.__init__(self, node, children, subqueries)
        self.equi_keys = catalyst.equi_keys(node)
        self.join_type = catalyst.join_type(node)

    @property
    def equalities(self) -> tuple[str, ...]:
        """The equalities of its condition, in words."""
        return tuple(f"{a} {'<=>' if safe else '='} {b}" for a, b, safe in self.equi_keys)

    def other(self, side: int, driving: Changes, reading: Reading) -> DataFrame:
        """At least the rows of one side that can match rows of the other; the join itself decides."""
        child = self.children[side]
        if not self.equi_keys:
            return child.snapshot(reading)
        wanted, on = ([(left, right)[s] for left, right, _ in self.equi_keys] for s in (side, 1 - side))
        keys = reading.keys([(driving, on)]).pick(dict(enumerate(wanted)))
        return child.lookup(keys.without_nulls([null_safe for *_, null_safe in self.equi_keys]), reading, exact=False)

    def lookup(self, keys: Keys, reading: Reading, exact: bool = True) -> DataFrame:
        """Looks up the keys on a side that has them, and the rows found there on the other side, by the equi-keys.

        Narrowing a NULL-supplying side first makes matched rows of the other look unmatched (trap 3): such rows have NULL in that
        side's columns, so where no key is NULL they are dropped again. `coalesce(a, b)` of a full join's `a = b`
        is looked up on both sides.
        """
        merged = self._merged(keys.on, reading.catalyst) if self.join_type == "FullOuter" else {}
        if merged:
            sides = [keys.pick({i: pair[side] for i, pair in merged.items()}) for side in (0, 1)]
            rows = self.run(reading, [child.lookup(k, reading) for child, k in zip(self.children, sides, strict=True)])
            return self.restricted(rows, keys, reading) if exact and len(merged) < len(keys.on) else rows
        first = max(self._narrowable(keys), key=lambda side: self._selective(keys, side), default=None)
        picked = {} if first is None else self._keys_of(keys, first)
        if first is None or not picked:
            rows = self.snapshot(reading)
        else:
            found = reading.frames.keep_rows(self.children[first].lookup(keys.pick(picked), reading))
            frames = {first: found.frame, 1 - first: self.other(1 - first, found, reading)}
            rows = self.run(reading, [frames[0], frames[1]])
        certain = first in self.walkable
        return self.restricted(rows, keys, reading) if not certain or (exact and len(picked) < len(keys.on)) else rows

    @property
    def walkable(self) -> tuple[int, ...]:
        """The preserved sides: a lookup may narrow these first, whatever the keys."""
        return {"FullOuter": (), "RightOuter": (1,), "Inner": (0, 1), "Cross": (0, 1)}.get(self.join_type, (0,))

    def _narrowable(self, keys: Keys) -> list[int]:
        """The sides that a lookup of these keys may narrow first."""
        sides = {s: [keys.ranges[i] for i in self._keys_of(keys, s)] for s in (0, 1)}
        return [s for s, ranges in sides.items() if s in self.walkable or any(r is not None and not r.null for r in ranges)]

    def _selective(self, keys: Keys, side: int) -> tuple[int, int]:
        """How well a side's part of the keys tells rows apart: the more values there are of one of them, the fewer rows has each."""
        known = [keys.ranges[i] for i in self._keys_of(keys, side)]
        return max((len(r.values) for r in known if r is not None and r.values is not None), default=0), len(known)

    def _keys_of(self, keys: Keys, side: int) -> dict[int, Expression]:
        ids = self.children[side].node.output_ids
        # only what can't throw: rows that the join drops are still there (trap 4)
        return {i: e for i, e in enumerate(keys.on) if e.attribute is not None and e.references <= ids}

    def _merged(self, on: Sequence[Expression], catalyst: Catalyst) -> dict[int, tuple[Expression, Expression]]:
        """Position of a key that is the coalesced pair of an equality → the pair."""
        found = {}
        for i, expression in enumerate(on):
            values = catalyst.coalesced(expression)
            for left, right, _ in self.equi_keys if len(values) == 2 else ():
                same = [[catalyst.same(v, e) for v in values] for e in (left, right)]
                if same in ([[True, False], [False, True]], [[False, True], [True, False]]):
                    found[i] = (left, right)
        return found


class InnerJoin(Join):
    """An inner or cross join with any condition; without equi-keys the other side is read in full."""

    rule = "bilinear: each side's changes look up the other side"

    def own_changes(self, reading: Reading) -> Changes | None:
        left, right = (reading.changes_of(child) for child in self.children)
        terms = []
        if left is not None:
            terms.append(self.run(reading, [left.frame, self.other(1, left, reading)]))
        if right is not None:
            terms.append(self.run(reading, [self.other(0, right, reading), right.frame]))
        if left is not None and right is not None:
            terms.append(zset.negate(self.run(reading, [left.frame, right.frame])))
        return Changes(zset.add(terms), None, local=False) if terms else None


class KeyedJoin(Join, Keyed):
    """Outer, semi, anti and existence joins: rule 2 by their equi-keys.

    Shortcut for keys that did not change on the NULL-supplying (or tested) side: there the join is linear in the preserved side. So with K
    the keys of ΔB, and ΔA = ΔA(K) + ΔA(not K),

        changes(A ⟕ B) = ΔA(not K) ⟕ B_until + (A_until ⟕ B_until)(K) - (A_since ⟕ B_since)(K)

    New orders look up their customers; only of customers that changed themselves, all orders are read.
    """

    def __init__(
        self, node: Node, children: Sequence[Relation], subqueries: Mapping[int, Relation] | None = None, *, catalyst: Catalyst
    ) -> None:
        Join.__init__(self, node, children, subqueries, catalyst=catalyst)
        self.keys = (tuple(k[0] for k in self.equi_keys), tuple(k[1] for k in self.equi_keys))
        self.reason = "" if self.equi_keys else "its condition has no equality between the two sides"

    def own_changes(self, reading: Reading) -> Changes | None:
        for side in self.walkable:
            driving, tested = (reading.changes_of(self.children[s]) for s in (side, 1 - side))
            if driving is not None and tested is None:
                return reading.frames.keep(self._linear(side, driving, reading))
            if driving is not None and tested is not None and self.equi_keys:
                return self._apart(side, driving, tested, reading)
        return Keyed.own_changes(self, reading)

    def _linear(self, side: int, driving: Changes, reading: Reading) -> DataFrame:
        """The join of rows of the preserved side with the other side's at `until`."""
        return self._sides(side, driving.frame, self.other(1 - side, driving, reading), reading)

    def _sides(self, side: int, preserved: DataFrame, other: DataFrame, reading: Reading) -> DataFrame:
        return self.run(reading, [other, preserved] if side else [preserved, other])

    def _apart(self, side: int, driving: Changes, tested: Changes, reading: Reading) -> Changes | None:
        """The changes where both sides changed: of keys that changed on the NULL-supplying (or tested) side, and of the others."""
        preserved, other = self.children[side], self.children[1 - side]
        wanted = reading.keys([(tested, self.keys[1 - side])])
        keys = wanted.pick(dict(enumerate(self.keys[side])))
        within = reading.frames.keep(preserved.restricted(driving.frame, keys, reading))
        without = driving if within is None else reading.frames.keep_consolidated(zset.subtract(driving.frame, within.frame))
        rows = reading.frames.keep_rows(preserved.lookup(keys, reading)).frame
        old = rows if within is None else zset.to_rows(zset.difference(rows, within.frame), preserved.node.kind)
        held = reading.frames.keep_rows(other.lookup(wanted, reading)).frame
        new = self._sides(side, rows, held, reading)
        changed = zset.subtract(new, self._sides(side, old, other.rows_since(reading, held), reading))
        parts = [changed] if without is None else [changed, self._linear(side, without, reading)]
        return reading.frames.keep_consolidated(zset.add(parts))
