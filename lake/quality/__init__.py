"""Checks of views: each view against its query, the two paths against each other, sources, retention, and users' expectations."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lake.lakehouse import Lakehouse
    from lake.quality.checks import Checked


def check(lake: Lakehouse, *views: str) -> Checked:
    """Run all checks of some views and of the tables that they read; the results are stored in `quality_results`, and returned.

    Raises ConfigError for an unknown view.
    """
    from lake.quality.checks import Checks  # loads Great Expectations, which takes seconds

    return Checks(lake).run(views)
