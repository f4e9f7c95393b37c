"""Checks of views: each view against its query, the two paths against each other, sources, retention, and users' expectations."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lake.lakehouse import Lakehouse
    from lake.quality.checks import Checked


def check(lake: Lakehouse, *views: str) -> Checked:
    """Run all checks of some views and of the source tables that they read, and store the results in `quality_results`.

    Returns a Checked: `measures` (one value, its limits and its status for each check), `open` (the findings of these views and tables that
    are not resolved), `reported` (the findings that this run opened, escalated or resolved, each with its event), `pages` (the address of
    the Data Docs), `exit_code` (0; 1: an open critical finding that is not snoozed; 3: a check could not run) and `to_json()`. A check
    that fails or cannot run raises nothing. Raises ConfigError for an unknown view.
    """
    from lake.quality.checks import Checks  # loads Great Expectations, which takes seconds

    return Checks(lake).run(views)
