"""The rows by which two queries differ, as two queries: those that the new one adds, and those that it leaves out.

    old: SELECT p FROM r WHERE c AND d       added:   SELECT p FROM r WHERE c AND e AND NOT coalesce(d, false)
    new: SELECT p FROM r WHERE c AND e       removed: SELECT p FROM r WHERE c AND d AND NOT coalesce(e, false)

    old: a UNION ALL b                       added:   d
    new: a UNION ALL d                       removed: b

Law: new = old + added - removed, as multisets, if r, p and the inputs are the same to Spark's optimiser, and are functions of the sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lake.catalyst.definitions import DEFINITION_SETTINGS, Catalyst
from lake.catalyst.over_rows import same_plans
from lake.spark.failures import SPARK_ERRORS
from lake.spark.jvm.gateway import Java, kind_of
from lake.spark.session import settings


@dataclass(frozen=True)
class Parts:
    """Analysed plans of rows that are added and of rows that are removed; None where there are none."""

    added: Java | None
    removed: Java | None
    what: str


def parts(catalyst: Catalyst, old: Java, new: Java) -> Parts | None:
    """How two analysed plans over the same placeholders differ; None where they differ otherwise."""
    try:
        with settings(catalyst.spark, DEFINITION_SETTINGS):
            return _of_inputs(catalyst, old, new) or _of_conditions(catalyst, old, new)
    except SPARK_ERRORS:  # an expression that can't be moved
        return None


# -- inputs of a UNION ALL ---------------------------------------------------------------------------------------------------------------


def _of_inputs(catalyst: Catalyst, old: Java, new: Java) -> Parts | None:
    if "Union" not in (old.nodeName(), new.nodeName()):
        return None
    had, has = _inputs(catalyst, old), _inputs(catalyst, new)
    gone, come = _unmatched(catalyst, had, has), _unmatched(catalyst, has, had)
    if len(gone) == len(had) or len(come) == len(has):
        return None
    return Parts(_union(catalyst, new, come), _union(catalyst, old, gone), "inputs of UNION ALL")


def _inputs(catalyst: Catalyst, plan: Java) -> list[Java]:
    if plan.nodeName() != "Union":
        return [plan]
    return [inner for child in catalyst.list(plan.children()) for inner in _inputs(catalyst, child)]


def _unmatched(catalyst: Catalyst, some: Sequence[Java], others: Sequence[Java]) -> list[Java]:
    """Those of some plans that have no counterpart of their own among others."""
    left, found = list(others), []
    for plan in some:
        same = next((other for other in left if same_plans(catalyst, plan, other)), None)
        if same is None:
            found.append(plan)
        else:
            left.remove(same)
    return found


def _union(catalyst: Catalyst, plan: Java, inputs: Sequence[Java]) -> Java | None:
    """Some inputs, under the column names of the whole."""
    if not inputs:
        return None
    union = plan.withNewChildren(catalyst.seq(inputs)) if len(inputs) > 1 else inputs[0]
    names = [str(a.name()) for a in catalyst.list(plan.output())]
    return catalyst.columns_of(union, list(zip(names, catalyst.output_ids(union), strict=True)))


# -- conditions --------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Selection:
    """SELECT outputs FROM below WHERE conditions."""

    project: Java
    conditions: Sequence[Java]
    below: Java

    @staticmethod
    def of(catalyst: Catalyst, plan: Java) -> _Selection | None:
        if plan.nodeName() != "Project":
            return None
        child = plan.child()
        if child.nodeName() != "Filter":
            return _Selection(plan, (), child)
        return _Selection(plan, catalyst.conjuncts(child.condition()), child.child())


def _of_conditions(catalyst: Catalyst, old: Java, new: Java) -> Parts | None:
    had, has = _Selection.of(catalyst, old), _Selection.of(catalyst, new)
    if had is None or has is None or not same_plans(catalyst, had.below, has.below):
        return None
    moved = _Moved.between(catalyst, had.below, has.below)
    outputs = [moved.here(java) for java in catalyst.list(had.project.projectList())]
    own = catalyst.list(has.project.projectList())
    if len(outputs) != len(own) or not all(_alike(catalyst, a, b) for a, b in zip(outputs, own, strict=True)):
        return None
    before = [moved.here(java) for java in had.conditions]
    only_before = [c for c in before if not any(_alike(catalyst, c, d) for d in has.conditions)]
    only_now = [d for d in has.conditions if not any(_alike(catalyst, d, c) for c in before)]
    common = [d for d in has.conditions if d not in only_now]
    if any(catalyst.has_subquery(catalyst.expression(c)) for c in (*only_before, *only_now)):
        return None
    added = _selected(catalyst, has, [*common, *only_now], only_before)
    removed = _selected(catalyst, has, [*common, *only_before], only_now)
    return Parts(added, removed, "conditions")


@dataclass(frozen=True)
class _Moved:
    """Expressions over the columns of one plan, as expressions over those of another one with the same columns."""

    catalyst: Catalyst
    columns: dict[int, Java]

    @staticmethod
    def between(catalyst: Catalyst, there: Java, here: Java) -> _Moved:
        pairs = zip(catalyst.list(there.output()), catalyst.list(here.output()), strict=True)
        return _Moved(catalyst, {int(a.exprId().id()): b for a, b in pairs})

    def here(self, java: Java) -> Java:
        return self.catalyst.substituted(self.catalyst.expression(java), self.columns).java


def _alike(catalyst: Catalyst, a: Java, b: Java) -> bool:
    """Whether two expressions give the same value, bit by bit; under which names does not matter."""
    one, other = (java.child() if kind_of(java) == "Alias" else java for java in (a, b))
    return bool(one.semanticEquals(other)) and catalyst.chains(one) == catalyst.chains(other)


def _selected(catalyst: Catalyst, of: _Selection, all_of: Sequence[Java], not_all_of: Sequence[Java]) -> Java | None:
    """The selection's columns where all of some conditions hold, and not all of others; None where there are no others: no such row."""
    if not not_all_of:
        return None
    names = {f"c{i}": java for i, java in enumerate(all_of)}, {f"n{i}": java for i, java in enumerate(not_all_of)}
    text = " AND ".join([*names[0], f"NOT coalesce({' AND '.join(names[1])}, false)"])
    condition = catalyst.made(text, **names[0], **names[1])
    return of.project.withNewChildren(catalyst.seq([catalyst.filtered(of.below, condition)]))
