"""The result of refreshing views that have nothing to do, made of their stamps: nothing is opened and nothing is run."""

from __future__ import annotations

from collections.abc import Mapping

from lake.config.models import Config
from lake.core.plan import nothing_new
from lake.core.results import RunResult, ViewOutcome
from lake.core.stamp import Stamp
from lake.refresh.outcome import result_of
from lake.views.inputs import in_order


def nothing_done(config: Config, stamps: Mapping[str, Stamp], run: str = "") -> RunResult:
    """The result of a refresh of some views that are as new as their sources. `stamps`: of each view; `run`: the name of the run."""
    order = in_order(config, stamps, lambda view: list(stamps[view].snapshot) if view in stamps else [])
    at = {view: dict(stamp.answers_for) for view, stamp in stamps.items()}
    outcomes = tuple(ViewOutcome(view, "done", at[view], at[view], result_of(nothing_new(stamps[view]))) for view in order)
    pinned = {name: number for stamp in stamps.values() for name, number in stamp.snapshot.items() if name in config.tables}
    return RunResult(run, pinned, outcomes)
