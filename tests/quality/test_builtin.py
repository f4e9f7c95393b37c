"""The built-in suites are data: suites of Great Expectations, whole, with a limit, a cause and a command for each measurement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import great_expectations as gx
import pytest

from lake.core.constants import CLASSES, WRONG
from lake.quality.builtin import SuiteName, suite

NAMES = get_args(SuiteName)
FOLDER = Path(__file__).parents[2] / "expectations"


def test_the_folder_holds_the_built_in_suites_and_nothing_else() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == set(NAMES)
    assert (FOLDER.parent / "lake/quality/expectations").resolve() == FOLDER.resolve()


@pytest.mark.parametrize("name", NAMES)
def test_each_file_is_a_suite_of_great_expectations(name: SuiteName) -> None:
    body = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    found = gx.ExpectationSuite(**body)
    assert (found.name, len(found.expectations)) == (name, len(suite(name).expectations))
    for expectation, written in zip(found.expectations, body["expectations"], strict=True):
        assert expectation.configuration.type == written["type"]
        assert expectation.configuration.kwargs == written["kwargs"]
        assert expectation.description
        assert expectation.severity == written["severity"]


def test_each_class_of_differences_has_an_expectation_and_errors_are_allowed_in_no_row() -> None:
    found = suite("realtime")
    assert set(found.defaults) == set(CLASSES)
    assert {name for name, most in found.defaults.items() if most == 0} == set(WRONG)
    assert {found.expectations[name]["kwargs"]["column"] for name in CLASSES} == {f"agreement: {name}" for name in CLASSES}


def test_names_and_limits_are_filled_in_and_what_is_observed_takes_precedence() -> None:
    found = suite("view").measurement("retention", "v", 3.0, {"view": "v", "source": "bid", "retention_hours": 48})
    assert (found.check, found.subject, found.least, found.most) == ("retention", "changes of bid readable for", 48, None)
    assert (found.status, found.severity, found.command) == ("failed", "warning", "lakejoin refresh v")
    worse = suite("view").measurement("retention", "v", 0.0, {"view": "v", "source": "bid", "retention_hours": 48}, severity="critical")
    assert (worse.severity, worse.finding) == ("critical", found.finding)


def test_a_threshold_of_null_is_no_limit_and_without_one_the_default_is_used() -> None:
    found = suite("realtime")
    assert [found.measurement("lost", "v", 1.0, {"view": "v", **given}).status for given in ({}, {"lost": None}, {"lost": 1})] == [
        "failed",
        "passed",
        "passed",
    ]


def test_a_limit_without_a_value_is_refused() -> None:
    with pytest.raises(KeyError, match="fresh_seconds"):
        suite("source").measurement("age", "bid", 1.0, {"source": "bid"})


def test_names_of_findings_stay_as_they_are() -> None:
    """They are stored in `quality_results`, and people snooze and accept them by name."""
    parameters = {"view": "v", "source": "s", "retention_hours": 48, "converge_seconds": 1}
    assert suite("view").measurement("exactness", "v", 0.0, parameters).finding == "F2f99baa9"
    assert suite("view").measurement("retention", "v", 0.0, parameters).finding == "F1001ede3"
    assert suite("realtime").measurement("wrong_value", "v", 0.0, parameters).finding == "Ff556821a"
    assert suite("source").measurement("key_unique", "s", 0.0, parameters).finding == "F901c1cc2"
