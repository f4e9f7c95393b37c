"""Edits of views: each kind against the new query run from scratch, on data that has moved since the view was built, and killed between
its commits; plans of several views; what is refused."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lake import Lakehouse, open_lake
from lake.core.planned import Plan, PlannedView, RowChanges
from lake.errors import ConcurrencyError, ConfigError, DefinitionError, ViewsFailedError
from lake.operations import renaming
from lake.operations.verify import Share
from lake.refresh import query_edit
from tests.lakes import TestLake, multiset

JOIN = "FROM t JOIN u ON t.k = u.id"
UNION = "SELECT id, k FROM t UNION ALL SELECT id, w FROM u"
GROUPS = "SELECT k, sum(id) AS s, count(*) AS n FROM t"
EDITS = {
    "conjuncts in another order": ("SELECT id, k FROM t WHERE v > 1 AND k > 0", "SELECT id, k FROM t WHERE k > 0 AND v > 1", "stamp"),
    "a column dropped": ("SELECT id, k, v FROM t", "SELECT id, v FROM t", "metadata"),
    "the key dropped": ("SELECT id, k, v FROM t", "SELECT k, v FROM t", "metadata"),
    "columns renamed and moved": ("SELECT id, k, v FROM t", "SELECT v AS k, k AS v, id AS ident FROM t", "metadata"),
    "an aggregate dropped": (f"{GROUPS} GROUP BY k", "SELECT k, sum(id) AS s FROM t GROUP BY k", "metadata"),
    "a condition more": (f"SELECT t.id, k, w {JOIN}", f"SELECT t.id, k, w {JOIN} WHERE w = 3", "delete"),
    "a condition on groups": (f"{GROUPS} GROUP BY k", f"{GROUPS} WHERE k > 1 GROUP BY k HAVING count(*) > 2", "rewrite"),
    "a condition that may be NULL": ("SELECT id, n FROM t", "SELECT id, n FROM t WHERE n > 2", "delete"),
    "distinct rows, fewer": ("SELECT DISTINCT k, n FROM t", "SELECT DISTINCT k, n FROM t WHERE n IS NOT NULL", "delete"),
    "columns computed": (f"SELECT t.id, k, x {JOIN}", f"SELECT t.id, k * 2 AS kk, upper(x) AS x, 1 AS one {JOIN}", "rewrite"),
    "a bound moved up": ("SELECT id, v FROM t WHERE v > 1", "SELECT id, v FROM t WHERE v > 6", "difference"),
    "other conditions": (f"SELECT t.id, w {JOIN} WHERE w < 2", f"SELECT t.id, w {JOIN} WHERE w < 3 AND v > 2", "difference"),
    "an input more": (UNION, f"{UNION} UNION ALL SELECT id, k FROM t WHERE v > 4", "difference"),
    "an input less": (f"{UNION} UNION ALL {UNION}", f"SELECT id, w AS k FROM u UNION ALL {UNION}", "difference"),
    "other groups": (f"{GROUPS} GROUP BY k", "SELECT n, sum(id) AS s, count(*) AS k FROM t GROUP BY n", "rebuild"),
    "a sum of doubles in another order": ("SELECT id, v + 0.1D + k AS s FROM t", "SELECT id, k + 0.1D + v AS s FROM t", "rebuild"),
    "computed from a sum of doubles": ("SELECT k, sum(v) AS s FROM t GROUP BY k", "SELECT k, sum(v) * 2 AS s FROM t GROUP BY k", "rebuild"),
}


@pytest.fixture
def tables(lake: TestLake) -> TestLake:
    """Two tables with duplicates, NULLs and text, and their keys."""
    lake.table(
        "t", "SELECT id, CAST(id % 4 AS INT) AS k, id * 1.5D AS v, concat('x', id) AS x, nullif(id % 5, 3) AS n FROM range(16)", ["id"]
    )
    lake.table("u", "SELECT id, CAST(id AS INT) AS w FROM range(5)", ["id"])
    return lake


def moved(lake: TestLake) -> None:
    """Rows move to other keys, go, come, and come again."""
    lake.sql(
        "UPDATE {t} SET k = 3, v = -v WHERE id IN (2, 7)",
        "DELETE FROM {t} WHERE id IN (4, 5)",
        "INSERT INTO {t} SELECT id, 1, 9, 'new', NULL FROM range(4, 6)",
        "UPDATE {u} SET w = w + 1 WHERE id > 2",
    )


def test_edits_give_what_the_new_queries_give_and_so_do_the_refreshes_after_them(tables: TestLake) -> None:
    """All in one lake, since changing a table costs more than an edit."""
    names = {f"v{i}": name for i, name in enumerate(EDITS)}
    for view, name in names.items():
        tables.view(view, EDITS[name][0])
    tables.open.refresh_all()
    built = {view: tables.open.stamp(view) for view in names}
    moved(tables)
    for view, name in names.items():
        tables.view(view, EDITS[name][1])
    planned = {names[v.view]: v.how or v.action for v in tables.open.plan().views}
    assert planned == {name: kind for name, (_, _, kind) in EDITS.items()}
    results = {result.view: result for result in tables.open.apply()}
    for view, name in names.items():
        stamp, before = tables.open.stamp(view), built[view]
        assert stamp is not None
        assert before is not None
        assert tables.open.verify(view).exact, name
        if planned[name] != "rebuild":
            assert results[view].mode == "edit", name
            assert stamp.snapshot == before.snapshot, name  # no newer version of a source was read
    assert tables.open.plan().changes == ()
    moved(tables)
    for view, name in names.items():
        assert tables.refresh(view).mode == "incremental", name
        assert multiset(tables.open.read(view)) == tables.truth(view), name


def test_views_above_see_an_edit_as_a_change_of_their_source(tables: TestLake) -> None:
    tables.view("below", "SELECT id, k, n, v FROM t")
    tables.view("above", "SELECT k, count(*) AS c FROM below GROUP BY k")
    tables.open.refresh_all()
    edits = {"rewrite": "SELECT id, k, n FROM t WHERE k <> 1", "metadata": "SELECT id, k FROM t WHERE k <> 1"}  # n and v are not read above
    for kind, query in edits.items():
        tables.view("below", query)
        assert [(v.view, v.how or v.action) for v in tables.open.plan().views] == [("below", kind), ("above", "none")]
        tables.open.apply()
        assert tables.refresh("above").rows_deleted == (1 if kind == "rewrite" else 0)
        assert sorted(map(tuple, tables.open.read("above").collect())) == [(0, 4), (2, 4), (3, 4)]
    tables.sql("UPDATE {t} SET k = 2 WHERE id = 8")
    assert [result.mode for result in tables.open.refresh_all()] == ["incremental", "incremental"]
    assert sorted(map(tuple, tables.open.read("above").collect())) == [(0, 3), (2, 5), (3, 4)]


def test_queries_that_look_alike_are_told_apart(tables: TestLake) -> None:
    tables.table("w", "SELECT id, CAST(id * 3 AS INT) AS w FROM range(5)", ["id"])
    tables.view("v", "SELECT u.id, u.w FROM u JOIN w ON u.id = w.id WHERE u.w > 1")
    tables.refresh("v")
    others = {
        "SELECT w.id, w.w FROM u JOIN w ON u.id = w.id WHERE u.w > 1": "rebuild",
        "SELECT u.id, u.w FROM u JOIN w ON u.id = w.id WHERE w.w > 1": "difference",
        "SELECT u.id, w.w FROM u JOIN w ON u.id = w.id WHERE u.w > 1": "rebuild",
        "SELECT u.id, u.w FROM u LEFT JOIN w ON u.id = w.id WHERE u.w > 1": "rebuild",
        "SELECT DISTINCT u.id, u.w FROM u JOIN w ON u.id = w.id WHERE u.w > 1": "rebuild",
    }
    for query, kind in others.items():
        tables.view("v", query)
        assert [v.how or v.action for v in tables.open.plan().views] == [kind], query


def test_a_plan_is_of_the_columns_that_the_views_below_will_have(tables: TestLake) -> None:
    tables.view("below", "SELECT id, k, v FROM t")
    tables.view("above", "SELECT id, v FROM below")
    tables.open.refresh_all()
    tables.view("below", "SELECT id, k FROM t")
    tables.view("new", "SELECT count(*) AS c FROM newer")
    tables.view("newer", "SELECT id FROM t")
    found = {v.view: v for v in tables.open.plan().views}
    assert {name: v.action for name, v in found.items()} == {"below": "edit", "above": "refused", "new": "build", "newer": "build"}
    assert "v" in found["above"].reason
    assert found["below"].downstream == ("above",)
    assert found["below"].columns_dropped == ("v",)
    assert tables.open.plan().exit_code == 1
    with pytest.raises(ViewsFailedError, match="1 of 4 views could not be applied:\n- above: View 'above' can't be applied"):
        tables.open.apply()
    assert {v.view: v.action for v in tables.open.plan().views} == {"below": "none", "above": "refused", "new": "none", "newer": "none"}
    with pytest.raises(DefinitionError, match="View 'above' can't be applied"):
        tables.open.apply(["above"])


def test_an_edit_killed_before_or_after_its_commit_is_done_once(tables: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.view("v", "SELECT id, k, v FROM t")
    tables.refresh("v")
    tables.view("v", "SELECT id, k FROM t WHERE k <> 1")

    class KilledError(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(query_edit.publish, "publish_rows", die)
        with pytest.raises(KilledError):
            tables.open.apply()
    assert tables.open.read("v").columns == ["id", "k", "v"]
    assert [v.how for v in tables.open.plan().changes] == ["rewrite"]
    with monkeypatch.context() as patch:
        patch.setattr(query_edit.Target, "describe", die)
        with pytest.raises(KilledError):
            tables.open.apply()
    assert tables.open.verify("v").exact
    assert tables.open.plan().changes == ()
    moved(tables)
    assert tables.refresh("v").mode == "incremental"
    tables.assert_exact("v")
    tables.view("v", "SELECT id FROM t WHERE k <> 1")  # the refresh has recorded the query that the killed edit published
    assert [v.how for v in tables.open.plan().changes] == ["metadata"]


def test_columns_that_spark_pads_and_tables_of_many_columns(tables: TestLake) -> None:
    """A CHAR is padded where it is read from its source, and not where it is read from the view."""
    tables.spark.sql(
        f"CREATE TABLE delta.`{tables.path('c')}` (id BIGINT, x CHAR(5)) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    tables.tables["c"] = {"path": "c"}
    tables.sql("INSERT INTO {c} VALUES (1, 'ab'), (2, 'abcde'), (3, NULL)")
    many = [f"id + {i} AS c{i}" for i in range(40)]
    tables.view("padded", "SELECT id, x FROM c")
    tables.view("wide", f"SELECT id, struct(v) AS s, {', '.join(many)} FROM t")
    tables.open.refresh_all()
    tables.view("padded", "SELECT id, x FROM c WHERE x = 'ab'")
    tables.view("wide", f"SELECT id, {', '.join(many[:5])} FROM t")
    planned = {v.view: v.how or v.action for v in tables.open.plan().views}
    assert planned == {"padded": "delete", "wide": "metadata"}
    tables.open.apply()
    tables.sql("INSERT INTO {c} VALUES (4, 'ab')", "UPDATE {c} SET x = 'abc' WHERE id = 1")
    moved(tables)
    assert [r.mode for r in tables.open.refresh_all()] == ["incremental", "incremental"]
    assert [row.id for row in tables.open.read("padded").collect()] == [4]
    for view in planned:
        assert tables.open.verify(view).exact


def test_a_renamed_view_keeps_rows_history_and_progress(tables: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.view("old", "SELECT id, k, v FROM t")
    tables.refresh("old")
    before = tables.open.stamp("old")
    assert before is not None
    moved(tables)
    del tables.views["old"]
    tables.view("new", "SELECT id, k FROM t WHERE k <> 1", renamed_from="old")
    (planned,) = tables.open.plan().views
    assert planned.action == "rename"
    assert planned.reason.startswith("the table of old is taken over; then edit (rewrite): ")
    assert tables.open.plan().exit_code == 2
    with pytest.raises(DefinitionError, match=r"'new' is renamed from 'old', whose table is still under that name.*lakejoin apply new"):
        tables.refresh("new")

    class KilledError(BaseException):
        pass

    def die(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(renaming.Transaction, "commit", die)
        with pytest.raises(KilledError):
            tables.open.apply()
    assert [v.action for v in tables.open.plan().views] == ["rename"]
    assert [(r.view, r.mode) for r in tables.open.apply()] == [("new", "edit"), ("new", "edit")]
    after = tables.open.stamp("new")
    assert after is not None
    assert (after.view, after.snapshot, after.number) == ("new", before.snapshot, before.number + 2)
    assert [p.stamp.view for p in tables.open.history("new")] == ["old", "new", "new"]
    assert tables.open.plan().changes == ()
    assert tables.refresh("new").mode == "incremental"
    tables.assert_exact("new")
    tables.view("third", "SELECT id FROM t", renamed_from="fourth")  # there is nothing of it
    assert {v.view: v.action for v in tables.open.plan().views} == {"new": "none", "third": "build"}


def test_a_name_that_is_taken_is_no_earlier_name(tables: TestLake) -> None:
    tables.view("v", "SELECT id FROM t")
    for views, message in (
        ({"w": "v"}, "view 'w' is `renamed_from: v`, which is a view as well"),
        ({"w": "x", "y": "x"}, "views 'w' and 'y' are both `renamed_from: x`"),
        ({"w": "../x"}, "view 'w' is `renamed_from: ../x`: the name"),
    ):
        given = {name: {"query": "SELECT id FROM t", "renamed_from": earlier} for name, earlier in views.items()}
        with pytest.raises(ConfigError, match=re.escape(message)):
            open_lake({**tables.config, "views": {**tables.views, **given}})


def test_a_plan_counts_the_rows_that_an_edit_changes_if_it_is_asked(tables: TestLake) -> None:
    tables.view("keyed", "SELECT id, k, n, x FROM t WHERE id <> 0")
    tables.view("bag", "SELECT k FROM t")
    tables.view("grouped", f"{GROUPS} GROUP BY k")
    tables.open.refresh_all()
    moved(tables)  # which the views have not read
    tables.view("keyed", "SELECT id, k + 1 AS k, coalesce(n, 9) AS n, id AS y FROM t WHERE id <> 1")
    tables.view("bag", "SELECT k FROM t WHERE k <> 3 UNION ALL SELECT w FROM u WHERE w = 4")
    tables.view("grouped", "SELECT k, s FROM no_such_table")
    found = {v.view: v.row_changes for v in tables.open.plan(Share()).views}
    # of 15 ids in both, id 2 to 15, all have another k, and the three with n = NULL another n: 3, 8, 13
    assert str(found["keyed"]).startswith("1 added, 1 removed, 14 changed; changed in k 14, n 3; such as id=")
    assert found["bag"] == RowChanges(1, 4, 0, {})
    assert found["grouped"] is None
    assert {v.view: v.action for v in tables.open.plan().views}["grouped"] == "refused"
    part = {v.view: v.row_changes for v in tables.open.plan(Share(1, 4)).views}["keyed"]
    assert isinstance(part, RowChanges)
    assert 0 < part.changed < 14
    assert Plan.from_json(tables.open.plan(Share()).to_json()).views[0].row_changes is None


def test_a_plan_that_is_older_than_the_lake_applies_nothing(tables: TestLake) -> None:
    tables.view("v", "SELECT id, k, v FROM t")
    tables.refresh("v")
    tables.view("v", "SELECT id, k FROM t")
    shown = Plan.from_json(tables.open.plan().to_json())
    assert shown == tables.open.plan()
    moved(tables)
    tables.view("v", "SELECT id, k, v FROM t")
    tables.refresh("v")
    tables.view("v", "SELECT id, k FROM t")
    with pytest.raises(ConcurrencyError, match="The plan is out of date: v or what was published changed"):
        tables.open.apply(plan=shown)
    assert tables.open.read("v").columns == ["id", "k", "v"]


def test_two_applies_at_once_publish_one_edit(tables: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.view("v", "SELECT id, k, v FROM t")
    tables.refresh("v")
    tables.view("v", "SELECT id, k FROM t")
    begun = query_edit.publish.begun
    other = Lakehouse(tables.open.config, tables.spark)

    def late(*arguments: object) -> object:
        monkeypatch.undo()
        assert [r.mode for r in other.apply()] == ["edit"]
        return begun(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(query_edit.publish, "begun", late)
    with pytest.raises(ConcurrencyError, match="another writer committed first"):
        tables.open.apply(["v"])
    assert [p.stamp.mode for p in tables.open.history("v")] == ["build", "edit"]
    tables.assert_exact("v")


def test_what_is_not_known_of_the_query_before_is_rebuilt_and_said(tables: TestLake) -> None:
    tables.view("v", "SELECT id, k FROM t")
    tables.refresh("v")
    tables.sql("ALTER TABLE {v} UNSET TBLPROPERTIES ('lakejoin.definition')")  # as an earlier release left it
    tables.view("v", "SELECT id FROM t")
    (planned,) = tables.open.plan().views
    assert (planned.action, planned.diff) == ("rebuild", "")
    assert planned.reason == "the table does not say which query it was built with"
    tables.open.apply()
    tables.view("v", "SELECT id AS i FROM t")
    (planned,) = tables.open.plan().views
    assert planned.how == "metadata"
    assert "-SELECT id FROM t\n+SELECT id AS i FROM t" in planned.diff


def test_a_setting_that_changes_results_is_a_rebuild(tables: TestLake) -> None:
    tables.view("v", "SELECT id, CAST(x AS DATE) AS d FROM t WHERE x = '2024-01-01'")
    tables.refresh("v")
    tables.tables["t"]["primary_key"] = ["id", "k"]
    tables.view("v", "SELECT id FROM t")
    (planned,) = tables.open.plan().views
    assert (planned.action, planned.reason) == ("rebuild", "columns or keys of what it reads changed")


def test_a_blocking_expectation_sees_the_rows_of_an_edit(tables: TestLake) -> None:
    rule = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "n"}, "on_failure": "block"}
    tables.view("v", "SELECT id, k AS n FROM t", expectations=[rule])
    tables.refresh("v")
    tables.view("v", "SELECT id, nullif(k, 2) AS n FROM t", expectations=[rule])
    (planned,) = tables.open.plan().views
    assert (planned.action, planned.reason) == ("rebuild", "its blocking expectations have to see the new rows")


def test_views_and_paths_that_there_are_not_are_named(tables: TestLake) -> None:
    tables.view("v", "SELECT id FROM t")
    with pytest.raises(ConfigError, match="'w'"):
        tables.open.apply(["w"])
    with pytest.raises(ConfigError, match="`plan` works on the strong path"):
        tables.open.on("eventual").plan()


def test_plans_differ_by_what_they_do_and_by_what_they_start_from() -> None:
    one = PlannedView("v", "edit", "why", "metadata", token="a")
    plan = Plan((one, PlannedView("w", "none")))
    assert plan.differing(Plan((replace(one, reason="other words"), PlannedView("w", "none"))), ["v", "w"]) == []
    for other in (replace(one, how="rewrite"), replace(one, token="b"), replace(one, action="rebuild")):
        assert plan.differing(Plan((other,)), ["v", "w"]) == ["v", "w"]
    assert [p.exit_code for p in (Plan(()), plan, Plan((replace(one, action="refused"),)))] == [0, 2, 1]
    with pytest.raises(ValueError, match="no plan of lakejoin plan"):
        Plan.from_json({"views": [{"view": "v"}]})
