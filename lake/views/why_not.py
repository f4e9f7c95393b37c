"""What to change in a query, so that each refresh of its view is incremental (`explain --why-not`): the smallest change for each reason."""

from __future__ import annotations

from lake.catalyst import Catalyst
from lake.catalyst.aggregate_split import of_distinct, split
from lake.relations.base import Relation
from lake.relations.keyed import Keyed
from lake.views.definition import Definition

_VALUES = (
    "make a view of the aggregates of DISTINCT values (SELECT count(DISTINCT x), ... FROM t), and one of the others, and read these views "
    "here"
)
_TOTAL = (
    "compute the aggregate over all rows with functions that can be added up: count, sum, avg, min and max of whole numbers, decimals and "
    "dates (CAST floating-point numbers AS DECIMAL)"
)
_WINDOW = "add PARTITION BY to the window; if only the first rows are wanted, filter them by their rank (WHERE r <= 10) alone"
_LIMIT = "let the LIMIT have an ORDER BY, and at the most 1,000 rows, with those of its OFFSET"
_KEYS = "group or partition by a further column that can be looked up, no session window and no map"
_APART = "make what it reads a view of its own, so that this operator alone is recomputed"
_TIES = (
    "add columns to the ORDER BY of the LIMIT until no two rows can be equal in it, such as a primary key; if there is none, and the LIMIT "
    "is not the last operator, make what ends with it a view of its own, and read that view here"
)
_ORDER = (
    "make it a function of the rows alone (CAST floating-point numbers AS DECIMAL, order what depends on an order), or select all columns "
    "that it groups or partitions by, with no LIMIT above"
)


def suggestions(definition: Definition) -> tuple[str, ...]:
    """The changes, each once, in the order of the operators; none where the view is incremental."""
    if definition.recomputed:
        return (_TIES if "LIMIT" in definition.recomputed else _ORDER,)
    found = (_of(relation, definition.catalyst) for relation in definition.unguarded.relation.walk())
    return tuple(dict.fromkeys(filter(None, found)))


def _of(relation: Relation, catalyst: Catalyst) -> str:
    if not isinstance(relation, Keyed) or not relation.reason:
        return ""
    match relation.node.kind:
        case "Aggregate" if catalyst.grouping_keys(relation.node):
            return _KEYS
        case "Aggregate":
            if of_distinct(relation.node, catalyst):
                return _VALUES
            return _APART if split(relation.node, catalyst) is not relation.node else _TOTAL  # what it reads depends on an order
        case "Window":
            return _KEYS if catalyst.partition_keys(relation.node) else _WINDOW
        case "Limit":
            return _LIMIT
        case _:
            return _APART
