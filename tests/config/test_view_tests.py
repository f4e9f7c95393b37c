"""Tests of views as they are written: where they are read from, and mistakes in them, named with file, line and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from lake.config.loader import load
from lake.config.view_tests import load_tests
from lake.errors import ConfigError

LAKE = """tables:
  bid: {path: bid}
  auction: {path: auction}
views:
  q: {query: SELECT * FROM bid}
  r: {query: SELECT * FROM q}
"""
TESTS = LAKE + "tests:\n  - name: t\n    view: q\n    "


def written(folder: Path, text: str, **files: str) -> Path:
    (folder / "tests").mkdir()
    for name, content in files.items():
        (folder / "tests" / f"{name}.yml").write_text(content)
    (folder / "lakejoin.yml").write_text(text)
    return folder / "lakejoin.yml"


def test_tests_stand_in_lakejoin_yml_and_in_files_of_the_folder_tests(tmp_path: Path) -> None:
    more = "columns: {bid: id BIGINT}\ntests:\n  - {name: u, view: r, given: {bid: [{id: 1}]}, expect: {format: csv, rows: 'id'}}\n"
    config, found = load_tests(written(tmp_path, TESTS + "expect: [{id: 1}]\n", more=more))
    assert [(one.test.view, one.test.name, dict(one.columns)) for one in found] == [("q", "t", {}), ("r", "u", {"bid": "id BIGINT"})]
    assert [one.place("expect") for one in found] == [f"{tmp_path / 'lakejoin.yml'}, line 10", f"{tmp_path / 'tests/more.yml'}, line 3"]
    assert found[0].test.expect is not None
    assert found[0].test.expect.rows == ({"id": 1},)
    assert set(config.views) == {"q", "r"}


def test_test_files_names_other_files(tmp_path: Path) -> None:
    one = "tests:\n  - {name: u, view: r}\n"
    file = written(tmp_path, LAKE + "test_files: tests/views_*.yml\n", views_a=one, other="x: 1\n")
    assert [found.test.name for found in load_tests(file)[1]] == ["u"]
    (tmp_path / "tests" / "views_a.yml").unlink()
    with pytest.raises(ConfigError, match=r"lakejoin.yml, line 7: `test_files: tests/views_\*.yml` matches no file"):
        load_tests(file)


def test_a_mistake_in_a_test_stops_no_other_command(tmp_path: Path) -> None:
    assert set(load(written(tmp_path, LAKE + "tests: [{nme: t}]\n")).views) == {"q", "r"}


# mistake: what follows `view: q` in the test, its line, and parts of the message
MISTAKES: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "a slip in a test": ("expct: []", 10, ("`tests.0.expct` is not known here", "Did you mean 'expect'?")),
    "a slip in given rows": ("given: {bid: {colums: id INT}}", 10, ("`tests.0.given.bid.colums`", "Did you mean 'columns'?")),
    "a slip in a step": ("steps: [{chang: {}}]", 10, ("`tests.0.steps.0.chang`", "Did you mean 'change'?")),
    "a slip in a change": ("steps: [{change: {bid: {inser: []}}}]", 10, ("change.bid.inser`", "Did you mean 'insert'?")),
    "an unknown table": ("given: {bids: []}", 10, ("test 't'", "no table or view 'bids'", "Did you mean 'bid'?")),
    "the view itself": ("given: {q: []}", 10, ("no table or view 'q'", "It is the view that is tested.")),
    "a change of an unknown table": ("steps:\n      - change: {acution: {delete: {id: 1}}}", 11, ("'acution'", "Did you mean 'auction'?")),
    "a change of a view": ("steps: [{change: {r: {delete: {id: 1}}}}]", 10, ("can be changed if `given` has rows for it",)),
    "a row without columns": ("expect: [{id: 1}, 2]", 10, ("`tests.0.expect.rows`", "row 2 has no names of columns", "- {id: 1")),
    "a text without a format": ("expect: {rows: id}", 10, ("write a list of rows", "format: csv")),
    "a list as CSV": ("expect: {format: csv, rows: [{id: 1}]}", 10, ("with `format: csv` the rows are a text", "rows: |")),
    "another format": ("expect: {format: json, rows: x}", 10, ("`tests.0.expect.format`", "'csv'")),
    "a step without a change": ("steps: [{expect: []}]", 10, ("a step changes a table", "`change` or `sql`")),
    "a delete of nothing": ("steps: [{change: {bid: {delete: {}}}}]", 10, ("name at least one column",)),
    "a mode that no refresh has": ("mode: full", 10, ("`tests.0.mode`", "'incremental'")),
    "a name twice": ("mode: incremental\n  - name: t\n    view: q", 11, ("view 'q' already has a test of this name", "line 8")),
    "an unknown view": ("mode: incremental\n  - name: u\n    view: p", 12, ("there is no view 'p'", "There are: q, r.")),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_line_and_what_to_do(tmp_path: Path, name: str) -> None:
    text, line, parts = MISTAKES[name]
    with pytest.raises(ConfigError) as raised:
        load_tests(written(tmp_path, TESTS + text + "\n"))
    assert str(raised.value).startswith(f"{tmp_path / 'lakejoin.yml'}, line {line}: ")
    assert [part for part in parts if part not in str(raised.value)] == []


def test_a_file_without_tests_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tests/a.yml: .* holds a list `tests:`, and this has none.*test_files"):
        load_tests(written(tmp_path, LAKE, a="test: []\n"))


def test_columns_of_an_unknown_table_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a.yml, line 2: `columns` has no table or view 'bidd'. Did you mean 'bid'"):
        load_tests(written(tmp_path, LAKE, a="columns:\n  bidd: id INT\ntests: [{name: a, view: q}]\n"))
