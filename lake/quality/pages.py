"""Great Expectations' results and its pages of them (Data Docs), beside the views; the pages ask nothing of any network.

Its own pages load styles, scripts and icons from elsewhere, without which they are bare. What they need of them is written into the page.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lake import Lakehouse
from lake.config.models import PAGES
from lake.quality.suites import Told

_STYLE = Path(__file__).with_name("pages.css")
_ELSEWHERE = re.compile(
    r"<link\b[^>]*>|<script\b[^>]*\bsrc=[^>]*>\s*</script>|<script\b.*?</script>|<img\b[^>]*>|<form\b.*?</form>", re.DOTALL | re.IGNORECASE
)
_HREF = re.compile(r"""href=(["'])https?://[^"']*\1""")


def write(lake: Lakehouse, run: str, told: Mapping[str, Told]) -> str:
    """Keep each result as JSON and as a page, and the newest pages with an index; returns the index's place."""
    place = lake.config.quality_path
    results, pages, docs = (lake.folder(f"{place}/{folder}") for folder in ("validations", PAGES, "docs"))
    for name, result in told.items():
        page = offline(result.page, name)
        results.replace(f"{name}-{run}.json", json.dumps(result.body, default=str))
        pages.replace(f"{name}-{run}.html", page)
        docs.replace(f"{name}.html", page)
    index: dict[str, Any] = {}
    with suppress(ValueError):  # half a file is written anew
        index = json.loads(docs.read("index.json") or "{}")
    for name, result in told.items():
        broken = sum(bool(r["exception_info"]["raised_exception"]) for r in result.body["results"])
        index[name] = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "broken": broken, **result.body["statistics"]}
    docs.replace("index.json", json.dumps(index))
    docs.replace("index.html", _index(index))
    return f"{place}/docs/index.html"


def offline(text: str, title: str) -> str:
    """One of Great Expectations' pages with what it needs written into it."""
    bare = _HREF.sub('href="#"', _ELSEWHERE.sub("", text))
    body = re.sub(r"^.*?<body[^>]*>|</body>.*$", "", bare, flags=re.DOTALL)
    return _document(title, body)


def _index(index: Mapping[str, Mapping[str, Any]]) -> str:
    heads = "".join(f"<th scope='col'>{name}</th>" for name in ("what", "state", "expectations met", "checked"))
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in _cells(name, said))}</tr>" for name, said in sorted(index.items()))
    return _document("Data Docs", f"<h1>Data Docs</h1><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>")


def _cells(name: str, said: Mapping[str, Any]) -> list[str]:
    shown = html.escape(name)
    failed, broken = said["unsuccessful_expectations"], said.get("broken", 0)
    state = "✓ met" if not failed else "✗ not met" if failed > broken else "! could not run"
    met = f"{said['successful_expectations']} of {said['evaluated_expectations']}"
    return [f'<a href="{shown}.html">{shown}</a>', state, met, html.escape(said["time"])]


def _document(title: str, body: str) -> str:
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    style = f"<style>{_STYLE.read_text()}</style>"
    return f'<!doctype html><html lang="en"><head>{head}<title>{html.escape(title)}</title>{style}</head><body>{body}</body></html>'
