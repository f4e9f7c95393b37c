"""Prints the result of `lakejoin check`: what failed and what to run, then one line for all; --verbose prints every check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.cli.console import out, print_table
from lake.core.formatting import length_text
from lake.core.pairs import Pair

if TYPE_CHECKING:  # --help needs none of it
    from lake.quality.checks import Checked
    from lake.quality.findings import Finding
    from lake.quality.measurements import Measurement

_SECONDS = {"seconds": 1, "hours": 3600}


def print_checked(found: Checked, verbose: bool, report: str) -> None:
    """Print a row for each check that did not pass (`verbose`: for every check), each open finding with the command to run and some of the
    rows that differ, and the summary. `report`: the address of the report, empty if none was written."""
    rows = [_cells(m) for m in found.measures if verbose or m.status != "passed"]
    if rows:
        print_table(["of", "check", "state", "value", "wanted", ""], rows)
    told = {finding.id: event for event, finding in found.reported}
    differing = {m.finding: m for m in found.measures if m.check == "exactness" and m.status == "failed"}
    for finding in found.open:
        snoozed = f"snoozed until {finding.snoozed:%Y-%m-%d %H:%M}" if finding.snoozed and finding.is_snoozed(found.time) else ""
        state = snoozed or told.get(finding.id, finding.state)
        out().print(f"{finding} ({state}); likely: {finding.cause}; run: {finding.command}", markup=False)
        for sample in differing[finding.id].samples if finding.id in differing else ():
            pair = Pair(sample.get("query"), sample.get("view"), sample.get("differs") or {})
            out().print(f"  {pair.text(sample.get('key') or ())}", markup=False)
    for event, finding in found.reported:
        if event == "resolved":
            out().print(f"{finding} (resolved)", markup=False)
    out().print(f"{_summary(found)}; {f'report: {report}' if report else f'Data Docs: {found.pages}'}", markup=False)


def _summary(found: Checked) -> str:
    """How many findings are open, and how many checks passed, in a line."""
    due = [finding for finding in found.open if not finding.is_snoozed(found.time)]
    counts = [(_count(due, "critical"), "critical"), (_count(due, "warning"), "warning" if _count(due, "warning") == 1 else "warnings")]
    rarer = [
        (_count(due, "info"), "for information"),
        (len(found.open) - len(due), "snoozed"),
        (sum(m.status == "broken" for m in found.measures), "could not run"),
        (sum(m.status == "undecidable" for m in found.measures), "undecidable"),
    ]
    passed = (sum(m.status == "passed" for m in found.measures), "passed")
    return ", ".join(f"{number:,} {what}" for number, what in [*counts, *(one for one in rarer if one[0]), passed])


def _count(found: list[Finding], severity: str) -> int:
    return sum(finding.severity == severity for finding in found)


def _cells(m: Measurement) -> list[str]:
    limits = [f"{sign} {_text(limit, m.unit)}" for sign, limit in (("at least", m.least), ("at most", m.most)) if limit is not None]
    value = "-" if m.value is None else _text(m.value, m.unit)
    return [m.scope, f"{m.check}: {m.subject}", m.status, value, ", ".join(limits), m.broken or m.detail]


def _text(value: float, unit: str) -> str:
    """A value for people: a length of time in its two largest units."""
    return length_text(value * _SECONDS[unit]) if unit in _SECONDS else f"{value:,.6g} {unit}".strip()
