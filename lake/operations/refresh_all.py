"""Refreshes several views, each after those that it reads; a view that fails does not stop those that do not read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from lake.core.results import RefreshResult
from lake.errors import ViewsFailedError
from lake.operations.in_parallel import Ordered, side_by_side

_Outcome = RefreshResult | Exception | None
"""None: the view was skipped, since one that it reads was not refreshed."""


def refresh_all(
    ordered: Ordered, refresh: Callable[[str], RefreshResult], parallel: int, spark: SparkSession | None
) -> list[RefreshResult]:
    """The results of the views, in order. Raises ViewsFailedError at the end where a view failed; views that read it are skipped."""

    def outcome(view: str, read: Mapping[str, _Outcome]) -> _Outcome:
        if not all(isinstance(other, RefreshResult) for other in read.values()):
            return None
        try:
            return refresh(view)
        except Exception as error:  # whatever it is, it is this view's alone
            return error

    outcomes = side_by_side(ordered, outcome, parallel, spark)
    results = [found for found in outcomes.values() if isinstance(found, RefreshResult)]
    failed = {view: found for view, found in outcomes.items() if isinstance(found, Exception)}
    if failed:
        skipped = [view for view, found in outcomes.items() if found is None]
        raise ViewsFailedError(failed, skipped, results) from next(iter(failed.values()))
    return results
