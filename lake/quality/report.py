"""Builds the report, one HTML page that needs no network and shows the data engineer on call what is wrong with which view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import altair as alt
import vl_convert

from lake import Lakehouse
from lake.config.models import REPORT
from lake.quality.findings import Finding, findings
from lake.quality.health import dependents
from lake.quality.pages import render
from lake.quality.plots import LINK, SOURCE
from lake.quality.results import QualityResults
from lake.quality.view_report import Collecting, ViewReport
from lake.quality.view_status import STATES, summary

_HERE = Path(__file__).parent
_HISTORY = 200
_VALUES = 20_000
"""Values of all plots of a page: with more views each plot shows fewer of the past, and the page stays under 3 MB for 200 views."""
_SEVERITIES = ("critical", "warning", "info")


def report(lake: Lakehouse, views: Sequence[str]) -> str:
    """The page, as HTML. Raises ConfigError for an unknown view."""
    for view in views:
        lake.config.view(view)
    rows = QualityResults(lake).recent(_HISTORY)
    docs = lake.config.page_url("docs/index.html") if lake.folder(f"{lake.config.quality_path}/docs").exists else ""
    found = Collecting(lake, views, rows).views()
    of_views = {finding.id for view in found for finding in view.open}
    known = [finding for finding in findings(rows, dependents(lake)).values() if finding.id in of_views]
    return report_page(found, known, lake.config.root_path, docs, lake.config.page_url(""))


def report_page(views: Sequence[ViewReport], known: Sequence[Finding], root: str, docs: str, pages: str) -> str:
    """The page of what was collected. `views`: the worst first; `known`: the open findings of these views and of what they read; `root`:
    where the lakehouse is; `docs`: the address of the Data Docs, empty if there are none; `pages`: of the folder of results."""
    now = datetime.now(UTC)
    ordered = sorted(known, key=_worst_first)
    told = [finding for finding in ordered if not finding.is_snoozed(now)]
    states = Counter(view.status.state for view in views)
    most = max(1, _VALUES // (5 * max(1, len(views))))
    return render(
        "report.html.j2",
        ("pages.css", "report.css"),
        (_bundle(), (_HERE / "report.js").read_text(encoding="utf-8")),
        views=views,
        headline=summary([view.status for view in views]),
        findings=told,
        snoozed=[finding for finding in ordered if finding.is_snoozed(now)],
        named={view.name for view in views},
        states=[(state, states[state]) for state in STATES if state in states],
        made=now,
        root=root,
        docs=docs,
        most=most,
        data={
            "kinds": {plot.kind: plot.specs for view in views for plot in view.plots},
            "tables": sorted({value[SOURCE] for view in views for plot in view.plots for value in plot.values if SOURCE in value}),
            "source": SOURCE,
            "link": LINK,
            "pages": pages,
        },
    )


def store_report(lake: Lakehouse) -> str:
    """Write the report on all views to the folder of results; returns its address."""
    lake.folder(lake.config.quality_path).replace(REPORT, report(lake, list(lake.config.views)))
    return f"{lake.config.quality_path}/{REPORT}"


def _worst_first(finding: Finding) -> tuple[int, datetime]:
    return _SEVERITIES.index(finding.severity) if finding.severity in _SEVERITIES else 0, finding.first_seen


def _bundle() -> str:
    """Vega, Vega-Lite and vega-embed, as one script."""
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return vl_convert.javascript_bundle(vl_version=version)  # type: ignore[call-arg]
