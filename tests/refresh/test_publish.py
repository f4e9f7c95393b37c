"""One commit of rows and progress: whatever is killed, raced or written by others, nothing is applied twice and nothing is lost."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from deltalake import DeltaTable as DeltaRsTable
from deltalake import QueryBuilder

from lake import Lakehouse, open_lake
from lake.core.stamp import Stamp
from lake.errors import BlockedError, ExpiredError, KeyViolationError, QueryError, SourceError, TargetError
from lake.refresh.compute import Candidate
from lake.spark.jvm.gateway import jvm_of
from tests.lakes import TestLake, multiset

pytestmark = pytest.mark.slow

A = "SELECT * FROM VALUES (1, 'x', 10), (2, 'y', 20), (3, 'z', 30) t(id, s, v)"
B = "SELECT * FROM VALUES (1, 'p', 100), (1, 'q', 101), (2, 'p', 200), (NULL, 'p', 0) t(id, kind, w)"
KEYED = "SELECT b.id, b.kind, b.w, a.s FROM b JOIN a ON a.id = b.id"

CAST, FROM = "SELECT b.id, b.kind, cast(b.w AS int) AS w, a.s", " FROM b JOIN a ON a.id = b.id"

CHILD = """
import json, os, signal, sys
import lake.refresh.publish as publish
from lake import open_lake
from lake.spark.session import make_session
from tests.conftest import QUICK
config, view, step = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
if step == "before the commit":
    publish._prepared = die
elif step == "between computing and committing":
    publish._commit = die
elif step == "after the commit":
    commit = publish._commit
    publish._commit = lambda *args: die(commit(*args))
print(open_lake(config, spark=make_session(QUICK)).refresh(view).mode)
"""


@pytest.fixture
def keyed(lake: TestLake) -> TestLake:
    """A join with the key (id, kind), built."""
    lake.table("a", A, key=["id"])
    lake.table("b", B, key=["id", "kind"])
    lake.view("j", KEYED, description="a join", owner="me", tags=["x", "y"])
    lake.refresh("j")
    return lake


def change(lake: TestLake) -> None:
    """New rows, changed rows, deleted rows and one that moves to another key, on both sides."""
    lake.sql("UPDATE {b} SET id = 3 WHERE kind = 'q'")
    lake.sql("UPDATE {a} SET s = 'changed' WHERE id = 1")
    lake.sql("DELETE FROM {b} WHERE w = 200")
    lake.sql("INSERT INTO {b} VALUES (2, 'r', 201), (NULL, 'r', 1)")


def child(lake: TestLake, step: str) -> subprocess.Popen[str]:
    """A refresh in a process of its own."""
    arguments = [sys.executable, "-c", CHILD, json.dumps(lake.config), "j", step]
    return subprocess.Popen(arguments, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, stderr=None, text=True)


def stamps(lake: TestLake) -> list[Stamp]:
    """All stamps in the view's log, oldest first."""
    rows = lake.spark.sql(f"DESCRIBE HISTORY {lake.of_view('j')}").select("version", "userMetadata").collect()
    found = [Stamp.from_json(r[1]) for r in sorted(rows)]
    return [s for s in found if s is not None]


def test_a_keyed_view_is_updated_in_place_and_hides_nothing_of_its_key(keyed: TestLake) -> None:
    change(keyed)
    result = keyed.refresh("j")
    assert (result.mode, result.rows_updated, result.rows_inserted, result.rows_deleted) == ("incremental", 1, 3, 3)
    keyed.assert_exact("j")
    assert keyed.open.read("j").columns == ["id", "kind", "w", "s"]
    assert keyed.open.explain("j").key == ("id", "kind")


def test_key_columns_that_are_not_selected_are_carried_hidden_and_last(lake: TestLake) -> None:
    lake.table("a", A, key=["id"])
    lake.table("b", B, key=["id", "kind"])
    lake.view("j", "SELECT b.w, a.s FROM b JOIN a ON a.id = b.id")
    lake.refresh("j")
    change(lake)
    lake.refresh("j")
    lake.assert_exact("j")
    assert lake.open.read("j").columns == ["w", "s"]
    stored = lake.spark.read.format("delta").load(lake.path("views") + "/j").columns
    assert stored == ["w", "s", "__lakejoin_key_0", "__lakejoin_key_1"]


def test_stamp_holds_the_progress_in_under_two_kilobytes(keyed: TestLake) -> None:
    assert keyed.open.state_bytes("j") < 2048
    assert dict(stamps(keyed)[-1].snapshot) == {"a": 0, "b": 0}


def test_another_reader_reads_the_view_right(keyed: TestLake) -> None:
    change(keyed)
    keyed.refresh("j")
    table = DeltaRsTable(keyed.path("views") + "/j")
    rows = QueryBuilder().register("j", table).execute("SELECT id, kind, w, s FROM j").read_all()
    found = sorted(zip(*[rows.column(i).to_pylist() for i in range(4)], strict=True))
    assert found == sorted(keyed.truth("j").elements())
    properties = keyed.spark.sql(f"DESCRIBE DETAIL {keyed.of_view('j')}").head()
    assert properties is not None
    assert properties["description"] == "a join"
    assert properties["properties"]["lakejoin.owner"] == "me"
    assert list(properties["clusteringColumns"]) == ["id", "kind"]


def test_the_views_own_change_feed_shows_only_what_changed(keyed: TestLake) -> None:
    keyed.sql("UPDATE {a} SET s = 'changed' WHERE id = 2")
    keyed.refresh("j")
    newest = len(stamps(keyed))
    feed = keyed.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", newest)
    rows = feed.load(keyed.path("views") + "/j").select("id", "kind", "s", "_change_type")
    assert multiset(rows) == {(2, "p", "y", "delete"): 1, (2, "p", "changed", "insert"): 1}


def test_a_declared_key_that_the_data_breaks_publishes_nothing(keyed: TestLake) -> None:
    before = multiset(keyed.open.read("j"))
    keyed.sql("INSERT INTO {b} VALUES (1, 'p', 5)")
    with pytest.raises(KeyViolationError, match=r"primary key \(id, kind\) of b .*'id': 1, 'kind': 'p'"):
        keyed.refresh("j")
    assert multiset(keyed.open.read("j")) == before
    keyed.sql("DELETE FROM {b} WHERE w = 5")
    keyed.refresh("j")
    keyed.assert_exact("j")


def test_a_broken_key_beside_other_changes_publishes_nothing(keyed: TestLake) -> None:
    keyed.sql("INSERT INTO {b} VALUES (2, 'p', 5)")
    keyed.sql("DELETE FROM {b} WHERE kind = 'q'")
    with pytest.raises(KeyViolationError, match="primary key"):
        keyed.refresh("j")
    assert len(stamps(keyed)) == 1


def test_a_key_that_is_broken_from_the_start_builds_nothing(lake: TestLake) -> None:
    lake.table("a", A + " UNION ALL " + A, key=["id"])
    lake.view("j", "SELECT id, s FROM a")
    with pytest.raises(KeyViolationError, match=r"primary key \(id\) of a"):
        lake.refresh("j")
    with pytest.raises(TargetError, match="has not been built yet"):
        lake.open.read("j")


def test_somebody_elses_write_to_the_view_stops_the_next_refresh(keyed: TestLake) -> None:
    keyed.sql("DELETE FROM {j} WHERE id = 1")
    change(keyed)
    with pytest.raises(TargetError, match=r"written by someone else \(DELETE\).*lakejoin rebuild j"):
        keyed.refresh("j")
    keyed.open.rebuild("j")
    keyed.assert_exact("j")


def test_after_restore_a_used_number_is_not_used_again(keyed: TestLake) -> None:
    change(keyed)
    keyed.refresh("j")
    keyed.sql("RESTORE TABLE {j} TO VERSION AS OF 1")
    with pytest.raises(TargetError, match=r"someone else \(RESTORE\)"):
        keyed.refresh("j")
    keyed.open.rebuild("j")
    keyed.assert_exact("j")
    numbers = [s.number for s in stamps(keyed)]
    assert numbers == sorted(set(numbers))


def test_optimize_of_the_view_does_not_stop_it_nor_does_one_in_the_middle_of_a_publish(
    keyed: TestLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed.sql("INSERT INTO {b} VALUES (2, 's', 1)")
    keyed.refresh("j")
    keyed.sql("OPTIMIZE {j}")
    change(keyed)
    import lake.refresh.publish as publish

    original = publish._commit
    calls = []

    def optimize_first(*args: object) -> None:
        calls.append(args)
        if len(calls) == 1:
            keyed.sql("INSERT INTO {b} VALUES (2, 't', 1)")
            keyed.sql("OPTIMIZE {j} FULL")
        original(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(publish, "_commit", optimize_first)
    keyed.refresh("j")
    assert keyed.open.verify("j").exact
    keyed.refresh("j")
    keyed.assert_exact("j")


def test_description_owner_and_tags_follow_the_configuration(keyed: TestLake) -> None:
    keyed.views["j"] |= {"description": "it's \\ another", "owner": None, "tags": ["z"]}
    keyed._open = None
    change(keyed)
    keyed.refresh("j")
    found = keyed.spark.sql(f"DESCRIBE DETAIL {keyed.of_view('j')}").head()
    assert found is not None
    assert found["description"] == "it's \\ another"
    assert found["properties"]["lakejoin.tags"] == "z"
    assert "lakejoin.owner" not in found["properties"]
    keyed.sql("DELETE FROM {a} WHERE id = 2")
    keyed.refresh("j")
    keyed.assert_exact("j")


FAILS = {
    "a cast": ("UPDATE {b} SET w = 'x' WHERE w = '100'", {}, QueryError),
    "a key that the data breaks": ("INSERT INTO {b} VALUES (1, 'p', '5')", {}, KeyViolationError),
    "a cast, all columns written again": (
        "UPDATE {b} SET w = 'x' WHERE w = '100'",
        {"query": CAST + ", b.id + 1 AS more" + FROM},
        QueryError,
    ),
    "a check": ("UPDATE {b} SET w = '-1' WHERE w = '100'", {}, BlockedError),
}


@pytest.mark.parametrize("how", FAILS)
def test_a_refresh_that_fails_leaves_the_tables_properties_as_they_were(lake: TestLake, how: str) -> None:
    lake.table("a", A, key=["id"])
    lake.table(
        "b", "SELECT id, kind, string(w) AS w FROM (SELECT * FROM VALUES (1, 'p', 100), (1, 'q', 101), (2, 'p', 200) t(id, kind, w))"
    )
    lake.tables["b"]["primary_key"] = ["id", "kind"]
    options = {"on_definition_change": "rebuild"}
    lake.view("j", CAST + FROM, **options)
    lake.refresh("j")

    def gate(candidate: Candidate) -> None:
        if not candidate.changed.where("w < 0").isEmpty():
            raise BlockedError("negative", [])

    change, edited, error = FAILS[how]
    asked = [{"type": "expect_column_values_to_be_between", "kwargs": {"column": "w", "min_value": 0}, "on_failure": "block"}]
    checks = {"expectations": asked} if how == "a check" else {}
    lake.views["j"] |= {**edited, **checks, "description": "another", "owner": "somebody", "properties": {"note": "new"}}
    before = _commits(lake)
    lake.sql(change)
    lake._open = None
    opened = Lakehouse(lake.open.config, lake.spark, blocker=lambda *_: gate)
    with pytest.raises(error):
        opened.refresh("j")
    assert _commits(lake) == before
    lake.sql("DELETE FROM {b} WHERE id = 1")
    opened.refresh("j")
    assert opened.verify("j").exact
    found = lake.spark.sql(f"DESCRIBE DETAIL {lake.of_view('j')}").head()
    assert found is not None
    assert (found["description"], found["properties"]["note"], found["properties"]["lakejoin.owner"]) == ("another", "new", "somebody")


def _commits(lake: TestLake) -> int:
    return lake.spark.sql(f"DESCRIBE HISTORY {lake.of_view('j')}").count()


def test_properties_that_delta_keeps_otherwise_make_no_commits(lake: TestLake) -> None:
    lake.table("t", "SELECT * FROM VALUES (1, 'x') t(id, s)")
    lake.view("v", "SELECT id, s FROM t", properties={"delta.feature.checkConstraints": "supported", "delta.APPENDONLY": "false"})
    lake.refresh("v")
    lake.sql("INSERT INTO {t} VALUES (2, 'y')")
    lake.refresh("v")
    assert [publication.version for publication in lake.open.history("v")] == [1, 2]


def test_publishing_where_commits_can_be_lost_is_refused(lake: TestLake) -> None:
    lake.table("a", A)
    lake.view("j", "SELECT * FROM a")
    with pytest.raises(TargetError, match=r"Two writers at once could lose a commit.*spark.delta.logStore.s3a.impl.*single_writer: true"):
        open_lake({**lake.config, "target": "s3a://bucket/views"}, spark=lake.spark).refresh("j")


@pytest.mark.parametrize("key", [["id"], None], ids=["keyed", "multiset"])
def test_changes_too_many_for_the_driver(lake: TestLake, key: list[str] | None) -> None:
    lake.table("a", "SELECT id, id % 7 AS g, 'x' AS s FROM range(45000)", key=key)
    lake.view("j", "SELECT id, g, s FROM a" if key else "SELECT g, s FROM a", recompute_above=2)
    lake.refresh("j")
    lake.sql("UPDATE {a} SET s = 'y', g = g + 1 WHERE id % 50 > 0")
    lake.sql("DELETE FROM {a} WHERE id < 10")
    lake.sql("INSERT INTO {a} SELECT id, NULL, 'z' FROM range(50000, 50010)")
    result = lake.refresh("j")
    assert result.mode == "incremental"
    # 44,091 rows replaced, 9 changed and deleted, 1 deleted, 10 inserted; the multiset's are seven groups before, seven after, and NULL
    assert result.changes_read == (2 * 44_091 + 9 + 1 + 10 if key else 15)
    assert result.rows_inserted > 40_000
    lake.assert_exact("j")


def test_a_table_that_lakejoin_did_not_make_is_not_touched(lake: TestLake) -> None:
    lake.table("a", A)
    lake.spark.sql("SELECT 1 AS mine").write.format("delta").save(lake.path("views") + "/j")
    lake.view("j", "SELECT * FROM a")
    with pytest.raises(TargetError, match="did not make"):
        lake.refresh("j")
    assert multiset(lake.spark.read.format("delta").load(lake.path("views") + "/j")) == {(1,): 1}


def test_tables_deleted_while_the_process_runs_are_no_longer_there(lake: TestLake) -> None:
    lake.table("a", A)
    lake.view("j", "SELECT * FROM a")
    lake.refresh("j")
    shutil.rmtree(lake.path("views"))
    assert lake.refresh("j").mode == "build"
    lake.assert_exact("j")
    shutil.rmtree(lake.path("a"))
    with pytest.raises(SourceError, match=r"a .* is not a Delta table"):
        lake.refresh("j")


def test_two_threads_of_one_session_beside_a_users_own_writes(keyed: TestLake) -> None:
    change(keyed)
    errors: list[BaseException] = []

    def refresh() -> None:
        try:
            open_lake(keyed.config, spark=keyed.spark).refresh("j")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=refresh) for _ in range(2)]
    for thread in threads:
        thread.start()
    for n in range(5):
        keyed.spark.sql(f"SELECT {n} AS n").write.format("delta").mode("append").save(keyed.path("mine"))
    for thread in threads:
        thread.join()
    assert not errors
    keyed.assert_exact("j")
    assert multiset(keyed.spark.read.format("delta").load(keyed.path("mine"))) == {(n,): 1 for n in range(5)}
    history = keyed.spark.sql(f"DESCRIBE HISTORY delta.`{keyed.path('mine')}`").select("userMetadata").collect()
    assert [row[0] for row in history] == [None] * 5
    assert [s.number for s in stamps(keyed)] == [1, 2]
    assert keyed.spark.conf.get("spark.databricks.delta.write.txnAppId", None) is None


@pytest.mark.slow
@pytest.mark.parametrize("step", ["before the commit", "between computing and committing", "after the commit"])
def test_killed_at_any_step_the_next_refresh_is_exact_once(keyed: TestLake, step: str) -> None:
    change(keyed)
    killed = child(keyed, step)
    assert killed.wait(timeout=300) == -signal.SIGKILL
    published = len(stamps(keyed))
    assert published == (2 if step == "after the commit" else 1)
    result = open_lake(keyed.config, spark=keyed.spark).refresh("j")
    assert result.mode == ("none" if step == "after the commit" else "incremental")
    keyed.assert_exact("j")
    assert len(stamps(keyed)) == 2


@pytest.mark.slow
def test_two_processes_at_once_publish_once(keyed: TestLake) -> None:
    change(keyed)
    both = [child(keyed, "never"), child(keyed, "never")]
    answers = [process.communicate(timeout=300)[0].split() for process in both]
    assert all(process.returncode == 0 for process in both)
    assert "incremental" in {answer[-1] for answer in answers}
    keyed.assert_exact("j")
    assert len(stamps(keyed)) == 2


@pytest.mark.slow
def test_a_multiset_of_every_type_bit_by_bit(lake: TestLake) -> None:
    """Updates that GROUP BY or EXCEPT ALL would not see: -0.0 to 0.0, map entries in another order."""
    rows = """SELECT * FROM VALUES
        (1, double('-0.0'), 'a', map('x', 1, 'y', 2), array(NULL, 1), named_struct('f', CAST(NULL AS int)), X'00'),
        (2, double('NaN'), 'B', NULL, array(1, NULL), named_struct('f', 1), NULL),
        (2, double('NaN'), 'B', NULL, array(1, NULL), named_struct('f', 1), NULL),
        (3, CAST(NULL AS double), NULL, map('x', 1), NULL, NULL, X'FF') t(id, d, c, m, l, st, bin)"""
    lake.table("t", rows)
    lake.view("j", "SELECT id, d, c, m, l, st, bin FROM t WHERE id > 0")
    lake.refresh("j")
    lake.sql("UPDATE {t} SET d = double('0.0'), c = 'A', m = map('y', 2, 'x', 1) WHERE id = 1")
    lake.sql("UPDATE {t} SET l = array(NULL, 1) WHERE id = 2")
    assert lake.refresh("j").mode == "incremental"
    lake.assert_exact("j")
    lake.sql("DELETE FROM {t} WHERE id = 2")
    lake.sql("INSERT INTO {t} SELECT * FROM {t} WHERE id = 1")
    lake.refresh("j")
    lake.assert_exact("j")


def test_columns_may_have_any_name(lake: TestLake) -> None:
    """Names that the library uses itself for a moment, and names that only column mapping can hold."""
    lake.table("a", "SELECT 1 AS h, 2 AS n, 3 AS d0, 4 AS w, 5 AS c0, 6 AS k0, 7 AS count, 8 AS `copy`", key=["count"])
    lake.view("m", "SELECT h, n, d0, w, c0, k0 FROM a UNION ALL SELECT h, n, d0, w, c0, k0 FROM a")
    lake.view("k", "SELECT h AS new, n AS old, w AS added, d0 AS removed, count, `copy` AS `a b,;{}()=.` FROM a")
    for view in ("m", "k"):
        lake.refresh(view)
    lake.sql("UPDATE {a} SET h = 9, n = 0")
    for view in ("m", "k"):
        assert lake.refresh(view).mode == "incremental"
        lake.assert_exact(view)


@pytest.mark.parametrize("key", [["id"], None], ids=["keyed", "multiset"])
def test_two_first_builds_at_once_publish_once(lake: TestLake, monkeypatch: pytest.MonkeyPatch, key: list[str] | None) -> None:
    import lake.refresh.decide as refreshing

    lake.table("a", A, key=key)
    lake.view("v", "SELECT id, s FROM a")
    original = refreshing.create

    def late(*arguments: object) -> None:
        monkeypatch.setattr(refreshing, "create", original)
        open_lake(lake.config, spark=lake.spark).refresh("v")
        original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(refreshing, "create", late)
    assert lake.refresh("v").mode == "none"
    lake.assert_exact("v")


@pytest.mark.parametrize("then", ["SELECT id FROM a", "SELECT id, s, v FROM a", "SELECT id, s AS n FROM a"])
def test_a_build_after_one_that_failed_has_the_columns_of_its_own_query(lake: TestLake, then: str) -> None:
    lake.table("a", A)
    lake.view("v", "SELECT id, CAST(s AS INT) AS n FROM a", description="rows")
    with pytest.raises(QueryError):
        lake.refresh("v")
    lake.view("v", then, description="rows")
    result = lake.refresh("v")
    assert (result.mode, result.rows_inserted, result.rows_deleted) == ("build", 3, 0)
    lake.assert_exact("v")
    lake.sql("DELETE FROM {a} WHERE id = 2")
    assert lake.refresh("v").mode == "incremental"
    lake.assert_exact("v")


@pytest.mark.parametrize(
    "changes",
    [
        ["RENAME COLUMN s TO other"],
        ["RENAME COLUMN s TO other", "RENAME COLUMN kind TO s", "RENAME COLUMN other TO kind"],
        ["ADD COLUMN mine INT"],
        ["DROP COLUMN s"],
    ],
    ids=["renamed", "exchanged", "added", "dropped"],
)
def test_columns_that_somebody_else_altered(keyed: TestLake, changes: list[str]) -> None:
    for text in changes:
        keyed.sql(f"ALTER TABLE {{j}} {text}")
    change(keyed)
    for verb in (keyed.open.refresh, keyed.open.verify):
        with pytest.raises(TargetError, match=r"written by someone else \((ADD|DROP|RENAME) COLUMN.*lakejoin rebuild j"):
            verb("j")
    keyed.open.rebuild("j")
    assert keyed.open.read("j").columns == ["id", "kind", "w", "s"]
    keyed.assert_exact("j")


def test_a_type_that_somebody_else_altered(keyed: TestLake) -> None:
    keyed.sql("ALTER TABLE {j} SET TBLPROPERTIES (delta.enableTypeWidening = true)", "ALTER TABLE {j} ALTER COLUMN w TYPE BIGINT")
    change(keyed)
    with pytest.raises(TargetError, match=r"The columns of the table of view j .* are not those of the view.*lakejoin rebuild j"):
        keyed.refresh("j")
    assert keyed.open.rebuild("j").rows_deleted == 3
    assert keyed.open.read("j").schema["w"].dataType.simpleString() == "int"
    keyed.assert_exact("j")


def test_deletion_vectors_that_somebody_switched_off_are_on_again(keyed: TestLake) -> None:
    keyed.sql("ALTER TABLE {j} SET TBLPROPERTIES (delta.enableDeletionVectors = false)")
    change(keyed)
    keyed.refresh("j")
    keyed.assert_exact("j")


def test_a_property_that_is_set_while_a_refresh_publishes(keyed: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    import lake.refresh.publish as publish

    change(keyed)
    original = publish._commit

    def after_alter(*arguments: object) -> None:
        monkeypatch.setattr(publish, "_commit", original)
        keyed.sql("ALTER TABLE {j} SET TBLPROPERTIES (note = 'of somebody')")
        original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(publish, "_commit", after_alter)
    assert keyed.refresh("j").mode == "incremental"
    keyed.assert_exact("j")


def test_lengths_of_a_sources_columns_are_not_the_views(lake: TestLake) -> None:
    lake.spark.sql(f"CREATE TABLE delta.`{lake.path('a')}` (id INT, c VARCHAR(3)) USING delta")
    lake.tables["a"] = {"path": "a"}
    lake.sql("INSERT INTO {a} VALUES (1, 'abc')")
    lake.view("v", "SELECT id FROM a")
    lake.refresh("v")
    lake.view("v", "SELECT id, c FROM a", on_definition_change="rebuild")
    result = lake.refresh("v")
    assert (result.rows_inserted, result.rows_deleted) == (1, 1)
    lake.sql("ALTER TABLE {a} ALTER COLUMN c TYPE STRING", "INSERT INTO {a} VALUES (2, 'longer')")
    lake.refresh("v")
    lake.assert_exact("v")


def test_a_file_of_the_views_own_table_that_is_gone_is_named_with_what_to_run(lake: TestLake) -> None:
    lake.table("a", "SELECT id, id % 3 AS g FROM range(9)", key=["id"])
    lake.view("v", "SELECT id, g + 1 AS h FROM a")
    lake.refresh("v")
    for file in Path(lake.path("views/v")).rglob("part-*.parquet"):
        file.unlink()
    plans = jvm_of(lake.spark).own_plans
    plans.holdAtMost(plans.holdAtMost(0))  # this process has held their rows
    lake.sql("UPDATE {a} SET g = 7 WHERE id = 3")
    with pytest.raises(ExpiredError, match=r"View 'v' has to read a file that no longer exists: one of v \(.*/v\).*lakejoin rebuild v"):
        lake.refresh("v")
    assert lake.open.rebuild("v").view == "v"
    lake.assert_exact("v")
