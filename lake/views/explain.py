"""`explain`: what each operator of a view does on a refresh, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from lake.core import cost
from lake.core.results import Explanation, OperatorExplanation
from lake.relations.base import Relation
from lake.relations.budget import Budget
from lake.relations.by_value import ByValue
from lake.relations.joins import Join
from lake.relations.keyed import Keyed
from lake.relations.source import Source
from lake.views.definition import Definition
from lake.views.why_not import suggestions


def explain(definition: Definition, ways: Mapping[str, str], budget: Budget | None = None) -> Explanation:
    """The view's tree, operator by operator.

    `ways`: how each source's changes are read; `budget`: when a refresh falls back to a full recompute.
    """
    reason = not_incremental(definition)
    names = {c.attribute: c.name for c in reversed(definition.table_columns)}
    scope = tuple(names[e.attribute] for e in definition.scope if e.attribute is not None)
    warning = definition.relation.order_dependent
    operators = sum(r.looks_up for r in definition.relation.walk())
    most = cost.most_changes(operators, budget.limit) if budget is not None and budget.limit else None
    steps = tuple(_steps(definition.relation, 0))
    told = (definition.view, definition.key_names, not reason, reason, steps, dict(ways), scope, warning, most)
    return Explanation(*told, rounded=definition.rounded, suggestions=() if not reason else suggestions(definition))


def not_incremental(definition: Definition) -> str:
    """Why the view is never, or not all of it, incremental; empty where it is."""
    found = Counter((_name(r), reason) for r in definition.relation.walk() if (reason := _reason(r)))
    told = (f"{name}{f' ({n} times)' if n > 1 else ''} is recomputed, since {reason}" for (name, reason), n in found.items())
    return definition.recomputed or "; ".join(told)


def _steps(relation: Relation, depth: int) -> Iterator[OperatorExplanation]:
    yield OperatorExplanation(depth, _name(relation), relation.rule, _keys(relation), _looks_up(relation), _reason(relation))
    for child in relation.children:
        yield from _steps(child, depth + 1)
    for subquery in relation.subqueries.values():
        then = "reads the rows for which that makes a difference" if isinstance(relation, ByValue) else "is recomputed"
        told = f"evaluated at both ends; where its value differs, the operator above {then}"
        yield OperatorExplanation(depth + 1, "Subquery", told, (), "", "")
        yield from _steps(subquery, depth + 2)


def _reason(relation: Relation) -> str:
    return relation.reason if isinstance(relation, Keyed) else ""


def _name(relation: Relation) -> str:
    if isinstance(relation, Source):
        return f"Source {relation.name} ({', '.join(relation.columns)})"
    if isinstance(relation, Join):
        return f"Join {relation.join_type}"
    return relation.node.kind


def _keys(relation: Relation) -> tuple[str, ...]:
    if isinstance(relation, Join):
        return relation.equalities
    return tuple(str(k) for k in relation.keys[0]) if isinstance(relation, Keyed) else ()


def _looks_up(relation: Relation) -> str:
    if isinstance(relation, Join) and not relation.equalities:
        return "no equality between the sides: the other side is read whole where one changed"
    return ""
