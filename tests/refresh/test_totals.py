"""Aggregates over all rows inside a query: their rows in the stamp, from one refresh to the next (relations/total.py)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest
from deltalake import DeltaTable

from lake.core import cost
from lake.core.stamp import Stamp
from lake.delta.sources import PinnedSources
from lake.relations import total_rows
from tests.lakes import TestLake

pytestmark = pytest.mark.slow

ROWS = "SELECT id, id % 5 AS g, id * 3 % 17 AS v FROM range(40)"
ABOVE = "SELECT b.id, b.w FROM b WHERE b.w > (SELECT avg(v) FROM a WHERE g < 4)"


def totals(lake: TestLake, view: str) -> Mapping[str, Any]:
    """What the stamp of a view's newest version keeps."""
    commits = DeltaTable(lake.of_view(view).removeprefix("delta.`").removesuffix("`")).history()
    stamp = next(found for commit in commits if (found := Stamp.from_json(commit.get("userMetadata"))))
    return stamp.totals or {}


def assert_as_built_anew(lake: TestLake, view: str) -> None:
    """The view is exact, and its stamp keeps what a build of it would."""
    lake.assert_exact(view)
    before = totals(lake, view)
    lake.open.rebuild(view)
    assert totals(lake, view) == before


def extreme(lake: TestLake, value: str, table: str) -> int:
    """A minimum or maximum of a table."""
    return int(lake.spark.read.format("delta").load(lake.path(table)).selectExpr(value).head()[0])


@pytest.fixture
def two(lake: TestLake) -> TestLake:
    lake.table("a", ROWS)
    lake.table("b", "SELECT id, id % 20 AS w FROM range(60)", key=["id"])
    return lake


def test_only_changes_are_read_and_no_table_where_the_value_stays(two: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    two.view("v", ABOVE)
    two.refresh("v")
    assert len(totals(two, "v")) == 1
    read = list[str]()
    rows = PinnedSources.rows
    monkeypatch.setattr(PinnedSources, "rows", lambda self, source, among=None: (read.append(source), rows(self, source, among))[1])
    two.sql("UPDATE {b} SET w = w + 3 WHERE id % 7 = 0")
    assert two.refresh("v").mode == "incremental"
    assert read == []
    two.sql("INSERT INTO {a} VALUES (NULL, 4, 100), (7, NULL, 900)")  # of none of them the aggregate reads
    assert two.refresh("v").rows_inserted == 0
    assert read == []
    two.sql("INSERT INTO {a} VALUES (1, 1, 400)")
    result = two.refresh("v")
    assert (result.mode, result.reason) == ("incremental", "")
    assert set(read) == {"b"}  # the rows between both averages
    assert result.rows_deleted > 0
    assert_as_built_anew(two, "v")


def test_only_files_with_rows_between_both_values_are_read(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table("days", "SELECT date_add(DATE'2026-01-01', CAST(id AS INT)) AS day, id % 7 AS v FROM range(0, 90, 1, 9)")
    lake.view("v", "SELECT v, day FROM days WHERE day >= (SELECT date_sub(max(day), 20) FROM days)")
    monkeypatch.setattr(cost, "SMALL_TABLE", 0)  # tables of which the files count
    lake.refresh("v")
    read = list[Mapping[str, Any]]()
    rows = PinnedSources.rows
    monkeypatch.setattr(PinnedSources, "rows", lambda self, source, among=None: (read.append(among), rows(self, source, among))[1])
    lake.sql("INSERT INTO {days} SELECT DATE'2026-04-05', 3")
    result = lake.refresh("v")
    ends = tuple((day - date(1970, 1, 1)).days for day in (date(2026, 3, 11), date(2026, 3, 16)))
    assert [each["day"].intervals for each in read] == [(ends,)]
    assert (result.mode, result.rows_inserted, result.rows_deleted) == ("incremental", 1, 5)
    lake.assert_exact("v")


@pytest.mark.parametrize(
    "query",
    [
        ABOVE,
        "SELECT b.id, b.w, t.n, t.s, t.lo FROM b JOIN (SELECT count(*) AS n, sum(v) AS s, min(v) AS lo FROM a) t ON t.lo < b.w",
        "SELECT g, sum(v) AS s FROM a GROUP BY g HAVING sum(v) * 4 > (SELECT sum(v) FROM a)",
        "SELECT id, w FROM b WHERE w >= (SELECT max(w) - 3 FROM b) AND w <> (SELECT count(g) FROM a)",
    ],
)
def test_random_histories(two: TestLake, query: str) -> None:
    two.view("v", query)
    two.refresh("v")
    draw = random.Random(5)
    for _ in range(6):
        for _ in range(draw.randrange(3)):  # none at all, too
            two.sql(
                draw.choice(
                    [
                        f"DELETE FROM {{a}} WHERE v = {extreme(two, 'max(v)', 'a')}",
                        f"DELETE FROM {{a}} WHERE v = {extreme(two, 'min(v)', 'a')}",
                        "INSERT INTO {a} SELECT * FROM {a} WHERE g = 2",
                        f"INSERT INTO {{a}} VALUES (NULL, NULL, NULL), ({draw.randrange(9)}, 1, {draw.randrange(50)})",
                        f"UPDATE {{a}} SET g = g + 1, v = v - 2 WHERE id % 4 = {draw.randrange(4)}",
                        f"UPDATE {{b}} SET w = {draw.randrange(25)} WHERE id % 9 = {draw.randrange(9)}",
                        "DELETE FROM {a} WHERE g = 3",
                        f"DELETE FROM {{b}} WHERE w = {extreme(two, 'max(w)', 'b')}",
                    ]
                )
            )
        assert two.refresh("v").mode in ("incremental", "none")
        two.assert_exact("v")
    two.sql("DELETE FROM {a}")
    two.refresh("v")
    assert_as_built_anew(two, "v")


def test_a_minimum_that_may_be_deleted_is_computed_again_and_the_result_says_so(two: TestLake) -> None:
    two.view("v", "SELECT id, w FROM b WHERE w < (SELECT min(v) + 5 FROM a)")
    two.refresh("v")
    two.sql("DELETE FROM {a} WHERE v = 16")
    assert two.refresh("v").reason == ""
    two.sql("DELETE FROM {a} WHERE v = 0")
    assert "its minimum or maximum may be deleted" in two.refresh("v").reason
    assert_as_built_anew(two, "v")


def test_a_stamp_without_the_row_is_no_error(two: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of an earlier release, or of a row that is too long to keep."""
    two.view("v", ABOVE)
    with monkeypatch.context() as earlier:
        earlier.setattr(total_rows, "_MOST", -1)
        two.refresh("v")
    assert totals(two, "v") == {}
    two.sql("INSERT INTO {a} VALUES (1, 1, 400)")
    assert "the stamp does not have its row yet" in two.refresh("v").reason
    two.sql("INSERT INTO {a} VALUES (1, 1, 300)")
    assert two.refresh("v").reason == ""
    assert_as_built_anew(two, "v")


def test_an_average_that_may_be_rounded_is_computed_by_the_query(two: TestLake) -> None:
    """Whole numbers that add up to more than 2^53: what Spark makes of them depends on the order of rows (catalyst/guards.py)."""
    two.view("v", "SELECT id, t.m FROM b CROSS JOIN (SELECT avg(v) AS m, count(*) AS n FROM a) t WHERE id < 3")
    two.view("w", "SELECT id, w FROM b WHERE w < (SELECT avg(v) FROM a)")
    two.view("x", "SELECT count(DISTINCT g) AS d, avg(v) AS m FROM a")
    views = ("v", "w", "x")
    for view in views:
        two.refresh(view)
    two.sql("UPDATE {a} SET v = NULL WHERE id > 0")
    for _ in range(4):  # the third is the first whose average is another one by doubles than by whole numbers, in any order
        two.sql("INSERT INTO {a} VALUES (7, 1, 9007199254740993)")
        for view in views:
            two.refresh(view)
            two.assert_exact(view)
    two.sql("DELETE FROM {a} WHERE abs(v) > 1000")
    two.sql("INSERT INTO {a} VALUES (9, 1, 1)")
    for view in views:
        two.refresh(view)
        two.assert_exact(view)
    two.sql("INSERT INTO {a} VALUES (9, 1, 17)")
    for view in views:
        assert two.refresh(view).reason == ""
        assert_as_built_anew(two, view)


def test_a_recompute_starts_from_the_tables(two: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    two.view("v", ABOVE)
    two.refresh("v")
    two.sql("UPDATE {a} SET v = v * 2, g = g - 1")
    with monkeypatch.context() as small:
        small.setattr(cost, "SMALL", 1)
        assert two.refresh("v").mode == "recompute"
    assert_as_built_anew(two, "v")
    two.sql("INSERT INTO {a} VALUES (1, 1, 400)")
    assert two.refresh("v").reason == ""
    assert_as_built_anew(two, "v")


def test_an_edited_query_starts_without_the_rows_of_the_one_before(two: TestLake) -> None:
    two.view("v", ABOVE)
    two.refresh("v")
    two.view("v", ABOVE.replace("b.id, b.w FROM", "b.id FROM"))
    two.open.apply()
    assert totals(two, "v") == {}
    two.sql("INSERT INTO {a} VALUES (1, 1, 400)")
    two.refresh("v")
    assert_as_built_anew(two, "v")


def test_a_column_that_is_widened_to_another_type_is_read_again(lake: TestLake) -> None:
    """The query and the types of its columns stay, so its fingerprint does."""
    features = {"delta__enableTypeWidening": "true", "delta__feature__timestampNtz": "supported"}
    lake.table("x", "SELECT id, date_add(DATE'2020-01-01', CAST(id AS INT)) AS d FROM range(5)", **features)
    lake.view("newest", "SELECT id FROM x WHERE d >= (SELECT max(d) FROM x)")
    lake.view("between", "SELECT x.id FROM x CROSS JOIN (SELECT min(d) AS m, max(d) AS n FROM x) t WHERE x.d BETWEEN t.m AND t.n")
    for view in ("newest", "between"):
        lake.refresh(view)
    lake.sql("ALTER TABLE {x} ALTER COLUMN d TYPE timestamp_ntz")
    lake.sql("INSERT INTO {x} VALUES (9, TIMESTAMP_NTZ'2021-05-05 01:02:03.5'), (11, TIMESTAMP_NTZ'2019-05-05 01:02:03.5')")
    for view in ("newest", "between"):
        lake.refresh(view)
        lake.assert_exact(view)


@pytest.mark.parametrize(
    "condition", ["x.d + ({}) + ({}) > 10000000000000001D", "x.v > (SELECT max(w) FROM y) AND x.d + ({}) + ({}) > 1e16"]
)
def test_two_values_that_change_places_are_two_values(lake: TestLake, condition: str) -> None:
    """Catalyst takes (d + 1e16) + 1 for the same as (d + 1) + 1e16, and evaluates one of them for both."""
    lake.table("x", "SELECT id, CAST(id AS INT) AS v, 1D AS d FROM range(40)")
    lake.table("y", "SELECT 15 AS w, 1e16D AS d, 1D AS f")
    lake.view("v", f"SELECT id FROM x WHERE {condition.format('SELECT max(d) FROM y', 'SELECT max(f) FROM y')}")
    lake.refresh("v")
    for w, d, f in ((18, "1D", "1e16D"), (12, "1e16D", "1D"), (11, "1D", "1e16D")):
        lake.sql(f"UPDATE {{y}} SET w = {w}, d = {d}, f = {f}")
        lake.refresh("v")
        lake.assert_exact("v")


@pytest.mark.parametrize("mode", ["auto", "incremental"])
def test_rows_that_fail_with_the_value_of_the_other_end(lake: TestLake, mode: str) -> None:
    lake.table("a", "SELECT id, CAST(id AS INT) AS v FROM range(1, 4)")
    lake.view("v", "SELECT id FROM a WHERE 100 / (v - (SELECT min(v) - 1 FROM a)) > 1", refresh_mode=mode)
    lake.refresh("v")
    for value in (0, -1, -5):  # each is the value of the subquery before
        lake.sql(f"INSERT INTO {{a}} VALUES (9, {value})")
        lake.refresh("v")
        assert_as_built_anew(lake, "v")
