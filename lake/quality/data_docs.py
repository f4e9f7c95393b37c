"""Writes Great Expectations' results as JSON and as pages (Data Docs) beside the views; the pages need no network.

The pages are rendered from the JSON: Great Expectations' own pages load styles, scripts and icons from content networks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lake import Lakehouse
from lake.config.models import PAGES
from lake.quality.measurements import MEASURED
from lake.quality.pages import render

_STYLES = ("pages.css",)


@dataclass(frozen=True)
class Outcome:
    """One expectation on a page. `state`: the class of its badge; `wanted`: its limits or arguments; `failing`: how many rows."""

    state: str
    text: str
    title: str
    wanted: str
    notes: tuple[str, ...]
    observed: str
    failing: str
    samples: tuple[str, ...]
    error: str


def write(lake: Lakehouse, run: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    """Store each result as JSON and as a page, and update the newest pages and their index; returns the address of the index.

    `results`: Great Expectations' validation results, as JSON, by name.
    """
    place, time = lake.config.quality_path, datetime.now(UTC).isoformat(timespec="seconds")
    validations, pages, docs = (lake.folder(f"{place}/{folder}") for folder in ("validations", PAGES, "docs"))
    for name, body in results.items():
        page = result_page(name, run, time, body)
        validations.replace(f"{name}-{run}.json", json.dumps(body, default=str))
        pages.replace(f"{name}-{run}.html", page)
        docs.replace(f"{name}.html", page)
    index: dict[str, Any] = {}
    with suppress(ValueError):  # an index that was written in part is re-created
        index = json.loads(docs.read("index.json") or "{}")
    for name, body in results.items():
        broken = sum(bool(r["exception_info"]["raised_exception"]) for r in body["results"])
        index[name] = {"time": time, "broken": broken, **body["statistics"]}
    docs.replace("index.json", json.dumps(index))
    docs.replace("index.html", index_page(index))
    return f"{place}/docs/index.html"


def result_page(name: str, run: str, time: str, body: Mapping[str, Any]) -> str:
    """The page of one validation result."""
    outcomes = [_outcome(result) for result in body["results"]]
    return render("data_docs.html.j2", _STYLES, name=name, run=run, time=time, statistics=body["statistics"], outcomes=outcomes)


def index_page(index: Mapping[str, Mapping[str, Any]]) -> str:
    """The page that links to the newest page of each view and table."""
    entries = []
    for name, statistics in sorted(index.items()):
        failed, broken = statistics["unsuccessful_expectations"], statistics.get("broken", 0)
        state, text = _state(met=not failed, broken=failed <= broken)
        met = f"{statistics['successful_expectations']} of {statistics['evaluated_expectations']}"
        entries.append({"name": name, "state": state, "text": text, "met": met, "time": statistics["time"]})
    return render("data_docs_index.html.j2", _STYLES, entries=entries)


def _state(met: bool, broken: bool) -> tuple[str, str]:
    return ("good", "met") if met else ("warn", "could not run") if broken else ("bad", "not met")


def _outcome(result: Mapping[str, Any]) -> Outcome:
    config, found, error = result["expectation_config"], result.get("result") or {}, result["exception_info"]["exception_message"] or ""
    arguments, meta = {k: v for k, v in config["kwargs"].items() if k != "batch_id"}, config.get("meta") or {}
    state, text = _state(bool(result["success"]), bool(error))
    unit = str(meta.get("unit", ""))
    if config["type"] == MEASURED and "unit" in meta:
        title = str(arguments.pop("column"))
        limits = (("at least", arguments.get("min_value")), ("at most", arguments.get("max_value")))
        wanted = " and ".join(f"{sign} {limit:,.6g} {unit}" for sign, limit in limits if limit is not None)
    else:
        title, wanted = config["type"], ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    count, share = found.get("unexpected_count"), found.get("unexpected_percent")
    failing = "" if count is None else f"{count:,}" + ("" if share is None else f" ({share:.3g} %)")
    return Outcome(
        state,
        text,
        title,
        wanted,
        tuple(str(config[name]) for name in ("description", "notes") if config.get(name)),
        _number(found.get("observed_value"), unit),
        failing,
        tuple(json.dumps(sample, default=str, ensure_ascii=False) for sample in found.get("partial_unexpected_list") or ()),
        error,
    )


def _number(value: Any, unit: str) -> str:
    if value is None:
        return ""
    return f"{value:,.6g} {unit}".strip() if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
