"""Development environments: their views against the queries from scratch, beside a production that nothing in them writes to; promoted and
dropped, killed and refused."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lake import Lakehouse, open_lake
from lake.core.results import RefreshResult
from lake.delta.transaction import Transaction
from lake.errors import ConfigError, DefinitionError, ExpiredError, TargetError
from lake.operations.refreshing import Request, refreshed
from lake.refresh.query_edit import EditRun
from lake.spark.jvm.gateway import jvm_of
from lake.views.table import set_properties
from tests.lakes import TestLake, multiset, table_of

JOINED = "SELECT t.id, t.k, t.v, u.w FROM t LEFT JOIN u ON t.k = u.k"
VIEWS = {
    "plain": "SELECT k, w FROM u",
    "joined": JOINED,
    "counts": "SELECT k, count(*) AS n, sum(w) AS s FROM joined GROUP BY k",
    "both": "SELECT c.k, c.n, p.w FROM counts c JOIN plain p ON c.k <=> p.k",
}
ABOVE = "SELECT w, count(*) AS n FROM plain GROUP BY w"
CHANGES = (
    ("UPDATE {t} SET k = NULL, v = -v WHERE id IN (2, 7)", "DELETE FROM {u} WHERE k = 1"),
    ("DELETE FROM {t} WHERE id < 3", "INSERT INTO {u} VALUES (1, 7), (1, 7), (NULL, 7)"),
    ("INSERT INTO {t} VALUES (1, 1, 50), (2, NULL, 60)", "UPDATE {u} SET w = NULL WHERE k = 2"),
    ("UPDATE {t} SET k = 3 WHERE k IS NULL", "DELETE FROM {u} WHERE k IS NULL"),
)
"""Rows move to other keys, among them NULL; they are deleted, and inserted again."""


def digests(folder: Path) -> dict[str, tuple[int, str]]:
    """When each file below a folder was written, and a digest of it."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return {str(f.relative_to(folder)): (f.stat().st_mtime_ns, hashlib.sha256(f.read_bytes()).hexdigest()) for f in files}


class Deployments:
    """Production in one folder, and the tables of a development environment in another one."""

    def __init__(self, lake: TestLake, folder: Path) -> None:
        self.lake, self.folder = lake, folder

    def built(self, *views: str) -> TestLake:
        """Production with some of the views, which it has built."""
        for name in views:
            self.lake.view(name, VIEWS.get(name, ABOVE))
        self.lake.open.refresh_all()
        return self.lake

    def dev(self, views: Mapping[str, str] | None = None, **settings: Any) -> Lakehouse:
        """The environment. `views`: queries that it has instead of production's, or besides."""
        own = {"development_of": "default", "target": {"path": str(self.folder)}, **settings}
        overlay = own | ({"views": {name: {"query": query} for name, query in views.items()}} if views else {})
        return open_lake({**self.lake.config, "environments": {"dev": overlay}}, spark=self.lake.spark, env="dev")

    def truth(self, views: Mapping[str, str] | None = None) -> dict[str, Counter[Any]]:
        """The rows of each view by plain Spark over the newest tables."""
        session = self.lake.spark.newSession()
        session.conf.set("spark.sql.session.timeZone", self.lake.spark.conf.get("spark.sql.session.timeZone"))
        for table in self.lake.tables:
            table_of(session, self.lake.path(table)).createOrReplaceTempView(table)
        queries = {name: view["query"] for name, view in self.lake.views.items()} | dict(views or {})
        for name, query in queries.items():
            session.sql(query).createOrReplaceTempView(name)
        return counted({name: session.table(name) for name in queries})


def rows(lake: Lakehouse) -> dict[str, Counter[Any]]:
    """The rows of each view."""
    return counted({view: lake.read(view) for view in lake.config.views})


def counted(frames: Mapping[str, DataFrame]) -> dict[str, Counter[Any]]:
    """The rows of several frames, by one Spark job: one for each costs more than a refresh."""
    texts = [f.select(F.lit(name), F.to_json(F.struct("*"), {"ignoreNullFields": "false"})) for name, f in frames.items()]
    found: dict[str, Counter[Any]] = {name: Counter() for name in frames}
    for name, text in reduce(DataFrame.union, texts).collect():
        found[name][text] += 1
    return found


@pytest.fixture
def deployments(lake: TestLake, tmp_path_factory: pytest.TempPathFactory) -> Deployments:
    """Two tables with duplicates and NULL keys."""
    lake.table("t", "SELECT id, CAST(nullif(id % 4, 0) AS INT) AS k, id * 2 AS v FROM range(12)", ["id"])
    lake.table("u", "SELECT CAST(nullif(id % 5, 4) AS INT) AS k, CAST(id % 2 AS INT) AS w FROM range(10)")
    return Deployments(lake, tmp_path_factory.mktemp("dev") / "views")


def test_an_edit_is_built_beside_production_and_taken_over_by_it(deployments: Deployments) -> None:
    lake, edited = deployments.built(*VIEWS), {"joined": f"{JOINED} WHERE t.v <> 4"}
    before, dev = digests(lake.folder), deployments.dev(edited)
    plan = {v.view: (v.action, v.from_production) for v in dev.plan().views}
    own = dict.fromkeys(("joined", "counts", "both"), ("build", False))
    assert plan == {"plain": ("none", True), **own, "joined": ("edit", False)}
    assert [r.view for r in dev.apply()] == ["joined", "counts", "both"]
    assert dev.plan().changes == ()
    assert rows(dev) == deployments.truth(edited)
    assert digests(lake.folder) == before

    lake.sql(*CHANGES[0])
    dev.refresh_all()  # `both` reads plain as well, which only production refreshes, and which reads u
    stamp = dev.stamp("both")
    assert stamp is not None
    assert dict(stamp.answers_for) == {"t": 1, "u": 0}
    lake.open.refresh_all()
    before = digests(lake.folder)
    assert {r.view: r.mode for r in dev.refresh_all()} == {"plain": "none", **dict.fromkeys(own, "incremental")}
    assert (rows(dev), rows(lake.open)) == (deployments.truth(edited), deployments.truth())
    assert digests(lake.folder) == before

    before_promotion = multiset(lake.open.read("counts"))
    for name, query in edited.items():
        lake.view(name, query)
    dev = deployments.dev()
    done: list[RefreshResult] = []

    def killed(result: RefreshResult) -> None:
        done.append(result)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dev.promote(on_end=killed)
    assert multiset(lake.open.read("counts")) == before_promotion
    dev.promote(on_end=done.append)
    assert [r.view for r in done] == list(own)  # each once
    assert rows(lake.open) == deployments.truth()
    assert lake.open.plan().changes == ()
    assert all(lake.open.stamp(view).answers_for == dev.stamp(view).answers_for for view in own)
    assert {p.view: p.action for p in dev.promote()} == dict.fromkeys(own, "none")
    for change in CHANGES[1:]:
        lake.sql(*change)
        modes = {r.view: r.mode for r in lake.open.refresh_all()}
        assert set(modes.values()) == {"incremental"}
        dev.refresh_all()
    assert rows(lake.open) == rows(dev) == deployments.truth()
    before = digests(lake.folder)
    assert {view.view for view in dev.drop_environment().views} == set(own)
    assert not any(deployments.folder.iterdir())
    assert digests(lake.folder) == before
    assert multiset(dev.read("both")) == multiset(lake.open.read("both"))


def test_what_production_can_not_take_over_is_refused_before_anything_is_written(deployments: Deployments) -> None:
    lake, edited = deployments.built("joined", "counts"), {"joined": f"{JOINED} WHERE t.v > 4"}
    dev = deployments.dev(edited)
    dev.apply()
    before = digests(lake.folder)
    with pytest.raises(
        DefinitionError, match=r"2 views .*can't be promoted. Nothing was written.\n- joined: production's lakejoin.yml defines"
    ):
        dev.promote()  # the edit is the environment's alone
    lake.view("joined", edited["joined"])
    dev = deployments.dev()
    with pytest.raises(DefinitionError, match=r"counts: production does not have the rows of joined .*promote joined as well"):
        dev.promote(["counts"])
    assert digests(lake.folder) == before

    lake.sql(*CHANGES[0])
    dev.refresh("joined")
    with pytest.raises(
        DefinitionError, match=r'counts: it has not read the newest rows of joined. Run "lakejoin --env dev refresh counts"'
    ):
        dev.promote(["joined", "counts"])
    dev.refresh_all()
    lake.sql(*CHANGES[1])
    lake.view("joined", JOINED)
    lake.open.refresh_all()  # beyond the environment, by the earlier definition
    lake.view("joined", edited["joined"])
    dev = deployments.dev()
    before = digests(lake.folder)
    with pytest.raises(DefinitionError, match=r"joined: its rows are made of [tu]@1, and production's of [tu]@2. .*refresh joined"):
        dev.promote()
    assert digests(lake.folder) == before
    dev.refresh_all()
    dev.promote()
    assert rows(lake.open) == rows(dev) == deployments.truth()
    lake.sql(*CHANGES[2])
    lake.open.refresh_all()
    assert {p.reason for p in dev.promote()} == {"production is at newer rows of it already"}
    with pytest.raises(ConfigError, match=r"has another setting under `spark:` than production: spark.sql.ansi.enabled"):
        deployments.dev(spark={"spark.sql.ansi.enabled": "false"}).promote()
    for act in (lake.open.promote, lake.open.drop_environment):
        with pytest.raises(ConfigError, match="is no development environment"):
            act()


def test_nothing_in_an_environment_writes_to_production(deployments: Deployments) -> None:
    lake = deployments.built("plain", "above")
    dev, before = deployments.dev(), digests(lake.folder)
    assert dev.apply() == []
    assert {r.reason for r in dev.refresh_all()} == {"it is read from production"}
    assert dev.drop("plain", force=True).tables == ()
    assert dev.maintain().tables == ()
    with pytest.raises(ConfigError, match=r"`adopt` writes into a table of somebody else.* Use it in production"):
        dev.adopt("plain", lake.path("u"), {"u": 0})
    with pytest.raises(TargetError, match=r"plain .* is production's, which the development environment 'dev' only reads"):
        refreshed(dev, Request("plain", instead=dev.view_table("plain").head(lake.spark)))
    for table in (dev.view_table("plain"), dev.path.input("t")):
        with pytest.raises(TargetError, match="only reads"):
            Transaction(table.head(lake.spark))
        with pytest.raises(TargetError, match="only reads"):
            set_properties(lake.spark, table, {"a": "b"})
    assert dev.drop_environment().views == ()
    assert digests(lake.folder) == before

    dev.rebuild("plain")  # a table of its own, though nothing is edited
    assert {v.view: v.action for v in dev.plan().changes} == {"above": "build"}
    with pytest.raises(DefinitionError, match=r"View 'above' reads plain, of which environment 'dev' has a table of its own"):
        dev.refresh("above")
    dev.apply()
    assert dev.drop("plain", force=True).tables
    assert {v.view: (v.action, v.reason) for v in dev.plan().changes} == {
        "above": ("rebuild", "it was built from another table of plain, and reads production's now")
    }
    dev.apply()
    assert rows(dev) == rows(lake.open)
    assert digests(lake.folder) == before


def test_an_edit_of_a_clone_copies_no_file(deployments: Deployments) -> None:
    lake, edited = deployments.built("joined"), {"joined": f"{JOINED} WHERE k <> 2 OR k IS NULL".replace(" k", " t.k")}
    dev, place = deployments.dev(edited), deployments.folder / "joined"
    lake.sql(*CHANGES[0])
    (change,) = dev.plan().changes
    assert (change.action, change.how) == ("edit", "delete")
    assert "on a shallow clone of production's table" in change.reason

    class KilledError(BaseException):
        pass

    def killed(run: EditRun) -> RefreshResult:
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EditRun, "run", killed)
        with pytest.raises(KilledError):
            dev.apply(["joined"])
    assert rows(dev)["joined"] == rows(lake.open)["joined"]  # the clone, as it was
    assert [(r.view, r.mode) for r in dev.apply(["joined"])] == [("joined", "edit")]
    assert not list(place.rglob("part-*.parquet"))  # only a deletion vector
    stamp, theirs = dev.stamp("joined"), lake.open.stamp("joined")
    assert stamp is not None
    assert theirs is not None
    assert stamp.snapshot == theirs.snapshot
    before = digests(lake.folder)
    dev.refresh("joined")
    assert rows(dev)["joined"] == deployments.truth(edited)["joined"]
    assert digests(lake.folder) == before


def test_a_clone_whose_files_production_vacuumed_is_rebuilt_by_its_own_command(deployments: Deployments) -> None:
    lake, edited = deployments.built("joined"), {"joined": f"{JOINED} WHERE t.k <> 2"}
    dev = deployments.dev(edited)
    assert [(r.view, r.mode) for r in dev.apply()] == [("joined", "edit")]
    shared = list(Path(lake.path("views/joined")).rglob("part-*.parquet"))
    assert shared
    for file in shared:  # as VACUUM does seven days after they were replaced
        file.unlink()
    plans = jvm_of(lake.spark).own_plans
    plans.holdAtMost(plans.holdAtMost(0))  # this process has held their rows
    assert "all rows were written again" in lake.open.rebuild("joined").reason
    lake.sql("UPDATE {t} SET v = v + 1 WHERE id < 8")
    with pytest.raises(ExpiredError, match=r"View 'joined' has to read a file that no longer exists.*lakejoin --env dev rebuild joined"):
        dev.refresh("joined")
    lake.refresh("joined")
    assert rows(lake.open)["joined"] == deployments.truth()["joined"]
    assert dev.rebuild("joined").view == "joined"
    assert rows(dev)["joined"] == deployments.truth(edited)["joined"]
