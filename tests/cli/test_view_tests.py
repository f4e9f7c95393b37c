"""`lakejoin test`: what passes, what fails and how it is shown, and input that can't be tested."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import pytest
import yaml
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from typer.testing import CliRunner

import lake.views.registry as open_views
from lake.cli.app import app
from lake.cli.junit import junit
from lake.config.view_tests import load_tests
from lake.core.view_test_results import Problem, TestOutcome, TestRun
from lake.quality.view_tests.comparison import Collected, difference
from lake.quality.view_tests.run import run_tests, session_settings
from lake.spark.literals import UnfitError, expression
from tests.lakes import TestLake

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "nexmark" / "lakejoin.yml"
TESTS = """
- name: differs
  view: best
  given:
    bid: [{auction: 1, price: 1.50}, {auction: 1, bidder: 2, price: 2}]
    auction: {format: csv, rows: "id, category\\n1, lamps\\n2,"}
  expect: {format: sql, rows: "SELECT 'lamps' AS category, '2' AS price"}
  steps:
    - sql: DELETE FROM {bid} WHERE price = 2
      change: {bid: {insert: [{auction: 2, bidder: 3, price: 4}], update: {where: {bidder: null}, set: {price: 3}}}}
      expect: [{category: lamps, price: 3}, {price: 5}, {price: 5}]
      mode: recompute
- name: over a view that is given
  view: best
  given:
    joined: {columns: "category STRING, price DOUBLE", rows: [{category: a, price: 0.1}, {category: a, price: 0.3}, {price: 2}]}
  expect: [{category: a, price: 0.3}, {category: null, price: 2}]
  mode: incremental
"""


@dataclass(frozen=True)
class Ran:
    """One run of the tests above."""

    stdout: str
    exit_code: int
    xml: xml.Element


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TestLake:
    """A lake with one of two tables; the other one does not exist yet."""
    lake = TestLake(spark, tmp_path_factory.mktemp("tested"))
    lake.table("bid", "SELECT 1L AS auction, 1L AS bidder, CAST(1 AS DECIMAL(10, 2)) AS price", key=["auction", "bidder"])
    lake.tables["auction"] = {"path": "auction", "primary_key": ["id"]}
    lake.view("joined", "SELECT b.auction, b.price, a.category, b.price AS id FROM bid b JOIN auction a ON a.id = b.auction")
    lake.view("best", "SELECT category, max(price) AS price FROM joined GROUP BY category", refresh_mode="incremental")
    return lake


@pytest.fixture
def session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_views, "make_session", lambda settings, **_: spark)


@pytest.fixture(scope="module")
def ran(lake: TestLake) -> Ran:
    """The tests above, run once, with what the command prints and writes."""
    file, results = lake.folder / "lakejoin.yml", lake.folder.parent / "results.xml"
    file.write_text(yaml.safe_dump({**lake.config, "tests": yaml.safe_load(TESTS)}))
    before = sorted(lake.folder.rglob("*"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(open_views, "make_session", lambda settings, **_: lake.spark)
        ended = CliRunner().invoke(app, ["--config", str(file), "test", "--junit", str(results)])
    assert sorted(lake.folder.rglob("*")) == before
    return Ran(ended.stdout, ended.exit_code, xml.fromstring(results.read_text()))


def test_each_test_has_a_line_and_all_have_one(ran: Ran) -> None:
    lines = [line.split(" s")[0].rpartition(" (")[0] for line in ran.stdout.splitlines() if line.startswith(("passed", "FAILED", "ERROR"))]
    assert lines == ["FAILED best: differs", "passed best: over a view that is given"]
    assert "1 passed, 1 failed in" in ran.stdout
    assert ran.exit_code == 1


def test_a_difference_shows_the_rows_that_are_missing_and_those_that_are_unexpected(ran: Ran) -> None:
    text = ran.stdout
    assert "step 1 (" in text
    assert "2 rows are missing, 1 row is unexpected" in text
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if line.startswith("│")]
    assert cells == [["unexpected", "NULL", "4.00"], ["missing", "NULL", "5.00"], ["missing", "NULL", "5.00"]]


def test_a_refresh_of_another_mode_fails(ran: Ran) -> None:
    assert "the refresh was to be recompute, and its mode is incremental" in ran.stdout


def test_the_given_rows_of_a_test_without_steps_are_inserted_and_deleted_by_refreshes(ran: Ran) -> None:
    (line,) = [line for line in ran.stdout.splitlines() if "that is given" in line]
    assert line.endswith("build, incremental, incremental)")


def test_junit_has_a_case_for_each_test_and_the_text_of_its_failure(ran: Ran) -> None:
    (suite,) = ran.xml
    assert {name: suite.attrib[name] for name in ("tests", "failures", "errors")} == {"tests": "2", "failures": "1", "errors": "0"}
    cases = {(case.attrib["classname"], case.attrib["name"]): case for case in suite}
    (failure,) = cases["best", "differs"]
    assert failure.tag == "failure"
    assert "missing     NULL      5.00" in str(failure.text)
    assert list(cases["best", "over a view that is given"]) == []


@pytest.mark.usefixtures("session")
def test_the_test_of_the_example_passes_without_any_table() -> None:
    ended = CliRunner().invoke(app, ["--config", str(EXAMPLE), "test", "q20", "-k", "COMES after", "--json"])
    assert ended.exit_code == 0, ended.output
    said = json.loads(ended.stdout)
    assert (said["passed"], said["tests"][0]["modes"]) == (1, ["build", "incremental"])


def test_no_test_to_run_is_an_error_that_says_where_tests_stand(tmp_path: Path) -> None:
    (tmp_path / "lakejoin.yml").write_text("views: {v: {query: SELECT 1 AS a}}\n")
    ended = CliRunner().invoke(app, ["--config", str(tmp_path / "lakejoin.yml"), "test", "v", "-k", "late"])
    assert ended.exit_code == 2
    assert "There are no tests of v with 'late' in their names." in ended.stderr
    assert "below `tests:`" in ended.stderr


# what is wrong: the test, and parts of the message
WRONG: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "an unknown column": ({"given": {"bid": [{"prise": 1}]}}, ("bid has no column 'prise'", "Did you mean 'price'?")),
    "a text for a number": (
        {"given": {"bid": [{"auction": 1}, {"price": "x"}]}},
        ("bid, row 2, column 'price' of type DECIMAL(10,2)", "'x'"),
    ),
    "a decimal place too many": (
        {"given": {"bid": [{"price": 1.234}]}},
        ("row 1, column 'price'", "more decimal places than DECIMAL(10,2)"),
    ),
    "a boolean for a text": (
        {"given": {"auction": {"columns": "id BIGINT, category STRING", "rows": [{"category": False}]}}},
        ("auction, row 1, column 'category'", "read by YAML as a boolean", "in quotes"),
    ),
    "columns that are none": ({"given": {"auction": {"columns": "id BIGINTEGER"}}}, ("as in CREATE TABLE", "'id BIGINTEGER' is not")),
    "a table that does not exist": ({}, ("the table 'auction' does not exist, and no row of it is given", "auction: {columns: id BIGINT")),
    "a column without a type": ({"given": {"auction": [{"id": None}]}}, ("column 'id' has no value", "give the types")),
    "two types": ({"given": {"auction": [{"id": 1}, {"id": "x"}]}}, ("values of different types: BIGINT and STRING",)),
    "the same key twice": ({"given": {"bid": [{"auction": 1}, {"auction": 1}]}}, ("have the same primary key", "another auction, bidder")),
    "a table that the view does not read": (
        {"view": "best", "given": {"joined": [], "bid": []}},
        ("view 'best' does not read 'bid'", "joined"),
    ),
    "a ragged CSV": (
        {"given": {"bid": {"format": "csv", "rows": "auction,price\n1"}}},
        ("row 1 of the CSV of bid has 1 fields", "2 columns"),
    ),
    "SQL that fails": ({"given": {"bid": {"format": "sql", "rows": "SELECT nope"}}}, ("the SQL of the rows of bid fails", "nope")),
}


@pytest.mark.parametrize("name", WRONG)
def test_input_that_does_not_fit_is_an_error_of_its_test(lake: TestLake, name: str) -> None:
    test, parts = WRONG[name]
    declared = {"name": "wrong", "view": "joined", **test}
    if name not in ("a table that does not exist",) and declared["view"] == "joined":
        declared["given"] = {"auction": [{"id": 1}], **test["given"]}
    outcome = ended(lake, declared)
    assert (outcome.state, outcome.exit_code) == ("error", 2)
    text = outcome.problems[0].text
    assert text.startswith("the configuration: test 'wrong': ")
    assert [part for part in parts if part not in text] == []


def test_a_change_that_finds_no_row_is_an_error(lake: TestLake) -> None:
    step = {"change": {"bid": {"delete": {"auction": 9}}}}
    given = {"auction": [{"id": 1, "category": "a"}], "bid": [{"auction": 1}]}
    outcome = ended(lake, {"name": "t", "view": "joined", "given": given, "steps": [step]})
    assert "bid: delete {'auction': 9} finds no row to change" in outcome.problems[0].text


def test_a_query_that_lacks_a_column_of_a_table_that_does_not_exist_is_told_where_its_columns_are_from(lake: TestLake) -> None:
    outcome = ended(lake, {"name": "t", "view": "joined", "given": {"auction": [{"id": 1}]}})
    assert "category" in outcome.problems[0].text
    assert outcome.note.startswith("auction does not exist, so that it has only the columns of the test's rows")


def ended(lake: TestLake, test: dict[str, Any]) -> TestOutcome:
    config, tests = load_tests({**lake.config, "tests": [test]})
    (outcome,) = run_tests(lake.spark, config, tests)
    return outcome


def test_rows_are_compared_as_a_person_writes_them() -> None:
    """Floating-point numbers by their first digits, other values as they are; a row that is there twice is two rows."""
    columns = T.StructType([T.StructField("d", T.DoubleType()), T.StructField("m", T.MapType(T.StringType(), T.LongType()))])
    sums = Collected(columns, [(0.1 + 0.2, {"a": 1, "b": 2}), (-0.0, None), (float("nan"), None)])
    assert difference(Collected(columns, [(0.3, {"b": 2, "a": 1}), (0.0, None), (float("nan"), None)]), sums) is None
    found = difference(Collected(columns, [(0.3, None), (0.3, None)]), Collected(columns, [(0.3, None), (0.31, None)]))
    assert found is not None
    assert (found.missing, found.unexpected, found.text) == (((0.3, None),), ((0.31, None),), "1 row is missing, 1 row is unexpected")


def test_values_of_every_type_are_written_as_sql(spark: SparkSession) -> None:
    structs = T.StructType([T.StructField("a b", T.DecimalType(10, 2)), T.StructField("t", T.TimestampType())])
    values = [
        ({"a b": "1.5", "t": datetime(2026, 1, 1, 12, tzinfo=UTC)}, structs),
        ('[{"a b": 2}]', T.ArrayType(structs)),
        ({"x'\\": [1, None]}, T.MapType(T.StringType(), T.ArrayType(T.IntegerType()))),
        (b"\x00\xff", T.BinaryType()),
        (float("-inf"), T.FloatType()),
        ("2026-01-31", T.DateType()),
        (None, structs),
    ]
    written = ", ".join(f"CAST({expression(value, of)} AS STRING)" for value, of in values[:3])
    assert list(spark.sql(f"SELECT {written}").head() or ()) == ["{1.50, 2026-01-01 12:00:00}", "[{2.00, null}]", "{x'\\ -> [1, null]}"]
    others = ", ".join(expression(value, of) for value, of in values[3:])
    row = spark.sql(f"SELECT {others}").head()
    assert row is not None
    assert (bytes(row[0]), row[1], str(row[2]), row[3]) == (b"\x00\xff", float("-inf"), "2026-01-31", None)
    for value, of in [([1], structs), ({"c": 1}, structs), ("{", structs), ("2026-01-01 10:00", T.DateType()), ([1], T.LongType())]:
        with pytest.raises(UnfitError):
            expression(value, of)


def test_tests_run_on_this_machine_whatever_the_master(lake: TestLake) -> None:
    config = lake.open.config
    settings = session_settings(config.model_copy(update={"spark": {"spark.master": "yarn", "spark.executor.memory": "4g"}}))
    assert (settings["spark.master"], settings["spark.executor.memory"]) == ("local[*]", "4g")
    assert "spark.master" not in session_settings(config.model_copy(update={"spark": {}}))


def test_junit_holds_errors_and_no_character_that_xml_lacks() -> None:
    outcome = TestOutcome(
        "v", "t\x00", "lakejoin.yml, line 3", "error", 1.0, (Problem("error", "lakejoin.yml, line 3", "bad"),), exit_code=2
    )
    run = TestRun((outcome,))
    (case,) = xml.fromstring(junit(run))[0]
    assert (case.attrib["name"], case.attrib["line"], case[0].tag) == ("t\N{REPLACEMENT CHARACTER}", "3", "error")
    assert (run.exit_code, run.summary) == (2, "0 passed, 1 error in 1.0 s.")
