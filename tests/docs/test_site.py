"""The documentation builds without a broken link, opens without a network, and its generated pages are up to date."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

import lake.errors
from docs.generate.pages import PAGES, REFERENCE

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES_TO_READ = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built documentation; a warning, such as one about a broken link, fails the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        assert (site / page.relative_to(DOCS).with_suffix(".html")).exists(), page


def test_no_page_loads_anything_from_a_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)", page.read_text())
        assert loaded == [], page


def test_search_works_from_files_without_a_network(site: Path) -> None:
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "how-to" / "errors.html").as_uri())
        page.click("input.md-search__input")
        page.keyboard.type("vacuum")
        page.wait_for_selector(".md-search-result__item")
        browser.close()
    assert [url for url in asked if url.startswith("http")] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (REFERENCE / name).read_text() == PAGES[name](), f"docs/reference/{name} is stale: run make docs"


def test_each_kind_of_error_has_its_section() -> None:
    sections = set(re.findall(r"^## (\w+Error)$", (DOCS / "how-to" / "errors.md").read_text(), re.MULTILINE))
    kinds = {name for name, kind in vars(lake.errors).items() if isinstance(kind, type) and issubclass(kind, lake.errors.LakeError)}
    assert kinds - {"LakeError"} == sections


@pytest.mark.parametrize("page", PAGES_TO_READ, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_are_short(page: Path) -> None:
    assert [line for line in _prose(page.read_text()) if len(line) > 120] == []


def _prose(text: str) -> Iterator[str]:
    """Lines that a person reads as text: no tables, and no line that is one long link or command."""
    for line in text.splitlines():
        if not line.lstrip().startswith("|") and " " in line.strip():
            yield line


@pytest.mark.parametrize("page", [page for page in PAGES_TO_READ if page.parent == ROOT], ids=lambda page: page.name)
def test_links_of_pages_outside_the_site_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    assert links
    assert [link for link in links if not link.startswith("https:") and not (ROOT / link).exists()] == []


def test_each_decision_is_in_the_index() -> None:
    decisions = DOCS / "decisions"
    listed = re.findall(r"\]\((\d{4}[^)]*)\)", (decisions / "index.md").read_text())
    assert sorted(listed) == sorted(page.name for page in decisions.glob("0*.md"))
