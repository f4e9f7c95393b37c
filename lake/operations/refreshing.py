"""Runs one refresh of a view: tries again where another writer was first, and turns failures of Spark into errors that say what to do."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from lake.core.results import RefreshResult
from lake.delta.pinned import Pinned
from lake.delta.retention import file_gone, is_of_a_file_gone
from lake.errors import ExpiredError, KeyViolationError, LakeError, TargetError
from lake.operations.development import meeting, read_from_production
from lake.refresh import publish
from lake.refresh.compute import Gate
from lake.refresh.publish import LostRaceError
from lake.refresh.run import Refresh
from lake.spark.failures import SPARK_ERRORS, as_lake_error, safely
from lake.views.inputs import Chooser, Inputs, Until, production_place
from lake.views.registry import OpenViews

logger = logging.getLogger("lakejoin")


@dataclass(frozen=True)
class Request:
    """What is asked of a refresh. `rebuild`: recompute the view, whatever is published; `instead`: a backfill's rows, which are published
    instead of the query's; `gate`: the check before publishing; `own`: a development environment builds a table of its own, as a rebuild
    does, where it would read production's."""

    view: str
    until: Until | Chooser = None
    rebuild: bool = False
    instead: Pinned | None = None
    gate: Gate | None = None
    own: bool = False


def refreshed(views: OpenViews, request: Request) -> RefreshResult:
    """Refresh a view. Raises LakeError with what to do; the published view is then as it was."""
    started = time.monotonic()
    with views.opened(request.view) as state:
        shared = None if request.own or request.rebuild or request.instead is not None else read_from_production(views, state, request.view)
        if shared is not None:
            return logged(shared, started)
        path = views.path.owning(request.view) if request.own or request.rebuild else views.path
        until = meeting(views, request.view, request.until)
        for attempt in range(1, publish.ATTEMPTS + 1):
            definition, inputs = views.prepare(request.view, state, until)
            refresh = Refresh(path, state.spark, definition, inputs, request.rebuild, state.cache, request.instead, request.gate)
            try:
                result = refresh.run()
            except LostRaceError:
                if attempt == publish.ATTEMPTS:
                    raise
                continue
            except KeyViolationError as error:
                raise error.showing(views.shown(request.view)) from error.__cause__
            except SPARK_ERRORS as error:
                raise _failed(views, request.view, error, inputs) from error
            break
    return logged(result, started)


def logged(result: RefreshResult, started: float) -> RefreshResult:
    """The result with its seconds since `started` (time.monotonic), written to the log."""
    found = replace(result, seconds=round(time.monotonic() - started, 3))
    logger.info("refreshed", extra={"lakejoin": {"event": "refresh", **found.to_json()}})
    return found


def _failed(views: OpenViews, view: str, error: Exception, inputs: Inputs) -> LakeError:
    if is_of_a_file_gone(error) and (gone := file_gone(error, {**inputs.pins, **_own(views, view)}, _last_read(views, view))):
        return ExpiredError(
            f"View {view!r} has to read a file that no longer exists: {gone} (VACUUM probably removed it). Nothing was written. "
            f'Run "{views.view_table(view).recreate_command}".'
        )
    shown = safely(lambda: views.shown(view))
    return as_lake_error(error, f"Computing view {view!r}", shown, "Nothing was written.")


def _own(views: OpenViews, view: str) -> Mapping[str, Pinned]:
    """The view's table, by its place, and in a development environment production's, of which it may be a clone."""
    found, place, own = dict[str, Pinned](), production_place(views.config, view), views.view_table(view)
    with suppress(LakeError):
        found |= {view: place.head(views.spark)} if place is not None else {}
    with suppress(LakeError):
        log = views.table_log(view)
        found |= {str(own): log.head()} if log is not None else {}
    return found


def _last_read(views: OpenViews, view: str) -> Mapping[str, int]:
    """The versions of its sources that the view's rows were computed from, where that is known."""
    with suppress(TargetError):
        stamp = views.stamp(view)
        return stamp.snapshot if stamp is not None else {}
    return {}
