"""ORDER BY ... LIMIT and ranks of all rows inside a query: the first rows, which the stamp keeps (relations/first_rows.py)."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession

from lake.errors import KeyViolationError
from lake.relations import first_rows
from lake.relations.first_rows import FirstRows
from tests.lakes import TestLake
from tests.relations.laws import Rows, View

pytestmark = pytest.mark.slow

TABLES = {"a": "id int, g string, v int, x double", "b": "id int, w int"}
QUERIES = {
    "joined": "SELECT t.id, t.v, b.w FROM (SELECT id, v FROM a ORDER BY v, id LIMIT 5) t LEFT JOIN b ON b.id = t.id",
    "offset": "SELECT id, v FROM a ORDER BY v DESC NULLS LAST, id LIMIT 4 OFFSET 3",
    "paged": "SELECT g, count(*) AS n FROM (SELECT id, g FROM a ORDER BY id LIMIT 6 OFFSET 2) GROUP BY g",
    "tested": "SELECT * FROM b WHERE id IN (SELECT id FROM a ORDER BY id DESC LIMIT 3)",
    "not tested": "SELECT b.w FROM b WHERE NOT EXISTS (SELECT 1 FROM (SELECT id FROM a ORDER BY id LIMIT 4) t WHERE t.id = b.id)",
    "ranked": "SELECT id, r FROM (SELECT id, rank() OVER (ORDER BY v) AS r FROM a) WHERE r <= 4",
    "by a double": "SELECT id, x, r FROM (SELECT id, x, rank() OVER (ORDER BY x DESC) AS r FROM a) WHERE r < 4",
    "densely": "SELECT g, n, r FROM (SELECT g, count(*) AS n, dense_rank() OVER (ORDER BY count(*)) AS r FROM a GROUP BY g) WHERE 2 >= r",
    "numbered": "SELECT id, g FROM (SELECT id, g, row_number() OVER (ORDER BY v, id) AS r FROM a) WHERE r BETWEEN 2 AND 4 AND g <> 'p'",
    "beside a value": """SELECT id, r FROM (SELECT id, v, rank() OVER (ORDER BY v) AS r FROM a)
        WHERE r <= 3 AND v > (SELECT min(w) FROM b)""",
    "a column twice": """SELECT t.x, t.y, b.w FROM (SELECT id, id FROM a ORDER BY id LIMIT 5) AS t(x, y) LEFT JOIN b ON b.id = t.x""",
    "two ranks": """SELECT id, v, r, n FROM (SELECT id, v, rank() OVER w AS r, dense_rank() OVER w AS n FROM a WINDOW w AS (ORDER BY v))
        WHERE r <= 6 AND n <= 2""",
}
DOUBLES = (0.0, -0.0, 1.5, float("nan"), None)


def drawn(rng: random.Random, number: int) -> Rows:
    values = (None, 1, 2, 2, 3, 9)
    return [(i, rng.choice("ppq"), rng.choice(values), rng.choice(DOUBLES)) for i in rng.sample(range(30), number)]


def changed(rng: random.Random, rows: Rows) -> Rows:
    kept = [row for row in rows if rng.random() > 0.25]
    moved = [(i, g, rng.choice((0, 2, 5)), rng.choice(DOUBLES)) if rng.random() < 0.2 else (i, g, v, x) for i, g, v, x in kept]
    return moved + [(100 + i, g, v, x) for i, g, v, x in drawn(rng, rng.randrange(4))]


@pytest.mark.parametrize("name", QUERIES)
def test_the_law_with_small_margins(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    rng, view = random.Random(name), View(spark, TABLES, QUERIES[name], {"a": ["id"]})
    assert any(isinstance(relation, FirstRows) for relation in view.definition.relation.walk())
    for margin, number in ((0, 9), (3, 14), (50, 5)):
        monkeypatch.setattr(first_rows, "MARGIN", margin)
        since = {"a": drawn(rng, number), "b": [(rng.randrange(30), rng.randrange(4)) for _ in range(8)]}
        view.assert_law(since, {"a": changed(rng, since["a"]), "b": since["b"][margin % 2 :]})
    view.changes(since, {**since, "a": changed(rng, since["a"])})
    assert not view.recomputed


@pytest.mark.parametrize("name", ["joined", "paged", "ranked", "densely", "beside a value"])
def test_histories(lake: TestLake, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Refresh after refresh, each from the rows that the one before kept."""
    monkeypatch.setattr(first_rows, "MARGIN", 4)
    rng = random.Random(name)
    lake.table(
        "a",
        "SELECT CAST(id AS INT) AS id, IF(id % 3 = 0, 'p', 'q') AS g, CAST(id * 7 % 11 AS INT) AS v, id / 2 AS x FROM range(40)",
        key=["id"],
    )
    lake.table("b", "SELECT CAST(id * 2 AS INT) AS id, id AS w FROM range(20)")
    lake.view("v", QUERIES[name])
    lake.refresh("v")
    reasons = []
    for step in range(5):
        ids = ", ".join(str(rng.randrange(40)) for _ in range(rng.randrange(1, 5)))
        statements = [
            f"DELETE FROM {{a}} WHERE id IN ({ids})",
            f"UPDATE {{a}} SET v = {rng.randrange(12)}, x = -x WHERE id IN ({ids})",
            f"UPDATE {{a}} SET v = NULL, g = 'r' WHERE id IN ({ids})",
            f"INSERT INTO {{a}} SELECT {100 + 100 * step} + id, g, v, x FROM {{a}} WHERE id IN ({ids})",
            f"DELETE FROM {{b}} WHERE id IN ({ids})",
        ]
        lake.sql(*rng.sample(statements, 2))
        result = lake.refresh("v")
        reasons.append(result.reason)
        assert result.mode in ("incremental", "none") or "was recomputed" in result.reason
        lake.assert_exact("v")
    assert "" in reasons


def test_what_is_recomputed_says_so_and_is_kept_again(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_rows, "MARGIN", 3)
    lake.table("a", "SELECT id, id % 50 AS v FROM range(100)", key=["id"])
    lake.view("v", "SELECT id, v, r FROM (SELECT id, v, rank() OVER (ORDER BY v) AS r FROM a) WHERE r <= 3")
    lake.refresh("v")
    found = []
    for deleted in ("0, 1", "50, 51", "2, 52", "3, 53, 4"):  # two rows of each value
        lake.sql(f"DELETE FROM {{a}} WHERE id IN ({deleted})")
        found.append(lake.refresh("v").reason)
        lake.assert_exact("v")
    why = "Filter of ranks was recomputed: of its first rows too many were deleted, and too few inserted in their place"
    assert set(found) == {"", why}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id, t.v FROM a JOIN (SELECT v FROM a ORDER BY v LIMIT 3) t ON a.v = t.v",  # equal rows only tie
        "SELECT id, rank() OVER (ORDER BY v) AS r FROM a",
        "SELECT id FROM (SELECT id, rank() OVER (ORDER BY v) AS r FROM a) WHERE r >= 2",
        "SELECT id, t FROM (SELECT id, rank() OVER (ORDER BY v) AS r, sum(v) OVER (ORDER BY v) AS t FROM a) WHERE r <= 2",
        "SELECT id FROM (SELECT id, rank() OVER (PARTITION BY g ORDER BY v) AS r FROM a) WHERE r <= 2",
        "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY v) AS r FROM a) WHERE r <= 2",
        "SELECT g FROM (SELECT g, rank() OVER (ORDER BY max(x)) AS r FROM a GROUP BY g) WHERE r <= 1 OR g = 'p'",
    ],
)
def test_which_are_kept(spark: SparkSession, query: str) -> None:
    view = View(spark, TABLES, query, {"a": ["id"]})
    kept = any(isinstance(relation, FirstRows) for relation in view.definition.relation.walk())
    assert kept == ("LIMIT 3" in query)


def test_rows_of_other_types_are_not_taken_for_those_that_are_kept(lake: TestLake) -> None:
    lake.table("a", "SELECT id, id AS v FROM range(100)", key=["id"])
    lake.table("b", "SELECT CAST(-5 AS INT) AS w", **{"delta.enableTypeWidening": "true"})
    limited = "SELECT id, v, (SELECT max(w) FROM b) AS m FROM a ORDER BY v, id LIMIT 5"
    lake.view("v", f"SELECT t.id, CAST(t.m AS STRING) AS m FROM ({limited}) t JOIN a ON a.id = t.id")
    assert any("which the stamp keeps" in step.rule for step in lake.open.explain("v").steps)
    lake.refresh("v")
    lake.sql("ALTER TABLE {b} ALTER COLUMN w TYPE BIGINT")
    lake.sql("DELETE FROM {a} WHERE id = 2")
    lake.refresh("v")
    lake.assert_exact("v")


def test_rows_that_are_too_long_for_the_stamp(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table("a", "SELECT id, sha2(string(id), 256) AS v FROM range(100)", key=["id"])
    lake.view("v", "SELECT t.id, t.v FROM (SELECT id, v FROM a ORDER BY v, id LIMIT 4) t JOIN a ON a.id = t.id")
    lake.refresh("v")
    for characters, reason in ((700, ""), (100, "LIMIT was recomputed: the stamp does not have its first rows")):
        monkeypatch.setattr(first_rows, "_CHARACTERS", characters)
        lake.open.rebuild("v")
        first = lake.open.read("v").orderBy("v").head()
        assert first is not None
        lake.sql(f"DELETE FROM {{a}} WHERE id = {first.id}")
        assert lake.refresh("v").reason == reason
        lake.assert_exact("v")


def test_a_broken_key_by_which_ranks_have_no_ties_is_named(lake: TestLake) -> None:
    lake.table("a", "SELECT id, id % 3 AS v FROM range(20)", key=["id"])
    numbered = "SELECT v, row_number() OVER (ORDER BY v, id) AS r FROM a"
    lake.view("v", f"SELECT v, count(*) AS n FROM ({numbered}) WHERE r <= 10 GROUP BY v")
    lake.refresh("v")
    lake.sql("INSERT INTO {a} VALUES (1, 1)")
    with pytest.raises(KeyViolationError, match=r"primary key \(id\) of a"):
        lake.open.rebuild("v")
