"""Views are refreshed side by side: in any order that their graph allows, with the same results as one after the other."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lake.operations.in_parallel as operation
from lake import Lakehouse
from lake.core.phases import Phases, phase
from lake.errors import ConfigError, ViewsFailedError
from lake.operations.in_parallel import Ordered, side_by_side, workers
from lake.spark.jvm.gateway import jvm_of
from lake.views import registry
from lake.views.registry import OpenViews
from tests.lakes import TestLake, multiset, until

WITHIN = 60
"""Seconds after which something that has to happen has not."""
FLAT = Ordered(["a", "b", "c", "d", "e", "f"], lambda _: ["table"])
CHAIN = {"a": ["t"], "b": ["a", "t"], "c": ["b"], "d": ["t"], "e": ["d", "c"]}


def test_as_many_as_there_are_workers_run_at_once() -> None:
    """The barrier breaks unless two meet at it, three times."""
    lock, now, most, meeting = threading.Lock(), set[str](), list[int](), threading.Barrier(2)

    def work(view: str, _: object) -> str:
        with lock:
            now.add(view)
            most.append(len(now))
        meeting.wait(WITHIN)
        with lock:
            now.remove(view)
        return view.upper()

    assert side_by_side(FLAT, work, 2) == {v: v.upper() for v in FLAT.views}
    assert max(most) == 2


def test_a_view_starts_after_those_that_it_reads_and_is_given_their_outcomes() -> None:
    given = dict[str, Mapping[str, str]]()

    def work(view: str, read: Mapping[str, str]) -> str:
        given[view] = read
        return view.upper()

    side_by_side(Ordered([*CHAIN], CHAIN.__getitem__), work, 4)
    assert given == {"a": {}, "b": {"a": "A"}, "c": {"b": "B"}, "d": {}, "e": {"d": "D", "c": "C"}}


def test_outcomes_are_in_the_given_order_whichever_ends_first() -> None:
    later, seen = threading.Event(), list[tuple[str, list[str]]]()

    def work(view: str, _: object) -> None:
        assert view != "a" or later.wait(WITHIN)

    def ended(view: str, outcomes: Mapping[str, None]) -> None:
        assert threading.current_thread() is threading.main_thread()
        seen.append((view, [*outcomes]))
        if len(seen) == 2:
            later.set()

    found = side_by_side(Ordered(["a", "b", "c"], lambda view: ["b"] if view == "c" else []), work, 2, on_end=ended)
    assert [*found] == ["a", "b", "c"]
    assert seen == [("b", ["b"]), ("c", ["b", "c"]), ("a", ["a", "b", "c"])]


@pytest.mark.parametrize(("parallel", "views"), [(1, ["a", "b", "c"]), (4, ["a"])])
def test_one_worker_or_one_view_needs_no_thread(parallel: int, views: list[str]) -> None:
    threads = list[tuple[str, threading.Thread]]()
    side_by_side(Ordered(views, lambda _: []), lambda view, _: threads.append((view, threading.current_thread())), parallel)
    assert threads == [(view, threading.main_thread()) for view in views]


def test_what_the_work_raises_is_raised_after_those_that_run_have_ended() -> None:
    began, failing, ended = list[str](), threading.Event(), list[str]()

    def work(view: str, _: object) -> None:
        began.append(view)
        if view == "a":
            failing.set()
            raise ZeroDivisionError("a")
        assert failing.wait(WITHIN)
        ended.append(view)

    with pytest.raises(ZeroDivisionError, match="a"):
        side_by_side(Ordered(["a", "b", "c"], lambda view: [] if view in "ab" else ["a"]), work, 2)
    assert (began, ended) == (["a", "b"], ["b"])


def test_an_interrupt_starts_no_further_view_and_waits_for_those_that_run() -> None:
    began, pressed, ended = threading.Event(), threading.Event(), list[str]()

    def work(view: str, _: object) -> None:
        if view == "a":
            assert began.wait(WITHIN)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            pressed.set()
        began.set()
        assert pressed.wait(WITHIN)
        ended.append(view)

    with pytest.raises(KeyboardInterrupt):
        side_by_side(FLAT, work, 2)
    assert sorted(ended) == ["a", "b"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lakejoin")]


def test_workers_have_a_copy_of_the_callers_context_and_record_no_phases_of_it() -> None:
    setting, seen = ContextVar("setting", default="none"), list[str]()

    def work(view: str, _: object) -> None:
        with phase("compute"):
            seen.append(setting.get())
            setting.set(view)

    phases, token = Phases(), setting.set("of the caller")
    try:
        with phases.recorded():
            side_by_side(FLAT, work, 3)
        assert setting.get() == "of the caller"
    finally:
        setting.reset(token)
    assert seen == ["of the caller"] * 6
    assert {name for name, _, _ in phases.spans} == {"other"}


def test_the_number_of_workers_is_asked_for_or_configured_or_that_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    assert [workers(3, 5), workers(None, 5), workers(None, None)] == [3, 5, 7]
    with pytest.raises(ConfigError, match="`parallel` must be 1 or more, not 0"):
        workers(0, 5)


def test_two_threads_start_spark_once(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    views, made = OpenViews(lake.open.config), list[object]()
    second = threading.Thread(target=lambda: views.spark)

    def make(_: object, **_options: bool) -> SparkSession:
        made.append(object())
        if len(made) == 1:
            second.start()
            second.join(0.2)  # time to start Spark, too
        return lake.spark

    monkeypatch.setattr(registry, "make_session", make)
    assert views.spark is lake.spark
    second.join(WITHIN)
    assert len(made) == 1


# -- on Spark ------------------------------------------------------------------------------------------------------------------------------


def test_workers_have_the_local_properties_of_the_caller_and_end_in_the_jvm(spark: SparkSession) -> None:
    context, names = spark.sparkContext, set[str]()

    def work(view: str, _: object) -> tuple[Any, ...]:
        assert spark._jvm is not None
        names.add(str(spark._jvm.java.lang.Thread.currentThread().getName()))
        session = spark._jvm.org.apache.spark.sql.classic.SparkSession.getActiveSession()
        found = (context.getLocalProperty("spark.scheduler.pool"), context.getJobTags(), session.get().equals(spark._jsparkSession))
        context.setLocalProperty("spark.scheduler.pool", view)
        return found

    context.setLocalProperty("spark.scheduler.pool", "mine")
    context.addJobTag("nightly")
    try:
        assert {*side_by_side(FLAT, lambda v, r: str(work(v, r)), 3, spark).values()} == {str(("mine", {"nightly"}, True))}
        assert context.getLocalProperty("spark.scheduler.pool") == "mine"
    finally:
        context.clearJobTags()
        context.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
    assert len(names) > 1
    threads = jvm_of(spark).java.lang.Thread.getAllStackTraces
    until(lambda: not names & {str(thread.getName()) for thread in threads().keySet().toArray()}, WITHIN)


def test_a_thread_that_cannot_be_set_up_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ConnectionError("the JVM is gone")

    monkeypatch.setattr(operation, "as_in_this_thread", lambda *_: broken)
    with pytest.raises(ConnectionError, match="the JVM is gone"):
        side_by_side(FLAT, lambda *_: None, 2)


QUERIES = {
    "per_g": "SELECT g, sum(v) AS total, count(*) AS n FROM a GROUP BY g",
    "plain": "SELECT id, g, v * 2 AS twice FROM a WHERE v > 2",
    "joined": "SELECT a.id, a.v, b.s FROM a JOIN b ON a.id = b.id",
    "outer_": "SELECT a.id, a.g, b.s FROM a LEFT JOIN b ON a.id = b.id",
    "three": "SELECT a.id, b.s, c.x FROM a JOIN b ON a.id = b.id JOIN c ON b.s = c.s",
    "best": "SELECT * FROM (SELECT id, g, v, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS place FROM a) WHERE place <= 2",
    "without": "SELECT s, x FROM c WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.s = c.s)",
    "of_s": "SELECT s, max(x) AS most FROM c GROUP BY s",
    "bag": "SELECT g FROM a UNION ALL SELECT s FROM b",
    "shares": "SELECT a.id, a.v, t.total FROM a JOIN per_g t ON a.g <=> t.g",
    "named": "SELECT j.id, j.v, o.most FROM joined j LEFT JOIN of_s o ON j.s = o.s",
    "top": "SELECT count(*) AS n, sum(total) AS total FROM shares",
}
ROUNDS = (
    ("INSERT INTO {a} VALUES (7, 'y', 3), (8, NULL, 9)", "UPDATE {c} SET x = x + 1 WHERE s = 'x'"),
    ("UPDATE {a} SET g = 'x' WHERE id = 3", "DELETE FROM {b} WHERE id = 1", "INSERT INTO {c} VALUES ('w', 5), ('w', 5)"),
    ("DELETE FROM {a} WHERE id IN (2, 8)", "INSERT INTO {b} VALUES (7, 'w'), (3, NULL)", "DELETE FROM {c} WHERE s = 'y'"),
    ("UPDATE {a} SET v = v * 3",),
)


@pytest.fixture
def many(lake: TestLake) -> TestLake:
    """Three tables, nine views on them, and three on views, declared in the wrong order."""
    lake.table("a", "SELECT * FROM VALUES (1, 'x', 10), (2, 'y', 20), (3, 'y', 5), (3, 'y', 5), (4, NULL, 1) t(id, g, v)")
    lake.table("b", "SELECT * FROM VALUES (1, 'x'), (2, 'y'), (3, 'y') t(id, s)")
    lake.table("c", "SELECT * FROM VALUES ('x', 1), ('y', 2), (NULL, 3), ('z', 4) t(s, x)")
    for name in reversed(QUERIES):
        lake.view(name, QUERIES[name])
    return lake


def assert_all_exact(lake: TestLake) -> None:
    """Each view holds what its query gives from scratch, over the newest tables and such views."""
    session = lake.spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    for table in lake.tables:
        session.read.format("delta").load(lake.path(table)).createOrReplaceTempView(table)
    for name, query in QUERIES.items():
        truth = session.sql(query)
        truth.createOrReplaceTempView(name)
        assert multiset(lake.open.read(name)) == multiset(truth), name


@pytest.mark.slow
def test_many_views_beside_each_other_are_what_their_queries_give(many: TestLake) -> None:
    def modes(results: list[Any]) -> set[str]:
        assert [r.view for r in results] == many.open.in_order(many.views)
        return {r.mode for r in results}

    assert modes(many.open.refresh_all(parallel=4)) == {"build"}
    assert_all_exact(many)
    for changes in ROUNDS:
        many.sql(*changes)
        assert modes(many.open.refresh_all(parallel=4)) <= {"incremental", "none", "recompute"}
        assert_all_exact(many)
        at = {table: many.open.source_head(table).version.number for table in many.tables}
        for view in many.views:
            stamp = many.open.stamp(view)
            assert stamp is not None
            assert dict(stamp.answers_for).items() <= at.items(), view


@pytest.mark.slow
def test_a_failure_among_many_is_that_of_its_view_and_of_those_above_it(many: TestLake) -> None:
    many.views["joined"] = {"query": "SELECT a.id, 60 / a.v AS v, b.s FROM a JOIN b ON a.id = b.id"}
    many.open.refresh_all(parallel=4)
    before = multiset(many.open.read("named"))
    many.sql("UPDATE {a} SET v = 0 WHERE id = 2")
    with pytest.raises(ViewsFailedError) as caught:
        many.open.refresh_all(parallel=4)
    assert ([*caught.value.failed], caught.value.skipped) == (["joined"], ("named",))
    order = many.open.in_order(many.views)
    assert [r.view for r in caught.value.results] == [view for view in order if view not in ("joined", "named")]
    assert multiset(many.open.read("named")) == before
    many.sql("UPDATE {a} SET v = 30 WHERE id = 2")
    assert len(many.open.refresh_all(parallel=4)) == len(QUERIES)
    assert multiset(many.open.read("plain")) == many.truth("plain")


def test_an_interrupted_refresh_of_all_can_be_repeated(many: TestLake, module: Callable[[str, str], None]) -> None:
    """PySpark's own handler cancels the jobs of the refreshes that run; what was published stays, and the next refresh ends."""
    text = "import signal, threading\n\ndef v(a):\n    {}\n    return a.select('id')\n"
    module("pressed", text.format("signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)"))
    module("later", text.format("pass"))
    many.views = {"plain": {"query": QUERIES["plain"]}, "interrupting": {"function": "pressed:v"}, "per_g": {"query": QUERIES["per_g"]}}
    many.views["last"] = {"query": "SELECT total FROM per_g JOIN interrupting ON id = n"}
    with pytest.raises(KeyboardInterrupt):
        many.open.refresh_all(parallel=2)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lakejoin")]
    assert many.open.stamp("last") is None
    many.view("interrupting", function="later:v")
    assert len(many.open.refresh_all(parallel=2)) == 4
    assert {state.users for state in many.open._views.values()} == {0}


def test_the_configuration_says_how_many_views_are_refreshed_at_once(many: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = set[str]()
    refresh = Lakehouse.refresh

    def seen(lake: Lakehouse, view: str, *arguments: Any) -> Any:
        threads.add(threading.current_thread().name)
        return refresh(lake, view, *arguments)

    monkeypatch.setattr(Lakehouse, "refresh", seen)
    many.views = {name: {"query": QUERIES[name]} for name in ("plain", "bag", "of_s")}
    many.others = {"parallel": 1}
    many.open.refresh_all()
    assert threads == {"MainThread"}
    many.open.refresh_all(parallel=2)
    assert threads == {"MainThread", "lakejoin plain", "lakejoin bag", "lakejoin of_s"}
