"""ORDER BY ... LIMIT at a view's root: the rows after the last one, which the stamp keeps (relations/top.py)."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from deltalake import DeltaTable

from lake.core.stamp import Stamp
from lake.relations import first_rows, top
from tests.lakes import SPARK, TestLake

pytestmark = pytest.mark.slow

MARGIN = 6
ORDER = ("v", "id")
WIDE = """SELECT id, CASE WHEN id % 11 = 0 THEN NULL ELSE id * 37 % 101 END AS v, IF(id % 7 = 0, DOUBLE('NaN'), -0.0D * id) AS d,
    named_struct('a', array(id, NULL), 'm', map('k', id % 3)) AS s, CAST(id / 7 AS DECIMAL(20, 5)) AS n,
    parse_json(concat('[', id, ']')) AS j, timestamp_seconds(id) AS t, CAST(NULL AS BINARY) AS b,
    repeat('é', CAST(id % 5 AS INT)) AS text FROM range(200)"""


def kept(lake: TestLake) -> Sequence[str | None] | None:
    """What the newest stamp of the view keeps for its LIMIT: whether it is all of the child, and the rows as a text."""
    place = lake.of_view("v").removeprefix("delta.`").removesuffix("`")
    stamp = next(found for commit in DeltaTable(place).history() if (found := Stamp.from_json(commit.get("userMetadata"))))
    return next(iter((stamp.totals or {}).values()), None)


@pytest.fixture(autouse=True)
def _small_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_rows, "MARGIN", MARGIN)


def deleted(lake: TestLake, number: int) -> None:
    """Delete the first rows of the view from its table."""
    ids = [row.id for row in lake.open.read("v").orderBy(*ORDER).limit(number).collect()]
    lake.sql(f"DELETE FROM {{a}} WHERE id IN ({', '.join(map(str, ids))})")


def assert_incremental(lake: TestLake) -> None:
    """The view is refreshed without reading its table in full, and is exact."""
    result = lake.refresh("v")
    assert (result.mode, result.reason) == ("incremental", "")
    lake.assert_exact("v")


def assert_recomputed(lake: TestLake) -> None:
    """The view's table is read in full once, and it is exact."""
    assert "LIMIT was recomputed" in lake.refresh("v").reason
    lake.assert_exact("v")


def test_as_many_rows_of_the_top_may_go_as_the_margin_has(lake: TestLake) -> None:
    lake.table("a", "SELECT id, id * 37 % 101 AS v FROM range(100)", key=["id"])
    lake.view("v", "SELECT id, v FROM a ORDER BY v, id LIMIT 10")
    lake.refresh("v")
    for number in (1, 3, 2):
        deleted(lake, number)
        assert_incremental(lake)
    assert kept(lake) == ("", "")
    deleted(lake, 1)
    assert_recomputed(lake)
    deleted(lake, MARGIN)  # the margin is full again
    assert_incremental(lake)
    lake.sql("INSERT INTO {a} SELECT 1000 + id, -1 FROM range(10)")  # the old top becomes a margin
    assert_incremental(lake)
    deleted(lake, MARGIN)
    assert_incremental(lake)


def test_where_all_rows_are_known_nothing_is_recomputed(lake: TestLake) -> None:
    lake.table("a", "SELECT id, id % 4 AS v FROM range(14)", key=["id"])
    lake.view("v", "SELECT id, v FROM a ORDER BY v, id LIMIT 10")
    lake.refresh("v")
    found = kept(lake)
    assert found is not None
    assert found[0] == "all"
    deleted(lake, 9)
    assert_incremental(lake)
    lake.sql("INSERT INTO {a} SELECT 100 + id, 0 FROM range(40)")
    assert_incremental(lake)
    deleted(lake, MARGIN)
    assert_incremental(lake)
    deleted(lake, 1)
    assert_recomputed(lake)


def test_a_refresh_without_changes_of_the_rows_keeps_the_margin(lake: TestLake) -> None:
    lake.table("a", "SELECT id, id AS v, 'x' AS other FROM range(100)", key=["id"])
    lake.view("v", "SELECT id, v FROM a WHERE v >= 5 ORDER BY v, id LIMIT 10")
    lake.refresh("v")
    before = kept(lake)
    lake.sql("UPDATE {a} SET other = 'y' WHERE id < 3")
    lake.refresh("v")
    assert kept(lake) == before
    deleted(lake, 4)
    assert_incremental(lake)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM a ORDER BY v DESC NULLS LAST, id LIMIT 7",
        pytest.param(
            "SELECT text, v + 1 AS w, d, s, j FROM a WHERE id % 3 <> 1 ORDER BY v, d, id DESC LIMIT 9",
            marks=pytest.mark.skipif(SPARK < (4, 1), reason="Spark 4.0 can't read VARIANT from files of which rows were deleted"),
        ),
        "SELECT id % 20 AS g, count(*) AS n, max(v) AS hi FROM a GROUP BY id % 20 ORDER BY n DESC, g LIMIT 5",
        "SELECT id % 9 AS k, text FROM a ORDER BY k, text LIMIT 12",
        "SELECT x.id, y.v FROM a x JOIN a y ON x.id = y.id + 1 ORDER BY y.v NULLS FIRST, x.id LIMIT 8",
    ],
)
def test_random_histories(lake: TestLake, query: str) -> None:
    rng = random.Random(query)
    lake.table("a", WIDE, key=["id"])
    lake.view("v", query)
    lake.refresh("v")
    recomputed = 0
    for step in range(7):
        ids = ", ".join(str(rng.randrange(200)) for _ in range(rng.randrange(1, 14)))
        lake.sql(
            *rng.sample(
                [
                    f"DELETE FROM {{a}} WHERE id IN ({ids})",
                    f"UPDATE {{a}} SET v = {rng.randrange(-5, 110)}, d = -d WHERE id IN ({ids})",
                    f"UPDATE {{a}} SET v = NULL, text = 'z' WHERE id IN ({ids})",
                    f"INSERT INTO {{a}} SELECT {1000 + 1000 * step} + id, v, d, s, n, j, t, b, text FROM {{a}} WHERE id IN ({ids})",
                ],
                2,
            )
        )
        recomputed += "LIMIT" in lake.refresh("v").reason
        lake.assert_exact("v")
    assert recomputed < 7


def test_a_margin_that_is_too_long_is_cut(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "_CHARACTERS", 120)
    lake.table("a", "SELECT id, sha2(string(id), 256) AS v FROM range(100)", key=["id"])
    lake.view("v", "SELECT id, v FROM a ORDER BY v, id LIMIT 10")
    lake.refresh("v")
    found = kept(lake)
    assert found is not None
    assert 0 < len(found[1] or "") <= 120
    deleted(lake, 1)
    assert_incremental(lake)
    deleted(lake, 5)
    lake.refresh("v")
    lake.assert_exact("v")


def test_a_column_that_is_widened_and_a_larger_limit(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table("a", "SELECT id, CAST(id AS INT) AS v FROM range(100)", key=["id"], **{"delta.enableTypeWidening": "true"})
    lake.view("v", "SELECT id, CAST(v AS BIGINT) AS v FROM a ORDER BY v, id LIMIT 10")
    lake.refresh("v")
    lake.sql("ALTER TABLE {a} ALTER COLUMN v TYPE BIGINT")
    deleted(lake, 3)
    lake.refresh("v")
    lake.assert_exact("v")
    monkeypatch.setattr(top, "MOST", 5)  # as of a LIMIT that has no margin
    deleted(lake, 3)
    lake.refresh("v")
    assert kept(lake) is None
    lake.assert_exact("v")
