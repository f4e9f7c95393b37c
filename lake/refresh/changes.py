"""Computes a view's changes over an interval, by the rule of its tree, or against the stored rows.

none of its operators needs stored rows   changes(root)                       relations/base.py
its root is an aggregate or a LIMIT       from the stored rows                relations/stored.py
it depends on the order of rows           recomputed by its scope             relations/order_dependent.py
a guarded operator raised                 recomputed by its scope             relations/order_dependent.py, catalyst/guards.py
neither                                   the query at `until` - stored rows (edits.compared, where these have a key)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from lake.core import cost
from lake.core.sql import quoted
from lake.relations import order_dependent, stored
from lake.relations.base import Relation
from lake.relations.budget import FallBackToRecompute
from lake.relations.first_rows import FirstRows
from lake.relations.lookup_keys import Keys
from lake.relations.reading import Reading
from lake.relations.stored import StoredRows
from lake.relations.total import Total
from lake.spark import steps, zset
from lake.spark.failures import SPARK_ERRORS, of_rows
from lake.spark.key_ranges import Ranges
from lake.views.definition import Definition

Table = Callable[[Mapping[str, Ranges]], DataFrame]
"""The rows of the view's table, at least those with some keys, by column."""


def changes(definition: Definition, table: Table, reading: Reading) -> DataFrame | None:
    """Weighted rows in the tree's columns, not consolidated; None where nothing changed.

    Raises FallBackToRecompute where a full recompute is cheaper, or the only way.
    """
    relation = definition.relation
    _require_budget(relation, reading)
    if definition.carried:
        return stored.changes(relation, definition.carried, _stored(definition, table), reading)
    if not relation.order_dependent:
        found = reading.changes_of(relation, stored=False)
        return found.frame if found is not None else None
    if not definition.scope:
        raise FallBackToRecompute(definition.recomputed)
    return order_dependent.changes(relation, definition.scope, _stored(definition, table), reading)


def changes_of_inexact(definition: Definition, table: Table, reading: Reading) -> DataFrame | None:
    """The same where a guarded operator raised, since its result depends on the order of rows for the values that it has met."""
    relation, scope = definition.unguarded.relation, definition.unguarded.scope
    if not scope:
        raise FallBackToRecompute(f"fell back to a full recompute: it uses {relation.order_dependent}, under no key of its own")
    return order_dependent.changes(relation, scope, _stored(definition, table), reading)


def _stored(definition: Definition, table: Table) -> StoredRows:
    names = {c.attribute: c.name for c in definition.table_columns}

    def rows(keys: Keys | None) -> DataFrame:
        among = {} if keys is None else {names[attribute]: ranges for attribute, ranges in keys.among.items()}
        return in_tree_columns(definition, table(among))

    return rows


def _require_budget(relation: Relation, reading: Reading) -> None:
    """Raise FallBackToRecompute where a full recompute is cheaper: by estimate before any row is read, then by how many rows changed."""
    budget = reading.budget
    if budget.unlimited:
        return
    sizes = {source: reading.sources.changed_bytes(source) for _, source in relation.sources}
    if not any(sizes.values()):
        return
    operators = sum(r.looks_up and any(sizes[source] for _, source in r.sources) for r in relation.walk())
    budget.spend(cost.of_start(operators, sum(sizes.values())), f"a refresh with {operators} operators that look up rows")
    if budget.limit:
        known = sum(reading.sources.changed_rows(source) for _, source in relation.sources)
        expected = cost.of_changes(operators, known) + cost.of_lookup(_expected_lookups(relation, reading))
        budget.require(expected, f"a refresh with {operators} operators that look up rows, in places as spread as the changes,")
    moved = [changes for r, _ in relation.sources if (changes := reading.changes_of(r)) is not None]
    changed = sum(changes.count or 0 for changes in moved)
    if budget.share < math.inf and not all(changes.local for changes in moved):
        _require_share(relation, changed, reading)
    budget.spend(cost.of_changes(operators, changed), f"a refresh with {operators} operators that look up rows and {changed:,} changes")


def _expected_lookups(relation: Relation, reading: Reading) -> int:
    """Bytes that lookups will read, before the keys are known: of each table, where another one changed (or the same, read elsewhere in the
    query), the share that changes take of the table that they lie in. Keys in one place are taken to be so everywhere.

    Example: of 100 MB of bids files of 5 MB changed: of 40 MB of auctions 2 MB are expected to be read, and none of the bids.
    """
    spread = [reading.sources.changed_share(source) for _, source in relation.sources]
    others = [max(spread[:i] + spread[i + 1 :], default=0.0) for i in range(len(spread))]
    return sum(int(share * reading.sources.bytes(source)) for share, (_, source) in zip(others, relation.sources, strict=True))


def _require_share(relation: Relation, changed: int, reading: Reading) -> None:
    rows = [reading.sources.count(source) for _, source in relation.sources]
    if None not in rows:
        reading.budget.require_share(changed, sum(n for n in rows if n is not None))


def difference(definition: Definition, table: DataFrame, reading: Reading) -> DataFrame:
    """The query at `until` minus the stored rows, as weighted rows in the tree's columns."""
    old = in_tree_columns(definition, table)
    return zset.subtract(rows_of_query(definition, reading).select(*old.columns), old)


def rows_of_query(definition: Definition, reading: Reading) -> DataFrame:
    """All rows of the query at `until`, in the tree's columns, whatever their values are. The reading notes what the stamp keeps of
    operators, so that the next refresh goes on from it: also of those that only the guarded tree has (catalyst/distinct_steps.py), unless
    their guard raises."""
    rows, unguarded = definition.unguarded.relation.snapshot(reading), _kept_in_stamp(definition.unguarded.relation)
    for name, operator in _kept_in_stamp(definition.relation).items():
        if name not in unguarded:
            try:
                operator.snapshot(reading)
            except SPARK_ERRORS as error:
                if not of_rows(error):
                    raise
    return rows


def _kept_in_stamp(relation: Relation) -> dict[str, Relation]:
    """The operators inside the query whose rows the stamp keeps, by their names there."""
    found = [r for r in relation.walk() if isinstance(r, Total | FirstRows) and not r.order_dependent]
    return {r.node.total or r.node.margin: r for r in found}


def in_tree_columns(definition: Definition, table: DataFrame) -> DataFrame:
    """The rows of the view's table in the tree's columns (each attribute once)."""
    columns = {f"c{c.attribute}": c.name for c in reversed(definition.table_columns)}
    return steps.over(table, steps.select(f"{quoted(n)} AS {c}" for c, n in columns.items()))
