"""Tables of other jobs that views adopt: proven bit by bit, repaired, found by their snapshot, moved, killed at each step, refused; then
three refreshes, each compared with the query run from scratch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lake.core.adoption import Adoption
from lake.errors import ConcurrencyError, ConfigError, ExpiredError, KeyViolationError, LakeError, RowsDifferError, TargetError
from lake.operations import adopted_table
from lake.refresh import adopted
from tests.lakes import TestLake, multiset

JOIN = "SELECT t.id, t.k, t.v, u.w FROM t LEFT JOIN u ON t.k = u.id"
BAG = "SELECT k, n, x FROM t UNION ALL SELECT k, n, x FROM t WHERE k > 1"
GROUPS = "SELECT k, sum(n) AS s, count(*) AS c, max(v) AS m FROM t GROUP BY k"


@pytest.fixture
def tables(lake: TestLake) -> TestLake:
    """Two tables with duplicates and NULLs (also of what is joined and grouped by), of which the first has moved on since it was made."""
    values = "CAST(nullif(id % 4, 3) AS INT) AS k, id * 1.5D AS v, concat('x', id % 3) AS x, nullif(id % 5, 3) AS n"
    lake.table("t", f"SELECT id, {values} FROM range(16)", ["id"])
    lake.table("u", "SELECT id, CAST(id AS INT) AS w FROM range(3)", ["id"])
    return lake


def moved(lake: TestLake) -> None:
    """Rows move to other keys, and go."""
    lake.sql("UPDATE {t} SET k = 2, v = -v WHERE id IN (2, 7)", "DELETE FROM {t} WHERE id IN (4, 5)")


MORE = (
    "INSERT INTO {t} VALUES (4, 1, 9.0, 'x1', NULL), (5, NULL, -0.0, NULL, 2), (100, NULL, 0.0, 'x1', 2), (101, 1, 9.0, 'x1', NULL)",
    "DELETE FROM {t} WHERE k = 1 OR id IN (5, 8)",
    "UPDATE {u} SET w = w + 1, id = 3 - id WHERE id > 0",
)
"""Rows come back, and come with NULLs and as duplicates; go again; are joined to others."""


def nightly(lake: TestLake, name: str, query: str, into: str = "", how: str = "", at: Mapping[str, int] | None = None) -> str:
    """A table as a job makes it (from versions of its sources), in a folder of jobs or at a view's place; returns its path."""
    place = into or lake.path(f"nightly/{name}")
    for table in lake.tables:
        options = {"versionAsOf": at[table]} if at and table in at else {}
        lake.spark.read.format("delta").options(**options).load(lake.path(table)).createOrReplaceTempView(table)
    lake.spark.sql(f"CREATE OR REPLACE TABLE delta.`{place}` USING delta {how} AS {query}")
    for table in lake.tables:
        lake.spark.catalog.dropTempView(table)
    return place


def heads(lake: TestLake) -> dict[str, int]:
    return {name: lake.open.source_head(name).version.number for name in lake.tables}


class KilledError(BaseException):
    pass


def unasked(_: Adoption) -> bool:
    raise AssertionError("it is refused before it is asked for")


def die(*_: object, **__: object) -> None:
    raise KilledError


def test_tables_of_a_job_are_adopted_and_refreshed(tables: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keyed: elsewhere, partitioned, with columns in another order. Grouped: NOT NULL. A multiset: with rows too many (also twice) and
    lacking, of NULL and other keys, repaired; killed after the move, and at the commit."""
    tables.view("joined", JOIN)
    tables.view("bag", BAG)
    tables.view("grouped", GROUPS)
    place = nightly(tables, "joined", "SELECT t.v, u.w, t.k, t.id FROM t LEFT JOIN u ON t.k = u.id", how="PARTITIONED BY (k)")
    bag = nightly(tables, "bag", BAG, how="TBLPROPERTIES (delta.enableRowTracking = true, mine = 'yes')")
    tables.spark.sql(f"DELETE FROM delta.`{bag}` WHERE k IS NULL AND n = 2")
    tables.spark.sql(f"INSERT INTO delta.`{bag}` VALUES (NULL, NULL, NULL), (NULL, NULL, NULL), (2, 0, 'x1'), (2, 0, 'x1')")
    strict = tables.path("nightly/grouped")
    tables.spark.sql(f"CREATE TABLE delta.`{strict}` (k INT, s BIGINT, c BIGINT NOT NULL, m DOUBLE) USING delta")
    tables.spark.read.format("delta").load(nightly(tables, "groups", GROUPS)).write.format("delta").mode("append").save(strict)
    at = heads(tables)
    moved(tables)
    said: list[str] = []
    found = tables.open.adopt("joined", place, at, on_progress=said.append)
    assert (found.state, found.moves, found.apart.equal, found.rows_inserted) == ("adopted", True, True, 0)
    assert dict(found.snapshot) == at
    assert not Path(place).exists()
    assert said[0] == f"comparing {place} with the query at t@{at['t']}, u@{at['u']}"
    assert "its columns are put in the order of the query: id, k, v, w" in found.changes
    assert "NOT NULL is dropped from c" in tables.open.adopt("grouped", "nightly/grouped", {"t": at["t"]}).changes
    repaired(tables, monkeypatch, bag, {"t": at["t"]})
    assert tables.open.read("joined").columns == ["id", "k", "v", "w"]
    assert [(p.stamp.mode, dict(p.stamp.snapshot)) for p in tables.open.history("joined")] == [("adopt", at)]
    for change in MORE:
        tables.sql(change)
        for view in tables.views:
            assert tables.refresh(view).mode in ("incremental", "none"), (view, change)
            assert multiset(tables.open.read(view)) == tables.truth(view), (view, change)
    tables.view("joined", "SELECT t.id, t.k AS key, t.v, u.w FROM t LEFT JOIN u ON t.k = u.id")
    (renamed,) = tables.open.apply(["joined"])  # a column by which the table is partitioned
    assert renamed.mode == "edit"
    assert multiset(tables.open.read("joined")) == tables.truth("joined")


def repaired(tables: TestLake, monkeypatch: pytest.MonkeyPatch, bag: str, at: dict[str, int]) -> None:
    """The adoption of a table that differs, killed at each step."""
    with pytest.raises(RowsDifferError, match="it lacks 1 rows of the query, and 4 of its 23 rows are not among the query's") as differs:
        tables.open.adopt("bag", bag, at)
    assert (differs.value.found.state, differs.value.found.apart.by_key) == ("differs", None)
    assert Path(bag).exists()
    with monkeypatch.context() as patch:
        patch.setattr(adopted.AdoptRun, "run", die)
        with pytest.raises(KilledError):
            tables.open.adopt("bag", bag, at, repair=True)
    assert not Path(bag).exists()
    with pytest.raises(TargetError, match=r"Lakejoin did not make for view 'bag'.*lakejoin adopt bag"):
        tables.refresh("bag")
    with monkeypatch.context() as patch:
        patch.setattr(adopted.Transaction, "commit", die)
        with pytest.raises(KilledError):
            tables.open.adopt("bag", bag, at, repair=True)
    again = tables.open.adopt("bag", bag, at, repair=True)  # it is found at the view's place
    assert (again.state, again.moves, again.rows_deleted, again.rows_inserted) == ("adopted", False, 4, 1)
    properties = {row[0]: row[1] for row in tables.spark.sql(f"SHOW TBLPROPERTIES {tables.of_view('bag')}").collect()}
    assert {"mine": "yes", "delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"}.items() <= properties.items()


def test_rows_are_written_again_for_hidden_columns_and_shown_by_key(tables: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is not among the columns; a CHAR; and a table at the view's place with rows of one key, killed after its commit."""
    tables.view("hidden", "SELECT k, x FROM t WHERE v > 1")
    tables.view("padded", "SELECT id, x FROM t")
    tables.view("keyed", "SELECT id, k, n FROM t")
    place = nightly(tables, "hidden", "SELECT k, x FROM t WHERE v > 1", how="TBLPROPERTIES (delta.columnMapping.mode = 'name')")
    padded = tables.path("nightly/padded")
    tables.spark.sql(f"CREATE TABLE delta.`{padded}` (id BIGINT, x CHAR(5)) USING delta")
    tables.sql(f"INSERT INTO delta.`{padded}` SELECT id, x FROM {{t}}")
    keyed = nightly(tables, "keyed", "SELECT id, k, n FROM t", into=tables.path("views/keyed"))
    tables.spark.sql(f"UPDATE delta.`{keyed}` SET k = 7 WHERE id IN (3, 9)")
    tables.spark.sql(f"INSERT INTO delta.`{keyed}` VALUES (1, 1, 1), (1, 1, 1), (99, NULL, NULL)")
    at = {"t": 0}
    moved(tables)
    with pytest.raises(RowsDifferError) as differs:
        tables.open.adopt("keyed", at=at)
    apart = differs.value.found.apart
    assert (apart.missing, apart.surplus) == (2, 5)
    assert "3 removed, 2 changed; changed in k 2; such as id=" in str(differs.value)
    with monkeypatch.context() as patch:
        patch.setattr(adopted.Target, "describe", die)
        with pytest.raises(KilledError):
            tables.open.adopt("keyed", at=at, repair=True)
    with pytest.raises(TargetError, match="View 'keyed' is built already, at t@0: there is nothing to adopt"):
        tables.open.adopt("keyed", at=at)
    (published,) = tables.open.history("keyed")
    assert (published.rows_inserted, published.rows_deleted, published.stamp.mode) == (2, 5, "adopt")
    with pytest.raises(TargetError, match=r"x is a CHAR, which Spark pads.*let all its rows be written again with --repair"):
        tables.open.adopt("padded", padded, at)
    found = tables.open.adopt("padded", padded, at, repair=True)
    assert (found.state, found.rows_inserted, found.rows_deleted, found.rows_rewritten) == ("adopted", 16, 16, 0)
    assert "all its rows are written again, as the query gives them, in new files: x is a CHAR" in found.changes[-1]
    found = tables.open.adopt("hidden", place, at)
    assert (found.state, found.rows_inserted, found.rows_deleted, found.rows_rewritten) == ("adopted", 0, 0, 15)
    assert (
        "as they are, in new files: refreshes need hidden columns, which the table lacks: __lakejoin_key_0 (of the key" in found.changes[-1]
    )
    for view in tables.views:
        assert tables.refresh(view).mode == "incremental"
        assert multiset(tables.open.read(view)) == tables.truth(view), view
        properties = {row[0]: row[1] for row in tables.spark.sql(f"SHOW TBLPROPERTIES {tables.of_view(view)}").collect()}
        wanted = {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"}  # which those commits could not turn on
        assert wanted.items() <= properties.items(), view


def test_an_aggregate_is_found_equal_and_written_once_with_its_counts(tables: TestLake) -> None:
    """Of groups with duplicates and NULLs, also the NULL group and one of NULLs alone; no reader sees it, and the next refresh adds."""
    sums, view = "SELECT k, sum(n) AS s FROM t GROUP BY k", "grouped"
    tables.sql("INSERT INTO {t} VALUES (50, 50, 1.0, 'x', NULL), (51, 50, 1.0, 'x', NULL), (52, 51, 1.0, 'x', 1)")
    tables.view(view, sums)
    place, at = nightly(tables, view, sums), heads(tables)
    tables.sql("INSERT INTO {t} VALUES (53, 52, 0.0, 'x', 1)")
    dry = tables.open.adopt(view, place, verify_first=True, dry_run=True)
    assert (dry.state, dict(dry.snapshot), dry.apart.rows) == ("equal", {"t": at["t"]}, 6)
    hidden = "__lakejoin_key_0, __lakejoin_key_1 (the counts and sums of each group, to which a refresh adds the changes)"
    said = f"all its rows are written once more, as they are, in new files: refreshes need hidden columns, which the table lacks: {hidden}"
    assert dry.changes[-1] == said
    assert tables.open.adopt(view, place, verify_first=True, may=lambda found: said not in found.changes).state == "declined"
    assert multiset(tables.spark.read.format("delta").load(place))[(None, 3)] == 1
    with pytest.raises(RowsDifferError, match=r"it lacks 1 rows .*let the difference be published with --repair \(`repair=True`\)"):
        tables.open.adopt(view, place, {"t": at["t"] + 1})
    before = multiset(tables.spark.read.format("delta").load(place))
    found = tables.open.adopt(view, place, verify_first=True)
    assert (found.state, found.rows_rewritten, found.rows_inserted, found.rows_deleted) == ("adopted", 6, 0, 0)
    assert multiset(tables.open.read(view)) == before
    (published,) = tables.open.history(view)
    assert (published.rows_inserted, published.rows_deleted) == (0, 0)
    for change in ("DELETE FROM {t} WHERE id IN (50, 52)", *MORE):
        tables.sql(change)
        assert tables.refresh(view).mode in ("incremental", "none"), change
        assert multiset(tables.open.read(view)) == tables.truth(view), change


def test_the_snapshot_is_found_by_the_times_of_commits(tables: TestLake) -> None:
    """A job that read t@1 commits after t@2; then come t@3 and u@1."""
    tables.view("joined", JOIN)
    tables.view("rows", "SELECT count(*) AS c FROM t")
    row = "INSERT INTO {{t}} VALUES ({}, 1, 1.0, 'x1', NULL)"
    tables.sql(row.format(201), row.format(202))
    place = nightly(tables, "joined", JOIN, at={"t": 1})
    tables.sql(row.format(203), "UPDATE {u} SET w = w + 1 WHERE id = 1")
    said: list[str] = []
    found = tables.open.adopt("joined", place, verify_first=True, dry_run=True, on_progress=said.append)
    assert (found.state, dict(found.snapshot)) == ("equal", {"t": 1, "u": 0})
    assert [tuple(tried.snapshot.values()) for tried in found.tried] == [(3, 1), (2, 0), (1, 0)]
    assert found.tried[0].found == "the query gives 19 rows, the table has 17"
    assert said[0] == "trying snapshot 1 of at most 20: t@3, u@1"
    with pytest.raises(RowsDifferError, match="at any of the 4 snapshots that were tried") as none:
        tables.open.adopt("rows", nightly(tables, "rows", "SELECT CAST(999 AS BIGINT) AS c"), verify_first=True)
    assert [dict(tried.snapshot) for tried in none.value.found] == [{"t": n} for n in (3, 2, 1, 0)]
    fixed = tables.open.adopt("joined", place, {"u": 0, "t": 1}, verify_first=True, dry_run=True)
    assert (fixed.state, len(fixed.tried)) == ("equal", 1)


def test_another_writer_is_a_conflict_and_the_table_stays_where_it_was(tables: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.view("keyed", "SELECT id, k FROM t")
    place = nightly(tables, "keyed", "SELECT id, k FROM t")
    at = {"t": 0}
    add = "INSERT INTO delta.`{}` VALUES (77, 7)"

    def asked(_: Adoption) -> bool:
        tables.spark.sql(add.format(place))
        return True

    with pytest.raises(ConcurrencyError, match="while it was compared with the query of view 'keyed': it was at version 0, and is at 1"):
        tables.open.adopt("keyed", place, at, may=asked)
    take = adopted.Transaction.take

    def late(self: Any, *arguments: Any) -> None:
        tables.spark.sql(add.format(tables.path("views/keyed")))
        take(self, *arguments)

    monkeypatch.setattr(adopted.Transaction, "take", late)
    with pytest.raises(ConcurrencyError, match=r"Another process wrote into .*views/keyed after its rows were compared"):
        tables.open.adopt("keyed", place, at, repair=True)
    monkeypatch.undo()
    assert not Path(tables.path("views/keyed")).exists()
    assert tables.spark.read.format("delta").load(place).count() == 18
    tables.view("keyed", "SELECT id, k FROM t", key=["k"])
    for options in ({"dry_run": True}, {"dry_run": True, "repair": True}, {"repair": True, "may": unasked}):
        with pytest.raises(KeyViolationError, match=r"The key \(k\) of view 'keyed', declared by .* has more than one row for"):
            tables.open.adopt("keyed", place, at, **options)
    assert tables.spark.read.format("delta").load(place).count() == 18


def test_what_can_not_be_adopted_is_refused_before_anything_is_written(tables: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.view("v", "SELECT id, k FROM t")
    tables.view("built", "SELECT id FROM t")
    tables.refresh("built")
    tables.view("w", "SELECT id, CAST(k AS BIGINT) AS k, 1 AS more FROM t")
    good, clone, made = nightly(tables, "v", "SELECT id, k FROM t"), tables.path("nightly/clone"), tables.path("nightly/made")
    tables.spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{good}`")
    tables.spark.sql(f"CREATE TABLE delta.`{made}` (id BIGINT, k INT GENERATED ALWAYS AS (CAST(id AS INT))) USING delta")
    at: Any = {"t": 0}
    lake = tables.open
    refusals: list[tuple[Callable[[], object], type[LakeError], str]] = [
        (lambda: lake.adopt("nothing", good, at), ConfigError, "'nothing'"),
        (lambda: lake.adopt("v", good), ConfigError, "At which versions of its sources"),
        (lambda: lake.adopt("v", good, "2026-01-01", verify_first=True), ConfigError, "not both"),
        (lambda: lake.adopt("v", good, "yesterday"), ConfigError, "`at` must be versions"),
        (lambda: lake.adopt("v", good, {"u": 0}), ConfigError, "`at` names 'u', which the view does not read. It reads: t"),
        (lambda: lake.adopt("v", good, {}), ConfigError, "`at` does not name t, which view 'v' reads as well"),
        (lambda: lake.adopt("v", good, {"t": 7}), LakeError, "t has no version 7: its newest is 0"),
        (lambda: lake.adopt("v", None, at), TargetError, "There is no Delta table at .*views/v.*lakejoin adopt v --table PATH"),
        (lambda: lake.adopt("v", "nightly/none", at), TargetError, "There is no Delta table at .*nightly/none"),
        (lambda: lake.adopt("w", good, at), TargetError, "It lacks: more int.*of another type: k .int, the query gives bigint"),
        (lambda: lake.adopt("v", clone, at), TargetError, "shallow clone"),
        (lambda: lake.adopt("v", made, at), TargetError, "k is a generated column"),
        (lambda: lake.adopt("v", "t", at), TargetError, "is t, a table that view 'v' reads"),
        (lambda: lake.adopt("v", "u", at), TargetError, "`tables.u` of the configuration"),
        (lambda: lake.adopt("v", "views/built", at), TargetError, "is the table of view 'built' already"),
        (lambda: lake.adopt("built", good, at), TargetError, "View 'built' is built already"),
        (lambda: lake.on("eventual").adopt("v", good, at), ConfigError, "`adopt` works on the strong path"),
    ]
    for call, kind, message in refusals:
        with pytest.raises(kind, match=re.compile(message, re.DOTALL)):
            call()
    monkeypatch.setattr(adopted_table.OwnFolder, "move", lambda *_: (_ for _ in ()).throw(ValueError("storage of s3a:// has no folders")))
    with pytest.raises(TargetError, match=r"can't be moved to .*storage of s3a.*It is as it was. Either set `target: .path: .*nightly"):
        lake.adopt("v", good, at)
    monkeypatch.undo()
    files = Path(tables.path("t")).glob("*.parquet")
    tables.sql("UPDATE {t} SET k = 3 WHERE id >= 0")
    for file in files:
        file.unlink()
    with pytest.raises(ExpiredError, match=r"The sources of view 'v' can no longer be read at t@0 .*Give newer versions"):
        lake.adopt("v", good, at)
    assert not Path(tables.path("views/v")).exists()
    assert tables.spark.read.format("delta").load(good).count() == 16
