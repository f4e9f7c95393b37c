"""The report and the Data Docs: whole, in one file each, asking nothing of any network, and showing no more than may be shown."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from py4j.protocol import Py4JError

from lake import Lakehouse
from lake.core.snapshots import Snapshot
from lake.core.stamp import Stamp
from lake.quality import check
from lake.quality.plots import hit_rates
from lake.quality.report import report
from lake.views.table import Publication
from tests.lakes import TestLake


class Fetched(HTMLParser):
    """What a browser would fetch for a page, the ids in it, and the values of its plots."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: list[str] = []
        self.ids: list[str] = []
        self.values: list[dict[str, Any]] = []
        self._in_data = False
        self.feed(text)

    def handle_data(self, data: str) -> None:
        columns = json.loads(data) if self._in_data else {}
        if "time" in columns:
            self.values += [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def handle_endtag(self, tag: str) -> None:
        self._in_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self._in_data = found.get("type") == "application/json"
        self.ids += [found["id"]] if "id" in found else []
        fetches = {"script": "src", "img": "src", "link": "href", "iframe": "src", "form": "action"}
        if tag in fetches and fetches[tag] in found:
            self.places.append(found[fetches[tag]])


def _differing(lake: TestLake) -> None:
    """A view with some history, of which the real-time path has got a row wrong, a view that was never built, and a secret."""
    lake.table("a", "SELECT * FROM VALUES (1, 'a', 'planted-secret'), (2, 'b', NULL), (3, NULL, 'x') AS t(id, s, mail)", key=["id"])
    lake.tables["a"]["sensitive"] = ["mail"]
    lake.view("v", "SELECT id, s, mail FROM a WHERE id < 100", realtime=True)
    lake.view("unbuilt", "SELECT count(*) AS n FROM a")
    lake.others = {"samples": "rows"}
    lake.refresh("v")
    lake.open.on("eventual").refresh("v")
    lake.sql("UPDATE {a} SET s = 'c' WHERE id = 2", "INSERT INTO {a} VALUES (4, 'd', NULL)")
    lake.open.on("eventual").refresh("v")
    lake.refresh("v")
    with lake.as_if_published("v", "eventual"):
        lake.spark.sql(f"UPDATE delta.`{lake.path('views')}/v__realtime` SET s = '<b>wrong</b>' WHERE id = 1")
    check(lake.open, "v")


def test_the_report_tells_of_each_view_and_fetches_nothing(lake: TestLake) -> None:
    _differing(lake)
    text = report(lake.open, ["v", "unbuilt"])
    page = Fetched(text)
    assert page.places == ["data:,"]
    assert not re.search(r"url\(\s*['\"]?https?:", text.split("<script>")[0])
    assert {"v", "unbuilt"} <= set(page.ids)
    shown = text.split("<script>")[0]
    assert "<h1>1 of 2 views needs you: 1 wrong, 1 not built.</h1>" in shown
    assert shown.index('id="v"') < shown.index('id="unbuilt"')  # the worst first
    assert re.search(r'<details class="view" id="v" data-state="wrong" open>', shown)
    assert re.search(r'<details class="view" id="unbuilt" data-state="not built">', shown)
    assert "1 open finding<" in shown
    assert "never checked" in shown
    assert "not built yet" in shown
    assert "SELECT id, s, mail FROM a WHERE id &lt; 100" in shown
    assert "planted-secret" not in shown
    assert "<mark>&lt;b&gt;wrong&lt;/b&gt;</mark>" in shown
    assert "<mark>a</mark>" in shown
    assert {"class": "wrong value", "rows": 1} in [{k: v for k, v in value.items() if k in ("class", "rows")} for value in page.values]
    docs = Path(lake.open.config.quality_path) / "docs"
    led_to = {docs.parent / value["Data Docs"] for value in page.values if "Data Docs" in value}
    assert led_to == set(docs.glob("runs/*.html"))  # a page for each scope of the run
    for file in docs.rglob("*.html"):
        assert Fetched(file.read_text()).places == []
        assert "://" not in file.read_text()


def test_of_a_table_that_somebody_else_wrote_to_the_report_tells_what_it_can(lake: TestLake) -> None:
    lake.table("a", "SELECT 1 AS id", key=["id"])
    lake.view("v", "SELECT id FROM a")
    lake.refresh("v")
    lake.sql("DELETE FROM {v}")
    lake.others, lake._open = {"quality": {"url": "https://quality.example.com/"}}, None
    Path(lake.open.config.quality_path, "docs").mkdir(parents=True)
    shown = report(lake.open, ["v"]).split("<script>")[0]
    assert "was written by someone else (DELETE)" in shown
    assert shown.count("? unknown</span>") == 2  # fresh?, time to expiry
    assert "Source a" in shown
    assert 'class="plot"' in shown
    assert 'href="https://quality.example.com/docs/index.html"' in shown


def test_what_can_not_be_read_of_one_view_is_said_beside_the_others(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table("a", "SELECT 1 AS id", key=["id"])
    lake.view("v", "SELECT id FROM a")
    lake.view("w", "SELECT id FROM a")
    for view in ("v", "w"):
        lake.refresh(view)
    check(lake.open, "w")
    own = Lakehouse.table_log

    def damaged(opened: Lakehouse, view: str) -> Any:
        if view == "v":
            raise Py4JError("the log is damaged")
        return own(opened, view)

    monkeypatch.setattr(Lakehouse, "table_log", damaged)
    shown = report(lake.open, ["v", "w"]).split("<script>")[0]
    assert "the log is damaged" in shown
    assert re.findall(r'<h3>(\w)</h3> <span class="badge (\w+)">', shown) == [("v", "warn"), ("w", "good")]


_LUMINANCE = """() => {
  const of = text => { const [r, g, b] = text.match(/[\\d.]+/g).map(Number); return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255; };
  const canvas = document.body.appendChild(document.createElement("div"));
  canvas.style.backgroundColor = "Canvas";
  return [of(getComputedStyle(canvas).backgroundColor), of(getComputedStyle(document.body).color)];
}"""
"""Of what is behind the page, and of its text: 0 is black, 1 is white."""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_in_a_browser_without_a_network(lake: TestLake, tmp_path: Path, chromium: Browser, scheme: str) -> None:
    """On a phone: every plot drawn, nothing wider than the page, no error, no request but of files."""
    _differing(lake)
    file = tmp_path / "report.html"
    file.write_text(report(lake.open, ["v", "unbuilt"]))
    context = chromium.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme, offline=True)
    page = context.new_page()
    asked: list[str] = []
    said: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.goto(file.as_uri())
    assert page.locator(".plot svg").count() == 0  # drawn when they are seen
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "A"
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    plots = page.locator(".plot").count()
    page.wait_for_function("n => [...document.querySelectorAll('.plot')].filter(each => each.querySelector('svg')).length === n", arg=plots)
    assert plots > 4
    led_to = {link.get_attribute("href") for link in page.locator(".values td a").all()}  # the numbers below a plot
    assert led_to == {run.as_uri() for run in Path(lake.open.config.quality_path, "docs").glob("runs/*.html")}
    assert page.locator("time").first.inner_text() != page.locator("time").first.get_attribute("title")
    page.locator("#report-search").fill("unbuilt")
    assert [page.locator("#v").is_visible(), page.locator("#unbuilt").is_visible()] == [False, True]
    page.locator("#report-search").fill("")
    page.locator("#report-state").select_option("wrong")
    assert [page.locator("#v").is_visible(), page.locator("#unbuilt").is_visible()] == [True, False]
    page.locator("#report-state").select_option("")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    behind, text = page.evaluate(_LUMINANCE)
    assert (behind > 0.8 and text < 0.3) if scheme == "light" else (behind < 0.2 and text > 0.7)
    page.goto((Path(lake.open.config.quality_path) / "docs" / "index.html").as_uri())
    page.locator("a[href*='html']").first.click()
    assert page.locator("table").count()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert said == []
    assert {url.split(":")[0] for url in asked} <= {"file", "data", "blob"}
    context.close()


def test_hit_rates_are_of_each_batch_as_its_commit_says() -> None:
    """Three of four keys, then one that had to be looked up; a batch without lookups, and one before they were noted, say nothing."""
    seen = [{"a": (3, 1)}, {"a": (0, 1), "b": (5, 0)}, {}, None]
    stamps = [Stamp("v", n, "r", n, Snapshot({}), "incremental", {}, lookups=lookups) for n, lookups in enumerate(seen)]
    kept = [Stamp.from_json(stamp.to_json()) for stamp in stamps]
    plot = hit_rates([Publication(n, n, stamp, 0, 0) for n, stamp in enumerate(kept) if stamp is not None])
    assert [(value["source"], value["value"]) for value in plot.values] == [("a", 0.75), ("a", 0), ("b", 1)]
    assert "a 0" in plot.says
