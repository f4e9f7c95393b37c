"""What the plan of a view is in a development environment: nothing where it is production's, else a table beside production's."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from lake.core.planned import PlannedView
from lake.errors import TargetError
from lake.operations.development import SHARED
from lake.refresh.cloned import clone
from lake.refresh.decide import Decision
from lake.views.inputs import NO_INPUTS
from lake.views.registry import OpenViews
from lake.views.table import published

_ON_A_CLONE = "on a shallow clone of production's table, whose files it shares until that one is vacuumed"


def beside_production(planned: PlannedView, own: Sequence[str], reads: int) -> PlannedView:
    """The plan of a view that is read from production. `planned`: what its definition would take in production; `own`: the views that it
    reads, and that will not be production's; `reads`: the bytes of its sources."""
    if planned.action == "none" and not own:
        return replace(planned, reason=SHARED, from_production=True)
    if planned.action == "build":  # production has made its table, and not built it
        return planned
    if planned.action == "edit" and not own:
        return replace(planned, reason=f"{planned.reason}; {_ON_A_CLONE}")
    why = f"it reads {', '.join(own)}, of which the environment has its own" if own else f"it is edited ({planned.reason})"
    reason = f"{why}: it is built beside production's table"
    return replace(planned, action="build", how="", reason=reason, bytes_read=reads, bytes_written=reads)


def will_be_own(views: OpenViews, view: str, changed: Collection[str]) -> bool:
    """Whether a view will not be production's. `changed`: the views that are about to have a table of the environment."""
    return view in changed or not views.is_shared(view)


def built_from_others(views: OpenViews, view: str, changed: Collection[str]) -> str:
    """Why a table of the environment's own can't go on from the views that it was built from: these have other tables now. Empty where it
    can."""
    stamp = views.stamp(view) if views.config.production is not None else None
    for name, read in stamp.snapshot.versions.items() if stamp is not None else ():
        if name not in views.config.views or name not in views.reads(view):
            continue
        becomes_own, now = name in changed and views.is_shared(name), published(views.spark, views.view_table(name))
        if becomes_own or (now is not None and now.pinned.version.table_id != read.table_id):
            whose = "production's" if views.is_shared(name) and not becomes_own else "the environment's own"
            return f"it was built from another table of {name}, and reads {whose} now"
    return ""


def cloned(views: OpenViews, view: str) -> bool:
    """Whether an environment's table of a view could be begun as a clone of production's."""
    with views.opened(view) as state:
        place, theirs = views.view_table(view), views.built(state.spark, view)
        definition = views.prepare(view, state)[0]
        with suppress(TargetError):
            clone(Decision(views.path.owning(view), state.spark, definition, NO_INPUTS, rebuild=False), place, theirs)
            return True
    return False
