"""What a refresh is in a development environment: nothing, of a view that is read from production; its own views are brought to versions of
tables at which they can be read together with production's.

    production   u at t@12        own   v reads t; w reads u and v

A refresh of v goes to t@12, not to the newest version of t: w could not be computed from a u at t@12 and a v at t@15.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from lake.core.plan import RefreshPlan, check_fingerprint
from lake.core.results import RefreshResult
from lake.delta.pinned import Pinned
from lake.delta.tables import pin_at
from lake.errors import DefinitionError, ExpiredError, LakeError, SourceError, TargetError
from lake.refresh.outcome import result_of
from lake.views.inputs import Chooser, Until, check_named, production_place
from lake.views.registry import OpenView, OpenViews
from lake.views.table import published

SHARED = "it is read from production"


def own_views(views: OpenViews) -> list[str]:
    """The views of which a development environment has tables of its own."""
    return [view for view in views.config.views if not views.is_shared(view) and views.table_log(view) is not None]


def own_inputs(views: OpenViews, view: str) -> list[str]:
    """The views that a view reads, and that are not production's."""
    return [name for name in views.reads(view) if name in views.config.views and not views.is_shared(name)]


def read_from_production(views: OpenViews, state: OpenView, view: str) -> RefreshResult | None:
    """The result of a refresh of a view that is production's, None for others. `state`: of the view.

    Raises DefinitionError where it can't be: it is another view here than in production, or reads one that is.
    """
    if not views.is_shared(view):
        return None
    current, own, env = published(state.spark, views.view_table(view)), own_inputs(views, view), views.config.environment
    if own:
        raise DefinitionError(
            f"View {view!r} reads {', '.join(own)}, of which environment {env!r} has a table of its own, and is itself still production's. "
            f'Nothing was written. Run "lakejoin --env {env} apply".'
        )
    if current is None or current.stamp is None:
        raise DefinitionError(
            f"View {view!r} is production's in environment {env!r}, and production has not built it yet. Nothing was written. "
            f'"lakejoin --env {env} apply {view}" builds a table of the environment\'s own.'
        )
    check_fingerprint(view, current.stamp.fingerprint, views.prepare(view, state)[0].fingerprint)
    return result_of(RefreshPlan(view, "none", current.stamp.snapshot, current.stamp.snapshot, SHARED))


def held(views: OpenViews, view: str) -> dict[str, int]:
    """The versions of base tables to which a view of the environment's own is refreshed, where it is not to the newest: those of
    production's views that are read beside it. Empty outside of a development environment."""
    found = dict[str, int]()
    if views.config.production is None:
        return found
    above = _above(views, view)
    beside = {name for other in above for name in _reads(views, other) if name in views.config.views and name not in above}
    for name in sorted(beside):
        stamp = views.stamp(name) if views.is_shared(name) else None
        for table, number in stamp.answers_for.items() if stamp is not None else ():
            found[table] = min(number, found.get(table, number))
    return found


def _above(views: OpenViews, view: str) -> set[str]:
    """A view, and all that read it, directly or not."""
    found = {view}
    while more := {v for v in views.config.views if v not in found and found & set(_reads(views, v))}:
        found |= more
    return found


def _reads(views: OpenViews, view: str) -> list[str]:
    with suppress(LakeError):  # its own refresh says why its query can't be read
        return views.reads(view)
    return []


def meeting(views: OpenViews, view: str, until: Until | Chooser) -> Until | Chooser:
    """`until`, with the versions that are `held` for tables that it does not name."""
    if views.config.production is None or callable(until) or not (until is None or isinstance(until, Mapping)):
        return until
    numbers = held(views, view)
    asked = check_named(until or {}, views.reads(view))
    read: Mapping[str, int] = {}
    with suppress(TargetError):  # somebody else wrote it: a rebuild comes after that
        stamp = None if views.is_shared(view) else views.stamp(view)
        read = stamp.snapshot if stamp is not None else {}

    def chosen(free: Mapping[str, Pinned]) -> dict[str, int]:
        return {t: max(numbers[t], read.get(t, 0)) for t in free if t in numbers} | asked

    return chosen


def as_production(views: OpenViews, view: str) -> Chooser:
    """For the build of a view that is another one in production: the versions that production's rows were made of, as far as they can be
    read, so that the two differ by the edit alone."""
    place, numbers = production_place(views.config, view), held(views, view)
    current = published(views.spark, place) if place is not None else None
    made_of = current.stamp.answers_for if current is not None and current.stamp is not None else {}

    def chosen(free: Mapping[str, Pinned]) -> dict[str, int]:
        found = dict[str, int]()
        for table, head in free.items():
            number = numbers.get(table, made_of.get(table))
            if number is not None:
                with suppress(ExpiredError, SourceError):  # it is built from the newest version
                    found[table] = pin_at(head, table, number).version.number
        return found

    return chosen
