"""Writes the results of tests of views as JUnit XML, which servers of continuous integration read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as xml

if TYPE_CHECKING:
    from lake.core.view_test_results import Problem, TestOutcome, TestRun

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")


def junit(run: TestRun) -> str:
    """The results as a suite, each test as a case: its view is the class, and its problems are a failure or an error."""
    numbers = {
        "tests": str(len(run.outcomes)),
        "failures": str(run.count("failed")),
        "errors": str(run.count("error")),
        "time": f"{sum(outcome.seconds for outcome in run.outcomes):.3f}",
    }
    suites = xml.Element("testsuites", numbers)
    suite = xml.SubElement(suites, "testsuite", {"name": "lakejoin", "skipped": "0", **numbers})
    for outcome in run.outcomes:
        _case(suite, outcome)
    xml.indent(suites)
    return xml.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: xml.Element, outcome: TestOutcome) -> None:
    file, _, line = outcome.place.rpartition(", line ")
    place = {"file": file, "line": line} if file else {}
    about = {"classname": outcome.view, "name": outcome.name, "time": f"{outcome.seconds:.3f}", **place}
    case = xml.SubElement(suite, "testcase", {name: _valid(text) for name, text in about.items()})
    if outcome.problems:
        found = xml.SubElement(case, "failure" if outcome.state == "failed" else "error", {"message": _valid(str(outcome.problems[0]))})
        found.text = _valid("\n".join(_text(problem) for problem in outcome.problems))


def _text(problem: Problem) -> str:
    """A problem with its rows in columns of equal width."""
    rows = [["", *problem.columns], *problem.rows] if problem.rows else []
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    aligned = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([str(problem), *(f"  {line}" for line in aligned)])


def _valid(text: str) -> str:
    """A text without characters that XML does not have."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
