"""Views that read views: exact through the whole graph, and answering for one snapshot of the base tables."""

from __future__ import annotations

import pytest

from lake import open_lake
from lake.errors import DefinitionError, SourceError, ViewsFailedError
from tests.lakes import TestLake, multiset

pytestmark = pytest.mark.slow

A = "SELECT * FROM VALUES (1, 'x', 10), (2, 'y', 20), (3, 'y', 5), (4, NULL, 1) t(id, g, v)"


@pytest.fixture
def diamond(lake: TestLake) -> TestLake:
    """`a` → `totals` → `shares`, which reads `a` itself as well; the views are declared in the wrong order."""
    lake.table("a", A, key=["id"])
    lake.view("shares", "WITH t AS (SELECT * FROM totals) SELECT a.id, a.v, t.total FROM a JOIN t ON a.g <=> t.g")
    lake.view("totals", "SELECT g, sum(v) AS total, count(*) AS n FROM a GROUP BY g")
    return lake


def truth_of_shares(lake: TestLake) -> object:
    query = "SELECT a.id, a.v, t.total FROM {a} a JOIN (SELECT g, sum(v) AS total FROM {a} GROUP BY g) t ON a.g <=> t.g"
    return multiset(lake.spark.sql(query.format(a=f"delta.`{lake.path('a')}`")))


def test_a_graph_is_refreshed_in_order_to_one_snapshot_of_the_base_tables(diamond: TestLake) -> None:
    built = diamond.open.refresh_all()
    assert [r.view for r in built] == ["totals", "shares"]
    for change in (
        "UPDATE {a} SET v = v + 1 WHERE id = 2",
        "UPDATE {a} SET g = 'x' WHERE id = 3",
        "DELETE FROM {a} WHERE id = 4",
        "INSERT INTO {a} VALUES (5, NULL, 7), (6, 'z', 8)",
    ):
        diamond.sql(change)
        results = diamond.open.refresh_all()
        assert [r.mode for r in results] == ["incremental", "incremental"]
        assert multiset(diamond.open.read("shares")) == truth_of_shares(diamond)
        assert diamond.open.verify("shares").exact
        assert diamond.open.verify("totals").exact
    assert diamond.open.explain("shares").key == ("id",)


def test_in_a_diamond_the_base_is_read_at_the_version_that_the_parent_answers_for(diamond: TestLake) -> None:
    diamond.open.refresh_all()
    before = truth_of_shares(diamond)
    diamond.sql("UPDATE {a} SET v = v * 2")
    assert diamond.refresh("shares").mode == "none"
    assert multiset(diamond.open.read("shares")) == before
    diamond.refresh("totals")
    assert diamond.refresh("shares").mode == "incremental"
    assert multiset(diamond.open.read("shares")) == truth_of_shares(diamond)


def test_parents_that_disagree_are_an_error_naming_both(diamond: TestLake) -> None:
    diamond.view("least", "SELECT g, min(v) AS least FROM a GROUP BY g")
    diamond.view("both", "SELECT t.g, t.total, l.least FROM totals t JOIN least l ON t.g = l.g")
    diamond.open.refresh_all()
    diamond.sql("DELETE FROM {a} WHERE id = 3")
    diamond.refresh("least")
    with pytest.raises(SourceError, match=r"different versions of a: totals from 0, least from 1"):
        diamond.refresh("both")
    assert [r.mode for r in diamond.open.refresh_all()] == ["incremental", "incremental", "none", "incremental"]


def test_a_view_whose_parent_is_not_built_says_what_to_run(diamond: TestLake) -> None:
    with pytest.raises(SourceError, match=r"reads view 'totals', which has not been built yet. Run \"lakejoin refresh totals\""):
        diamond.refresh("shares")


def test_a_cycle_is_named(lake: TestLake) -> None:
    lake.table("a", A)
    lake.view("p", "SELECT * FROM q")
    lake.view("q", "SELECT * FROM r")
    lake.view("r", "SELECT a.id FROM a JOIN p ON a.id = p.id")
    with pytest.raises(DefinitionError, match="cycle: p → q → r → p"):
        lake.refresh("p")


def test_hidden_key_columns_of_a_parent_are_not_seen(lake: TestLake) -> None:
    lake.table("a", A, key=["id"])
    lake.view("hidden", "SELECT g, v FROM a")
    lake.view("child", "SELECT * FROM hidden WHERE v > 1")
    lake.open.refresh_all()
    lake.sql("INSERT INTO {a} VALUES (7, 'x', 10)")
    lake.sql("DELETE FROM {a} WHERE id = 3")
    lake.open.refresh_all()
    assert lake.open.read("child").columns == ["g", "v"]
    assert multiset(lake.open.read("child")) == {("x", 10): 2, ("y", 20): 1}
    assert lake.open.verify("child").exact


def test_a_view_of_another_configuration_is_a_table_like_any(lake: TestLake) -> None:
    lake.table("a", A)
    lake.view("v", "SELECT id, v FROM a")
    lake.refresh("v")
    views = {"w": {"query": "SELECT id, v FROM up"}, "x": {"query": "SELECT w.id, up.v FROM w JOIN up ON w.id = up.id"}}
    tables = {"up": {"path": lake.path("views") + "/v"}}
    other = open_lake({"root": str(lake.folder / "other"), "tables": tables, "views": views}, spark=lake.spark)
    other.refresh("w")
    lake.sql("INSERT INTO {a} VALUES (9, 'new', 1), (1, 'more', 2)")
    lake.refresh("v")
    other.refresh("x")
    for view in views:
        stamp = other.stamp(view)
        assert stamp is not None
        assert dict(stamp.answers_for) == {"up": 1}  # the diamond is read at one version


def test_a_view_that_fails_stops_only_those_that_read_it_and_all_failures_are_named_at_the_end(lake: TestLake) -> None:
    lake.table("a", "SELECT * FROM VALUES (1, '10'), (2, '20') t(id, s)", key=["id"])
    lake.view("above", "SELECT id, n FROM broken")
    lake.view("broken", "SELECT id, cast(s AS int) AS n FROM a")
    lake.view("worse", "SELECT id, 1 / (id - 3) AS x FROM a")
    lake.view("whole", "SELECT id, s FROM a")
    assert len(lake.open.refresh_all()) == 4
    lake.sql("INSERT INTO {a} VALUES (3, 'x')")
    message = r"2 of 4 views could not be refreshed:\n- broken: (.|\n)*- worse: (.|\n)*: above\."
    with pytest.raises(ViewsFailedError, match=message) as caught:
        lake.open.refresh_all()
    assert (sorted(caught.value.failed), caught.value.skipped) == (["broken", "worse"], ("above",))
    assert [result.view for result in caught.value.results] == ["whole"]
    assert multiset(lake.open.read("whole")) == lake.truth("whole")
    lake.sql("DELETE FROM {a} WHERE id = 3")
    assert len(lake.open.refresh_all()) == 4
    lake.assert_exact("worse")
