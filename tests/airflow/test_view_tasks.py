"""The task of one view tells how the view was refreshed, as soon as that is known; cleared alone, it refreshes the view by itself."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, TriggerRule
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException, AirflowTaskTimeout
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.execution_time.xcom import XCom
from airflow.serialization.serialized_objects import DagSerialization
from airflow.triggers.base import TaskFailedEvent, TaskSuccessEvent

from lake.airflow import view_outcome
from lake.airflow.factory import airflow_dags
from lake.airflow.operators import LakejoinOperator, RefreshOperator, ViewOperator
from lake.airflow.view_outcome import ViewRefreshed, run_name
from tests.airflow.conftest import JOIN
from tests.airflow.test_operators import DONE, FAILED, RESULT, context

RUN, SECONDS = run_name("g", "refresh", "manual__1+00:00"), 0.02
SHOWN = {"view": "v", "moved": True, "reason": None, "seconds": None, **RESULT}
V, W = {**DONE, "view": "v", "result": RESULT}, {**FAILED, "view": "w"}


class Airflow:
    """Stands for Airflow's database: the state of tasks, and what the task `refresh` has pushed; and for the folder of answers."""

    def __init__(self, folder: Path) -> None:
        self.states: dict[str, str | None] = {"refresh": "queued"}
        self.pushed: dict[str, Any] = {}
        self.run_began = datetime.now(UTC)
        self.asked, self.told = 0, list[str]()
        self.silent = False
        self.folder = folder

    @property
    def now(self) -> str:
        return max(datetime.now(UTC), self.run_began).isoformat()

    def begin(self, state: str = "running") -> None:
        """A try of the task `refresh` begins."""
        self.states["refresh"], self.pushed = state, {"began": self.now}

    def end(self, state: str = "success", **views: Any) -> None:
        self.states["refresh"] = state
        self.pushed |= {"return_value": {"views": views}} if state == "success" else {}

    def report(self, **views: Any) -> None:
        self._write({"views": views})

    def _write(self, answer: Any) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / f"{RUN}.json").write_text(json.dumps({"told": self.now, "answer": answer}))

    def get_task_states(self, dag_id: str, task_ids: list[str], run_ids: list[str]) -> Any:
        self.asked += 1
        if self.silent:
            raise RuntimeError("the database is away")
        return {run_ids[0]: {task: state for task, state in self.states.items() if task in task_ids}}

    async def aget_one(self, key: str, **_: Any) -> Any:
        return self.pushed.get(key)

    async def event(self, number: int = 1, view: str = "v", reads: tuple[str, ...] = ()) -> Any:
        path, arguments = ViewRefreshed(view, reads, str(self.folder), SECONDS).serialize()
        assert path == "lake.airflow.view_outcome.ViewRefreshed"
        trigger = ViewRefreshed(**json.loads(json.dumps(arguments)))
        at = {"dag_run": SimpleNamespace(start_date=self.run_began)}
        names = {"dag_id": "g", "run_id": "manual__1+00:00", "task_id": f"views.{view}", "try_number": number}
        trigger._task_instance = SimpleNamespace(**names, get_template_context=lambda: at)  # type: ignore[assignment]
        return await anext(trigger.run())

    def wait(self, **which: Any) -> asyncio.Task[Any]:
        return asyncio.ensure_future(self.event(**which))

    async def cleared(self, ended: bool = True) -> None:
        """A task is cleared, a while after the run had ended, or while it has not."""
        await asyncio.sleep(2 * SECONDS)
        self.run_began += timedelta(hours=1) if ended else timedelta()


async def is_waiting(event: asyncio.Task[Any]) -> None:
    await asyncio.sleep(10 * SECONDS)
    assert not event.done()


async def ended(event: asyncio.Task[Any]) -> Any:
    return await asyncio.wait_for(event, 5)


@pytest.fixture
def airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Airflow:
    found = Airflow(tmp_path / "runs")
    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", staticmethod(found.get_task_states))
    monkeypatch.setattr(XCom, "aget_one", found.aget_one)

    def tell(text: str, *values: object) -> None:
        found.told.append(text % values)

    monkeypatch.setattr(ViewRefreshed, "log", SimpleNamespace(error=tell, warning=tell, info=lambda *_: None))
    view_outcome._looks.clear()
    return found


def test_a_view_is_told_of_while_the_others_are_still_refreshed(airflow: Airflow) -> None:
    async def history() -> None:
        v, w = (airflow.wait(view=view) for view in "vw")
        await is_waiting(v)
        airflow.begin()
        airflow.report(v=V)
        assert (await ended(v)).xcoms == {"return_value": SHOWN}
        await is_waiting(w)
        airflow.report(v=V, w={**W, "again": True})  # a retry may still refresh it
        await is_waiting(w)
        airflow.states["refresh"] = "up_for_retry"
        await is_waiting(w)
        airflow.begin()
        airflow.report(v=V, w={**V, "view": "w"})
        assert isinstance(await ended(w), TaskSuccessEvent)

    asyncio.run(history())


def test_a_view_that_failed_is_told_of_in_the_end(airflow: Airflow) -> None:
    async def history() -> None:
        w = airflow.wait(view="w")
        airflow.begin()
        airflow.report(w=W)
        await is_waiting(w)
        airflow.end(w=W)
        assert isinstance(await ended(w), TaskFailedEvent)
        # nothing is known of a view if the whole refresh failed, or was marked as a success by hand
        for state in ("failed", "success"):
            view_outcome._looks.clear()
            airflow.states["refresh"], airflow.pushed = state, {}
            assert isinstance(await airflow.event(view="x"), TaskFailedEvent)
        view_outcome._looks.clear()
        airflow.begin()
        airflow._write({"error": "no space left", "again": False})
        airflow.end("failed")
        assert isinstance(await airflow.event(view="x"), TaskFailedEvent)

    asyncio.run(history())
    why = "The task refresh ended ({}) before view 'x' was refreshed: {}"
    unknown = [why.format(state, "its log says why") for state in ("failed", "success")]
    assert airflow.told == ["View 'w': DIVIDE_BY_ZERO", *unknown, why.format("failed", "no space left")]


def test_an_answer_of_another_try_or_run_is_not_this_ones(airflow: Airflow) -> None:
    async def history() -> None:
        airflow.begin("success")
        airflow.report(v=V)
        airflow.end(v=V)
        await airflow.cleared()
        airflow.states["refresh"] = "queued"
        for number in (1, 2):  # a run that was deleted, and made again with its name, has a first try
            v = airflow.wait(number=number)
            await is_waiting(v)
            airflow.states["refresh"] = "running"  # what it pushed before is removed a moment later
            await is_waiting(v)
            airflow.begin()
            await is_waiting(v)
            airflow.end(v={**V, "moved": False})
            assert (await ended(v)).xcoms == {"return_value": {**SHOWN, "moved": False}}
            await airflow.cleared()
            airflow.states["refresh"] = "queued"

    asyncio.run(history())


def test_a_view_that_is_cleared_alone_is_refreshed_after_those_that_it_reads(airflow: Airflow) -> None:
    async def history() -> None:
        airflow.begin("success")
        airflow.end(v=V, w=W)
        await airflow.cleared(ended=False)
        assert isinstance(await airflow.event(2), TaskSuccessEvent)  # this run has refreshed it
        assert (await airflow.event(2, "w")).payload == {"view": "w"}
        await airflow.cleared()
        airflow.states["views.v"] = "failed"
        assert (await airflow.event(2)).payload == {"view": "v"}
        assert isinstance(await airflow.event(2, "w", reads=("v",)), TaskFailedEvent)
        airflow.states["views.v"] = "deferred"
        w = airflow.wait(number=2, view="w", reads=("v",))
        await is_waiting(w)
        airflow.states["views.v"] = "success"
        assert (await ended(w)).payload == {"view": "w"}

    asyncio.run(history())


def test_it_waits_while_airflow_does_not_answer_but_not_for_ever(airflow: Airflow, monkeypatch: pytest.MonkeyPatch) -> None:
    async def history() -> None:
        airflow.silent = True
        v = airflow.wait()
        await is_waiting(v)
        airflow.silent = False
        airflow.begin()
        airflow.end(v=V)
        assert isinstance(await ended(v), TaskSuccessEvent)
        monkeypatch.setattr(view_outcome, "_SILENT_FOR", 0.0)
        airflow.silent = True
        await asyncio.sleep(SECONDS)
        with pytest.raises(RuntimeError, match="the database is away"):
            await ended(airflow.wait())

    asyncio.run(history())
    assert airflow.told == ["Airflow does not say how the task refresh gets on: the database is away"]


def test_a_hundred_views_ask_as_one(airflow: Airflow) -> None:
    async def history() -> None:
        views = [airflow.wait(view=f"v{n}") for n in range(100)]
        async with asyncio.timeout(30):  # a busy machine asks more slowly
            while airflow.asked <= 5:
                await asyncio.sleep(SECONDS)
        assert 5 < airflow.asked < 100
        airflow.begin()
        airflow.end(**{f"v{n}": {**V, "view": f"v{n}"} for n in range(100)})
        assert all(isinstance(event, TaskSuccessEvent) for event in await asyncio.wait_for(asyncio.gather(*views), 5))

    asyncio.run(history())


def test_by_itself_it_goes_to_the_snapshot_of_its_run_and_fails_as_a_refresh_does(
    deployment: Any, submitted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = ViewOperator(task_id="v", deployment=deployment, view="v", reads=())
    file = "lakejoin_refresh_v.refresh.manual__1_00_00@v.json"

    def answered(answer: Any, error: str | None = None) -> list[list[str]]:
        asked: list[list[str]] = submitted(deployment, answer, error)
        Path(deployment.config.runs_path, file).unlink(missing_ok=True)
        return asked

    at, asked = context(number=2, planned=None), answered({"views": {"v": V}})
    assert task.by_itself(at) == SHOWN
    assert asked == [["--config", deployment.file, "--run", "lakejoin_refresh_v.refresh.manual__1_00_00::v", "refresh", "v"]]
    assert at["outlet_events"]["lakejoin/v"]["snapshot"] == {"bid": 2}
    nothing = {**V, "result": {**RESULT, "mode": "none"}}
    for whole, told in ({"views": {"v": V}}, False), ({"views": {"v": {**V, "moved": False}}}, True), (None, True):
        answered({"views": {"v": nothing}})
        at = context(number=2, planned=whole)
        task.by_itself(at)
        assert ("lakejoin/v" in at["outlet_events"]) == told  # the refresh of the group has sent the event, or could not
    for again, kind in (False, AirflowFailException), (True, AirflowException):
        answered({"views": {"v": {**FAILED, "view": "v", "again": again}}}, "Error code is: 2.")
        with pytest.raises(kind, match="DIVIDE_BY_ZERO"):
            task.by_itself(context(number=9, planned=None))

    ends = list[object]()
    monkeypatch.setattr(ViewOperator, "on_kill", lambda self: ends.append(self))
    airflow = deployment.config.airflow.model_copy(update={"timeout_minutes": 0.001})
    task.deployment = replace(deployment, config=deployment.config.model_copy(update={"airflow": airflow}))
    monkeypatch.setattr(LakejoinOperator, "execute", lambda self, context: time.sleep(60))
    with pytest.raises(AirflowTaskTimeout):
        task.by_itself(context())
    assert len(ends) == 1


def test_without_a_triggerer_it_tells_what_is_known(deployment: Any) -> None:
    task = ViewOperator(task_id="v", deployment=deployment, view="v", reads=())
    assert task.execute(context(planned={"views": {"v": V}})) == SHOWN
    with pytest.raises(AirflowFailException, match="DIVIDE_BY_ZERO"):
        task.execute(context(planned={"views": {"v": {**FAILED, "view": "v"}}}))
    with pytest.raises(AirflowSkipException, match="has not ended yet"):
        task.execute(context(planned=None))


def test_the_refresh_of_a_group_fails_if_a_view_failed_that_a_task_has_told_of(deployment: Any, submitted: Any) -> None:
    task = RefreshOperator(task_id="refresh", deployment=deployment, views=("v", "w"))
    submitted(deployment, {"views": {"v": V, "w": {**W, "again": True}}}, "Error code is: 2.")
    with pytest.raises(AirflowException, match="DIVIDE_BY_ZERO"):
        task.execute(context(number=1))
    submitted(
        deployment, {"views": {"v": {**FAILED, "view": "v", "error": "a critical finding"}, "w": {**V, "view": "w"}}}, "Error code is: 1."
    )
    with pytest.raises(AirflowFailException, match="a critical finding"):
        task.execute(context(number=2))


def tasks(dag: DAG) -> dict[str, set[str]]:
    """The views' tasks of a DAG as Airflow stores it, and what is before each."""
    stored = DagSerialization.from_dict(json.loads(json.dumps(DagSerialization.to_dict(dag))))
    found = {task.task_id: task for task in stored.tasks}
    refresh, outcome = found.pop("refresh"), found.pop("outcome")
    assert outcome.upstream_task_ids == {"refresh", *found}
    assert not refresh.upstream_task_ids
    assert all(task.start_from_trigger and task.trigger_rule == TriggerRule.ALWAYS and task.retries == 0 for task in found.values())
    assert not any(task.execution_timeout for task in found.values())
    return {name: set(task.upstream_task_ids) for name, task in found.items()}


def test_each_view_has_a_task_below_those_that_it_reads(written: Callable[..., Path]) -> None:
    views = {
        "gold": {"query": "SELECT * FROM v JOIN silver.w ON v.id = w.id", "owner": "ann", "description": "All of it."},
        "silver.w": {"query": "SELECT id FROM v"},
        "v": {"query": JOIN},
    }
    dag = airflow_dags(written({name: {**view, "group": "g"} for name, view in views.items()}))["lakejoin_refresh_g"]
    assert tasks(dag) == {"views.gold": {"views.v", "views.silver.w"}, "views.silver.w": {"views.v"}, "views.v": {"refresh"}}
    gold = dag.get_task("views.gold")
    assert gold.owner == "ann"
    assert gold.doc_md == "All of it.\n\n```sql\nSELECT * FROM v JOIN silver.w ON v.id = w.id\n```"


def test_views_that_read_each_other_leave_the_dag_as_it_is(written: Callable[..., Path]) -> None:
    views = {"a": "SELECT id FROM b", "b": "SELECT id FROM c", "c": "SELECT id FROM a", "d": "SELECT d.id FROM d JOIN a ON d.id = a.id"}
    file = written({name: {"query": query, "group": "g"} for name, query in views.items()})
    assert tasks(airflow_dags(file)["lakejoin_refresh_g"]) == {
        "views.a": {"views.b"},
        "views.b": {"views.c"},
        "views.c": {"refresh"},
        "views.d": {"views.a"},
    }
