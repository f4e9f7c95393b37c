"""Carries out what a changed lakejoin.yml means for each view: takes a table over, edits it, builds or rebuilds it, each in one commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from lake.core.alone import Alone, unshared
from lake.core.planned import Plan, PlannedView
from lake.core.results import RefreshResult
from lake.delta.sources import PinnedSources
from lake.errors import ConcurrencyError, DefinitionError, ViewsFailedError
from lake.operations.development_plan import cloned
from lake.operations.planning import Change, Planning, plan
from lake.operations.renaming import taken_over
from lake.refresh.decide import Decision
from lake.refresh.query_edit import EditRun
from lake.views.inputs import NO_INPUTS
from lake.views.registry import OpenViews
from lake.views.table import published

_NOT_APPLIED = ("none", "removed", "refused")


@dataclass(frozen=True)
class Request:
    """`act`: builds or rebuilds a view; `asked`: the views, None for all; `shown`: a plan that was read before; `on_end`: called with each
    view that is done."""

    act: Callable[[PlannedView], RefreshResult]
    asked: Collection[str] | None = None
    shown: Plan | None = None
    on_end: Callable[[PlannedView, RefreshResult], None] = lambda *_: None
    alone: Alone = unshared

    def asks(self, view: str) -> bool:
        return self.asked is None or view in self.asked


def apply(views: OpenViews, request: Request) -> list[RefreshResult]:
    """Carry out what is to be done for all views, or those asked for, each in one commit.

    Raises ConcurrencyError where the plan is another one now, before anything is done. A view that fails does not stop those that do not
    read it: ViewsFailedError names each at the end (of one view that was asked for, its own error is raised).
    """
    with ExitStack() as held:
        if request.shown is not None:  # all of it, so that nothing changes between the comparison and the last view
            held.enter_context(request.alone(_written(views, request, request.shown)))
            _refuse_other(views, request, request.shown)
            request = replace(request, alone=unshared)
        return _each(views, request)


def _written(views: OpenViews, request: Request, shown: Plan) -> frozenset[str]:
    """The names of the views whose tables a plan writes."""
    names = [v.view for v in shown.views if v.action not in _NOT_APPLIED and request.asks(v.view) and v.view in views.config.views]
    earlier = (views.config.view(name).renamed_from for name in names)
    return frozenset([*names, *filter(None, earlier)])


def _refuse_other(views: OpenViews, request: Request, shown: Plan) -> None:
    now = plan(views)
    other = now.differing(shown, [v.view for v in now.views if request.asks(v.view)])
    if other:
        raise ConcurrencyError(
            f"The plan is out of date: {', '.join(other)} or what was published changed since it was made. Nothing was written. "
            "Make a new plan, and read it."
        )


def _each(views: OpenViews, request: Request) -> list[RefreshResult]:
    planning, results = Planning(views, counting=False), list[RefreshResult]()
    failed, skipped = dict[str, Exception](), list[str]()
    for view in planning.in_order(request.asked):
        if any(name in failed or name in skipped for name in views.reads(view)):
            skipped.append(view)
            continue
        try:
            change = planning.of(view)
            with request.alone(change.writes) as waited:
                for planned, result in _applied(views, planning, planning.of(view) if waited else change, request.act):
                    results.append(result)
                    request.on_end(planned, result)
        except Exception as error:  # whatever it is, it is this view's alone
            if request.asked is not None and len(request.asked) == 1:
                raise
            failed[view] = error
    if failed:
        raise ViewsFailedError(failed, skipped, results, "applied") from next(iter(failed.values()))
    return results


def _applied(
    views: OpenViews, planning: Planning, change: Change, act: Callable[[PlannedView], RefreshResult]
) -> Iterator[tuple[PlannedView, RefreshResult]]:
    """What is done for a view, each with its result."""
    view = change.planned.view
    if change.planned.action == "rename":
        yield change.planned, _renamed_table(views, change)
        change = planning.of(view)
    if change.planned.action == "refused":
        raise DefinitionError(f"View {view!r} can't be applied: {change.planned.reason}")
    if change.planned.action == "edit" and views.is_shared(view) and not cloned(views, view):
        planned = replace(change.planned, action="build", how="", reason="it is edited, and production's table can't be cloned")
        yield planned, act(planned)
    elif change.planned.action == "edit":
        yield change.planned, _edited(views, change)
    elif change.planned.action != "none":
        yield change.planned, act(change.planned)


def _renamed_table(views: OpenViews, change: Change) -> RefreshResult:
    assert change.earlier is not None
    with views.opened(change.planned.view) as state:
        return taken_over(state.spark, views.config, change.planned.view, change.earlier)


def _edited(views: OpenViews, change: Change) -> RefreshResult:
    assert change.definition is not None
    assert change.edit is not None
    view = change.planned.view
    with views.opened(view) as state:
        decision = Decision(views.path, state.spark, change.definition, NO_INPUTS, rebuild=False)
        sources = None
        if change.edit.kind == "difference" and (current := published(state.spark, views.view_table(view))) and current.stamp:
            pins = views.pins_of(state.spark, current.stamp)
            sources = PinnedSources({name: views.path.input(name) for name in pins}, pins, None)
        return EditRun(decision, change.edit, change.before, sources).run()
