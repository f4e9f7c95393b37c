"""A view's table that somebody else wrote to: which commits, by whom and how, which rows, as a finding that a rebuild resolves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lake.cli.console import print_differences
from lake.delta.actions import commit_of
from lake.errors import TargetError
from lake.quality import check
from lake.quality.report import report
from lake.quality.results import QualityResults
from lake.views.others import other_commit
from tests.lakes import TestLake

SECRET = "planted-secret"


@pytest.fixture
def written(lake: TestLake) -> TestLake:
    """A view whose table was changed by hand."""
    lake.table("o", f"SELECT * FROM VALUES (1, 10, '{SECRET}'), (2, 20, NULL), (3, 30, 'x'), (4, 30, 'y') AS t(id, x, mail)", key=["id"])
    lake.tables["o"]["sensitive"] = ["mail"]
    lake.view("v", "SELECT id, x, mail FROM o")
    lake.refresh("v")
    lake.sql(
        f"UPDATE {{v}} SET x = 98 WHERE mail = '{SECRET}'",
        "DELETE FROM {v} WHERE id IN (3)",
        f"INSERT INTO {{v}} (id, x, mail) VALUES (9, 1, '{SECRET}-2')",
    )
    return lake


def test_verify_names_the_commits_of_others_and_the_rows_that_they_changed(written: TestLake, capsys: pytest.CaptureFixture[str]) -> None:
    found = written.open.verify("v")
    assert [(c.operation, c.columns) for c in found.other_commits] == [("UPDATE", ("mail",)), ("DELETE", ("id",)), ("WRITE", ())]
    rows = [c.rows for c in found.other_commits if c.rows is not None]
    assert [(r.added, r.removed, r.changed, dict(r.by_column)) for r in rows] == [(0, 0, 1, {"x": 1}), (0, 1, 0, {}), (1, 0, 0, {})]
    assert [r.samples for r in rows] == [({"id": 1},), ({"id": 3},), ({"id": 9},)]
    assert (found.missing, found.surplus) == (2, 2)
    assert found.paired is not None
    assert (found.paired.missing, found.paired.surplus, found.paired.different, found.paired.by_column) == (1, 1, 1, {"x": 1})
    shown = found.sampled(written.open.shown("v"))
    print_differences([shown], {}, as_json=False)
    text = capsys.readouterr().out
    assert "by key (id): 1 missing, 1 surplus, 1 different (in x 1)" in text
    assert "  different: id=1: x (+88)\n  missing: id=3\n  surplus: id=9\n" in text
    assert "DELETE (" in text
    assert "condition on id): 0 added, 1 removed, 0 changed; such as id=3" in text
    assert "The next refresh refuses these commits. Run: lakejoin rebuild v" in text
    assert SECRET not in text + json.dumps(shown.to_json(), default=str)
    written.sql("ALTER TABLE {v} ADD COLUMNS (more INT)")
    with pytest.raises(TargetError, match=r"someone else \(ADD COLUMNS\).*lakejoin rebuild v"):
        written.open.verify("v")


def test_commits_on_a_view_without_a_key_are_counted(lake: TestLake) -> None:
    lake.table("o", "SELECT * FROM VALUES (10), (30), (30) AS t(x)")
    lake.view("w", "SELECT x FROM o")
    lake.refresh("w")
    lake.sql("DELETE FROM {w} WHERE x = 30")
    found = lake.open.verify("w")
    (commit,) = found.other_commits
    assert commit.rows is not None
    assert (found.paired, found.missing, commit.columns, commit.rows.removed, commit.rows.samples) == (None, 2, ("x",), 2, ())


def test_check_opens_a_finding_that_a_rebuild_resolves_and_rows_that_were_put_back_do_not(written: TestLake) -> None:
    lake = written.open
    with pytest.raises(TargetError, match=r"someone else \(WRITE\), 20\d\d-\S+ \S+ UTC, mode Append.*lakejoin rebuild v"):
        lake.refresh("v")
    found = check(lake, "v")
    assert (found.exit_code, {f.check: f.command for f in found.open}["writers"]) == (1, "lakejoin rebuild v")
    writers = next(m for m in found.measures if m.check == "writers")
    assert (writers.value, writers.samples) == (3.0, ({"id": 1}, {"id": 3}, {"id": 9}))
    assert "DELETE (" in writers.detail
    exactness = next(m for m in found.measures if m.check == "exactness")
    assert "by key (id): 1 missing, 1 surplus, 1 different (in x 1)" in exactness.detail
    pair = {"key": ["id"], "query": {"id": 1}, "view": {"id": 1}, "differs": {"x": 88}}
    assert pair in exactness.samples
    page = report(lake, ["v"]).split("<script>")[0]
    assert "x +88" in page
    assert "1 different (in x 1)" in page
    frame = QualityResults(lake).frame()
    assert frame is not None
    pages = [file.read_text() for file in Path(found.pages).parent.parent.rglob("*") if file.suffix in (".json", ".html")]
    for text in (json.dumps(found.to_json(), default=str), page, str(frame.collect()), *pages):
        assert SECRET not in text
    at = writers.version - 3 if writers.version is not None else 0
    written.spark.sql(f"RESTORE TABLE {written.of_view('v')} TO VERSION AS OF {at}")
    back = lake.verify("v")
    assert (back.exact, back.paired, [c.operation for c in back.other_commits]) == (True, None, ["UPDATE", "DELETE", "WRITE", "RESTORE"])
    restored = back.other_commits[-1]
    assert restored.rows is not None
    assert (restored.rows.added, restored.rows.removed, restored.rows.changed) == (1, 1, 1)
    assert restored.parameters["version"] == str(at)
    lake.rebuild("v")
    ended = check(lake, "v")
    assert ended.open == ()
    assert {(event, finding.check) for event, finding in ended.reported} == {("resolved", "writers"), ("resolved", "exactness")}


@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        ('["(id#12L = 5)"]', ("id",)),
        ('["((a b#1 = x) AND (a.b#2 IS NULL))"]', ("a b", "a.b")),
        ('["(mail#3 = id)"]', ("mail",)),
        ('["(void#3 = 1)"]', ()),
        ("[]", ()),
    ],
)
def test_the_columns_of_a_condition_are_read_from_the_log(condition: str, columns: tuple[str, ...]) -> None:
    info = {"timestamp": 5000, "operation": "DELETE", "userName": "ana", "operationParameters": {"predicate": condition, "flag": True}}
    said = other_commit(commit_of(7, [{"commitInfo": info}]), ["id", "a b", "a.b", "mail"])
    assert (said.version, said.time, said.user, said.columns, said.parameters["flag"]) == (7, 5.0, "ana", columns, "true")
