"""Operators at a view's root, under projections, whose rows are stored in the view: their old side is read from its table, and a
part of their new side, too.

    changes(view) = project(renewed(stored, Δ)) - stored           Δ: the changes of the operator's child

See additive.py and top.py for `renewed`; law: renewed(stored, Δ) = operator(child at until), for the rows that Δ affects.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from lake.catalyst.nodes import column_name
from lake.relations.base import Relation
from lake.relations.frames import Changes
from lake.relations.keyed import Keyed
from lake.relations.lookup_keys import Keys
from lake.relations.reading import Reading
from lake.spark import steps, zset


class Stored(Keyed):
    """An operator whose rows are stored in the view's table, with hidden columns."""

    def affected(self, delta: Changes, reading: Reading) -> Keys | None:
        """The keys of rows that may differ; None: any row may."""
        return reading.keys([(delta, self.keys[0])]) if self.keys[0] else None

    def unchanged(self, reading: Reading) -> None:
        """Keep for the next stamp what this one has of the operator, whose child did not change."""

    @abstractmethod
    def renewed(self, stored: DataFrame, delta: Changes, reading: Reading) -> DataFrame:
        """The operator's rows at `until` in place of the `stored` ones (all that the changes affect)."""


def stored_of(relation: Relation) -> Stored | None:
    """The view's stored operator, where its root is one under projections (catalyst/aggregate_split.py makes no other)."""
    while not isinstance(relation, Stored) and len(relation.children) == 1:
        relation = relation.children[0]
    return relation if isinstance(relation, Stored) else None


StoredRows = Callable[[Keys | None], DataFrame]
"""The view's rows at `since` in the tree's columns: all, or at least those with some keys."""


def changes(root: Relation, carried: Mapping[int, int], rows: StoredRows, reading: Reading) -> DataFrame | None:
    """The view's changes against its stored rows, not consolidated; None where nothing changed.

    `carried`: the stored operator's columns (attribute ids) → the root's output that carries them.
    """
    operator = stored_of(root)
    assert operator is not None
    delta = reading.changes_of(operator.children[0])
    if delta is None:
        operator.unchanged(reading)
        return None
    keys = operator.affected(delta, reading)
    if keys is not None:
        outputs = {a.id: a for a in root.output}
        groups = {i: e.attribute for i, e in enumerate(operator.keys[0])}
        keys = keys.pick({i: reading.catalyst.expression_of(outputs[carried[g]]) for i, g in groups.items() if g is not None})
        stored = root.restricted(rows(keys), keys, reading)
    else:
        stored = rows(None)
    own = steps.over(stored, steps.select(f"{column_name(carried[a.id])} AS {a.column}" for a in operator.output))
    new = _projected(root, operator, operator.renewed(own, delta, reading), reading)
    return zset.subtract(new, stored)


def _projected(relation: Relation, operator: Stored, rows: DataFrame, reading: Reading) -> DataFrame:
    if relation is operator:
        return rows
    return relation.run(reading, [_projected(relation.children[0], operator, rows, reading)])
