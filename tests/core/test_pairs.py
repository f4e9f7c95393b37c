"""What is shown of rows that differ and of commits of somebody else: no value that `samples` or `sensitive` hides."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from lake.core.other_commits import OtherCommit
from lake.core.pairs import Pair, Paired, signed, size_of_difference
from lake.core.planned import RowChanges
from lake.core.redaction import Samples
from lake.core.results import Differences
from lake.core.snapshots import Snapshot

SECRET = "planted-secret"
PAIRS = (
    Pair({"id": 7, "x": 10, "pay": 500}, {"id": 7, "x": 98, "pay": 517}, {"x": 88, "pay": 17}),
    Pair({"id": 8, "x": 1, "pay": None}, None, {}),
    Pair(None, {"id": 9, "x": 2, "pay": 4242}, {}),
)
COMMIT = OtherCommit(3, 0.0, "DELETE", "ana", {"predicate": f"[mail#1 = {SECRET}]"}, ("mail",), RowChanges(0, 1, 0, {}, ({"id": 4},)))
FOUND = Differences(
    "v", Snapshot({}), 3, 2, 2, (), ("id",), paired=Paired(1, 1, 1, {"x": 1, "pay": 1}, PAIRS), other_commits=(COMMIT,), command="rebuild"
)


def lines(samples: Samples) -> list[str]:
    shown = FOUND.sampled(samples).paired
    assert shown is not None
    return [pair.text(("id",)) for pair in shown.samples]


def test_whole_rows_show_both_values_and_the_size_of_the_difference() -> None:
    assert lines(Samples("rows")) == [
        "different: id=7: x 10 in the query, 98 in the view (+88); pay 500 in the query, 517 in the view (+17)",
        "missing: id=8: x=1, pay=NULL",
        "surplus: id=9: x=2, pay=4242",
    ]


def test_keys_show_the_columns_and_the_size_of_the_difference_and_no_value() -> None:
    assert lines(Samples("keys")) == ["different: id=7: x (+88); pay (+17)", "missing: id=8", "surplus: id=9"]


@pytest.mark.parametrize("how", ["keys", "rows"])
def test_of_a_sensitive_column_not_even_the_size_of_the_difference_is_shown(how: Any) -> None:
    text = json.dumps(FOUND.sampled(Samples(how, {"PAY"})).to_json(), default=str) + "\n".join(lines(Samples(how, {"PAY"})))
    assert "pay" in text
    for value in ("500", "517", "17", "4242"):
        assert f" {value}" not in text
        assert f"+{value}" not in text


def test_a_sensitive_key_is_a_hash() -> None:
    assert all(line.split(": ")[1].startswith("id='#") for line in lines(Samples("keys", {"id"})))


def test_with_samples_off_there_are_counts_and_names_of_columns_only() -> None:
    shown = FOUND.sampled(Samples("off")).to_json()
    assert shown["paired"] == {"missing": 1, "surplus": 1, "different": 1, "by_column": {"x": 1, "pay": 1}, "samples": []}
    assert shown["other_commits"][0]["rows"]["samples"] == ()


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        (Samples("off"), "version 3, DELETE (1970-01-01 00:00:00 UTC by ana, condition on mail): 0 added, 1 removed, 0 changed"),
        (
            Samples("keys"),
            "version 3, DELETE (1970-01-01 00:00:00 UTC by ana, condition on mail): 0 added, 1 removed, 0 changed; such as id=4",
        ),
        (
            Samples("rows"),
            f"version 3, DELETE (1970-01-01 00:00:00 UTC by ana, predicate [mail#1 = {SECRET}]): 0 added, 1 removed, 0 changed; "
            "such as id=4",
        ),
    ],
)
def test_the_condition_of_a_statement_is_shown_where_whole_rows_are(samples: Samples, told: str) -> None:
    (commit,) = FOUND.sampled(samples).other_commits
    assert str(commit) == told


def test_the_condition_of_a_statement_is_hidden_if_any_column_is_sensitive() -> None:
    assert SECRET not in json.dumps(FOUND.sampled(Samples("rows", {"pay"})).to_json(), default=str)


@pytest.mark.parametrize(
    ("query", "view", "size"),
    [
        (10, 98, 88),
        (1.5, 1.25, -0.25),
        (Decimal("12345678901234567890123456789012345678"), Decimal("12345678901234567890123456789012345679"), Decimal(1)),
        (0.0, -0.0, None),
        (float("nan"), 1.0, None),
        (float("inf"), 1.0, None),
        (None, 1, None),
        (True, False, None),
        ("a", "b", None),
        (1, 1.5, None),
    ],
)
def test_the_size_of_a_difference_is_known_for_numbers_only(query: Any, view: Any, size: Any) -> None:
    found = size_of_difference(query, view)
    assert (found, type(found)) == (size, type(size))


def test_sizes_that_were_stored_as_text_keep_their_sign() -> None:
    assert [signed(by) for by in (88, -0.5, Decimal("1.10"), "1.10", "-2")] == ["+88", "-0.5", "+1.10", "+1.10", "-2"]
