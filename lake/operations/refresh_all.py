"""Refreshes several views, each after those that it reads; a view that fails does not stop those that do not read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lake.core.results import RefreshResult
from lake.errors import ViewsFailedError


def refresh_all(
    order: Sequence[str], reads: Callable[[str], Sequence[str]], refresh: Callable[[str], RefreshResult]
) -> list[RefreshResult]:
    """The results of the views, in this order. Raises ViewsFailedError at the end where a view failed; views that read it are skipped."""
    results, failed, skipped = list[RefreshResult](), dict[str, Exception](), list[str]()
    for view in order:
        if any(name in failed or name in skipped for name in reads(view)):
            skipped.append(view)
            continue
        try:
            results.append(refresh(view))
        except Exception as error:  # whatever it is, it is this view's alone
            failed[view] = error
    if failed:
        raise ViewsFailedError(failed, skipped, results) from next(iter(failed.values()))
    return results
