"""Pages show text of the data as text: no script, style, link or form in a key, a name or a description does anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from lake.config.models import ViewConfig
from lake.core.results import Explanation, OperatorExplanation
from lake.core.snapshots import Snapshot, Version
from lake.core.stamp import Stamp
from lake.quality.data_docs import index_page, result_page
from lake.quality.findings import findings
from lake.quality.health import health
from lake.quality.measurements import Measurement, Row, row_of
from lake.quality.pages import render
from lake.quality.report import report_page
from lake.quality.view_report import About, ViewReport
from lake.quality.view_status import ViewStatus
from lake.views.table import Publication

HOSTILE = (
    "<script>window.ran = 1</script>",
    '"><img src=x onerror="window.ran = 1">',
    "'><svg onload=window.ran=1>",
    "</script><script>window.ran = 1</script>",
    "</style><style>body { display: none }</style>",
    "javascript:window.ran=1",
    "{{ 7 * 191 }}",
)
Page = Callable[[str], str]


def result(text: str) -> dict[str, Any]:
    """A validation result with a text wherever the data, or a user, can put one."""
    config = {
        "type": "expect_column_values_to_be_in_set",
        "kwargs": {"column": text, "value_set": [text]},
        "description": text,
        "notes": text,
    }
    samples = [{text: text}]
    wrong = {"unexpected_count": 1, "unexpected_percent": 50.0, "observed_value": text, "partial_unexpected_list": samples}
    outcomes = [
        {
            "success": False,
            "expectation_config": config,
            "result": wrong,
            "exception_info": {"raised_exception": False, "exception_message": ""},
        },
        {
            "success": False,
            "expectation_config": config,
            "result": {},
            "exception_info": {"raised_exception": True, "exception_message": text},
        },
    ]
    statistics = {"evaluated_expectations": 2, "successful_expectations": 0, "unsuccessful_expectations": 2}
    return {"results": outcomes, "statistics": statistics}


def view_report(text: str) -> ViewReport:
    """What is known of a view, of which every text is one."""
    measure = Measurement(
        text, "exactness", text, 1.0, text, most=0, rows=1, detail=text, cause=text, command=text, samples=({"view": {text: text}},)
    )
    broken = replace(measure, subject=f"{text} too", broken=text)
    rows: list[Row] = [row_of(m, "run", datetime.now(UTC), text) for m in (measure, broken)]
    known = findings(rows, {text: [text]})
    assert known
    explanation = Explanation(text, (text,), False, text, (OperatorExplanation(1, text, text, (text,), text, text),), {text: text})
    state = ViewStatus(text, "wrong", problem=f"{text} there", command=text)
    about = About(ViewConfig(query=text, owner=text, tags=(text,), description=text), text, (text,), (text,), text)
    stamp = Stamp(text, 1, text, 0, Snapshot({text: Version(text, 1)}), text, {}, reason=text)
    published, commits = (Publication(1, 2.0, stamp, 1, 1),), {text: [(1, 1.0)]}
    stands = health(text, rows)
    return ViewReport(text, state, about, (), published, (), commits, rows, stands, explanation, {}, 48.0, text)


PAGES: Mapping[str, Page] = {
    "result": lambda text: result_page(text, "run", "now", result(text)),
    "index": lambda text: index_page({text: {**result(text)["statistics"], "time": text, "broken": 1}}),
    "report": lambda text: report_page([view_report(text)], view_report(text).open, root=text, docs="index.html", pages=text),
}


@pytest.mark.parametrize("page", PAGES)
def test_texts_of_the_data_are_shown_as_text_and_no_script_of_theirs_runs(chromium: Browser, tmp_path: Path, page: str) -> None:
    context = chromium.new_context(offline=True)
    shown = context.new_page()
    opened: list[str] = []
    shown.on("dialog", lambda dialog: opened.append(dialog.message))
    for number, text in enumerate(HOSTILE):
        file = tmp_path / f"{number}.html"
        file.write_text(PAGES[page](text), encoding="utf-8")
        shown.goto(file.as_uri())
        assert text in shown.locator("body").inner_text(), text
        assert shown.evaluate("window.ran") is None, text
        assert shown.locator("img, svg[onload], form:not(.vega-bindings), iframe").count() == 0, text
    assert opened == []
    context.close()


def test_the_policy_stops_what_is_not_escaped(chromium: Browser, tmp_path: Path) -> None:
    """The second line of defence: text that a template would mark as safe by mistake."""
    text = (
        "".join(HOSTILE[:2])
        + '<p id="p" style="color: red" onclick="window.ran = 1">here</p><a id="a" href="javascript:window.ran=1">there</a>'
    )
    whole = index_page({}).replace("</main>", f"{text}</main>")
    assert text in whole
    file = tmp_path / "page.html"
    file.write_text(whole, encoding="utf-8")
    context = chromium.new_context(offline=True)
    page = context.new_page()
    blocked: list[str] = []
    page.on("console", lambda message: blocked.append(message.text) if "Content Security Policy" in message.text else None)
    page.goto(file.as_uri())
    page.locator("#p").click()
    page.locator("#a").click()
    assert page.evaluate("window.ran") is None
    assert len(blocked) >= 4
    context.close()


def test_a_script_of_ours_runs_by_its_hash_alone(chromium: Browser, tmp_path: Path) -> None:
    """Also one with line ends of another system, or with an end tag in a string."""
    file = tmp_path / "page.html"
    script = 'window.ours = "</script><!--";\r\nwindow.more = 1;\r'
    file.write_text(render("data_docs_index.html.j2", ("pages.css",), (script,), entries=[]), encoding="utf-8")
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.evaluate("[window.ours, window.more]") == ["</script><!--", 1]
    context.close()


def test_plots_are_drawn_though_no_text_can_become_code(chromium: Browser, tmp_path: Path) -> None:
    """Vega's expressions are interpreted; the policy refuses even a script of ours that makes a function out of text."""
    drawn, refused = tmp_path / "report.html", tmp_path / "page.html"
    drawn.write_text(report_page([view_report("plots")], (), root="r", docs="", pages=""), encoding="utf-8")
    script = "try { new Function('return 1')(); window.error = '' } catch (error) { window.error = error.name }"
    refused.write_text(render("data_docs_index.html.j2", ("pages.css",), (script,), entries=[]), encoding="utf-8")
    context = chromium.new_context(offline=True)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.goto(drawn.as_uri())
    page.wait_for_function("[...document.querySelectorAll('.plot')].every(each => each.querySelector('svg'))")
    assert page.locator(".plot svg").count() >= 1
    assert said == []
    page.goto(refused.as_uri())
    assert page.evaluate("window.error") == "EvalError"
    context.close()
