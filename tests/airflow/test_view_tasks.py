"""The task of one view tells how the view was refreshed, as soon as that is known; cleared alone, it refreshes the view by itself."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, TriggerRule
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.execution_time.xcom import XCom
from airflow.serialization.serialized_objects import DagSerialization
from airflow.triggers.base import TaskFailedEvent, TaskSuccessEvent, TriggerEvent

from lake.airflow import view_outcome
from lake.airflow.factory import airflow_dags
from lake.airflow.operators import ViewOperator
from lake.airflow.view_outcome import ViewRefreshed, run_name
from tests.airflow.conftest import JOIN
from tests.airflow.test_operators import DONE, FAILED, RESULT, context

RUN, SECONDS = run_name("g", "refresh", "manual__1+00:00"), 0.02
SHOWN = {"view": "v", "moved": True, "reason": None, "seconds": None, **RESULT}
V = {**DONE, "view": "v", "result": RESULT}


class Airflow:
    """Stands for Airflow's database: the states of tasks, and what the task `refresh` returned; and for the folder of answers."""

    def __init__(self, folder: Path) -> None:
        self.states: dict[str, str | None] = {"refresh": "queued"}
        self.returned: Any = None
        self.asked, self.told = 0, list[str]()
        self.folder = folder

    def report(self, **views: Any) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / f"{RUN}.json").write_text(json.dumps({"told": str(time.monotonic_ns()), "answer": {"views": views}}))

    def get_task_states(self, dag_id: str, task_ids: list[str], run_ids: list[str]) -> Any:
        self.asked += 1
        return {run_ids[0]: {task: state for task, state in self.states.items() if task in task_ids}}

    async def aget_one(self, **_: Any) -> Any:
        return self.returned

    async def event(self, number: int = 1, view: str = "v", reads: tuple[str, ...] = ()) -> TriggerEvent:
        path, arguments = ViewRefreshed(view, reads, str(self.folder), SECONDS).serialize()
        assert path == "lake.airflow.view_outcome.ViewRefreshed"
        trigger = ViewRefreshed(**json.loads(json.dumps(arguments)))
        task = SimpleNamespace(dag_id="g", run_id="manual__1+00:00", task_id=f"views.{view}", try_number=number)
        trigger._task_instance = task  # type: ignore[assignment]
        return await anext(trigger.run())

    async def waits(self, event: asyncio.Task[TriggerEvent]) -> None:
        await asyncio.sleep(10 * SECONDS)
        assert not event.done()


@pytest.fixture
def airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Airflow:
    found = Airflow(tmp_path / "runs")
    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", staticmethod(found.get_task_states))
    monkeypatch.setattr(XCom, "aget_one", found.aget_one)
    log = SimpleNamespace(error=lambda text, *values: found.told.append(text % values), info=lambda *_: None)
    monkeypatch.setattr(ViewRefreshed, "log", log)
    view_outcome._looks.clear()
    return found


def test_a_view_is_told_of_while_the_others_are_still_refreshed(airflow: Airflow) -> None:
    async def history() -> None:
        v, w = (asyncio.ensure_future(airflow.event(view=view)) for view in "vw")
        await airflow.waits(v)
        airflow.states["refresh"] = "running"
        airflow.report(v=V)
        assert (await asyncio.wait_for(v, 5)).xcoms == {"return_value": SHOWN}  # type: ignore[attr-defined]
        await airflow.waits(w)
        airflow.report(v=V, w={**FAILED, "view": "w", "again": True})  # a retry may still refresh it
        await airflow.waits(w)
        airflow.states["refresh"] = "up_for_retry"
        await airflow.waits(w)
        airflow.report(v=V, w={**V, "view": "w"})
        assert isinstance(await asyncio.wait_for(w, 5), TaskSuccessEvent)

    asyncio.run(history())


def test_a_view_that_failed_is_told_of_in_the_end(airflow: Airflow) -> None:
    async def history() -> None:
        w = asyncio.ensure_future(airflow.event(view="w"))
        airflow.states["refresh"] = "running"
        airflow.report(w={**FAILED, "view": "w"})
        await airflow.waits(w)
        airflow.states["refresh"], airflow.returned = "success", {"views": {"w": {**FAILED, "view": "w"}}}
        assert isinstance(await asyncio.wait_for(w, 5), TaskFailedEvent)
        # nothing is known of a view if the whole refresh failed, or was marked as a success by hand
        for state in ("failed", "success"):
            view_outcome._looks.clear()
            airflow.states["refresh"], airflow.returned = state, None
            assert isinstance(await airflow.event(view="x"), TaskFailedEvent)

    asyncio.run(history())
    ends = [f"The task refresh ended ({state}) before view 'x' was refreshed: its log says why" for state in ("failed", "success")]
    assert airflow.told == ["View 'w': DIVIDE_BY_ZERO", *ends]


def test_an_answer_of_the_tries_before_the_run_was_cleared_is_not_this_ones(airflow: Airflow) -> None:
    async def history() -> None:
        airflow.report(v=V)
        v = asyncio.ensure_future(airflow.event(number=2))
        await airflow.waits(v)
        airflow.states["refresh"] = "running"
        await airflow.waits(v)
        airflow.states["refresh"], airflow.returned = "success", {"views": {"v": {**V, "moved": False}}}
        assert (await asyncio.wait_for(v, 5)).xcoms == {"return_value": {**SHOWN, "moved": False}}  # type: ignore[attr-defined]

    asyncio.run(history())


def test_a_view_that_is_cleared_alone_is_refreshed_after_those_that_it_reads(airflow: Airflow) -> None:
    async def history() -> None:
        airflow.states.update({"refresh": "success", "views.v": "failed"})
        assert (await airflow.event(number=2)).payload == {"view": "v"}
        w = asyncio.ensure_future(airflow.event(2, "w", reads=("v",)))
        assert isinstance(await asyncio.wait_for(w, 5), TaskFailedEvent)
        airflow.states["views.v"] = "deferred"
        w = asyncio.ensure_future(airflow.event(2, "w", reads=("v",)))
        await airflow.waits(w)
        airflow.states["views.v"] = "success"
        assert (await asyncio.wait_for(w, 5)).payload == {"view": "w"}

    asyncio.run(history())


def test_a_hundred_views_ask_as_one(airflow: Airflow) -> None:
    async def history() -> None:
        views = [asyncio.ensure_future(airflow.event(view=f"v{n}")) for n in range(100)]
        await asyncio.sleep(20 * SECONDS)
        assert 5 < airflow.asked < 100
        airflow.states["refresh"], airflow.returned = "success", {"views": {f"v{n}": {**V, "view": f"v{n}"} for n in range(100)}}
        assert all(isinstance(event, TaskSuccessEvent) for event in await asyncio.wait_for(asyncio.gather(*views), 5))

    asyncio.run(history())


def test_by_itself_it_goes_to_the_snapshot_of_its_run_and_fails_as_a_refresh_does(deployment: Any, submitted: Any) -> None:
    task = ViewOperator(task_id="v", deployment=deployment, view="v", reads=())
    with pytest.raises(TaskDeferred) as waits:
        task.execute(context())
    assert isinstance(waits.value.trigger, ViewRefreshed)
    file = "lakejoin_refresh_v.refresh.manual__1_00_00_v.json"

    def answered(answer: Any, error: str | None = None) -> list[list[str]]:
        asked: list[list[str]] = submitted(deployment, answer, error)
        Path(deployment.config.runs_path, file).unlink(missing_ok=True)
        return asked

    at, asked = context(number=2), answered({"views": {"v": V}})
    assert task.by_itself(at) == SHOWN
    assert asked == [["--config", deployment.file, "--run", "lakejoin_refresh_v.refresh.manual__1_00_00/v", "refresh", "v"]]
    assert at["outlet_events"]["lakejoin/v"]["snapshot"] == {"bid": 2}
    answered({"views": {"v": {**FAILED, "view": "v"}}}, "Error code is: 2.")
    with pytest.raises(AirflowFailException, match="DIVIDE_BY_ZERO"):
        task.by_itself(context(number=9))
    answered({"views": {"v": {**FAILED, "view": "v", "again": True}}}, "Error code is: 2.")
    with pytest.raises(AirflowException, match="DIVIDE_BY_ZERO"):
        task.by_itself(context(number=9))


def tasks(dag: DAG) -> dict[str, set[str]]:
    """The views' tasks of a DAG as Airflow stores it, and what is before each."""
    stored = DagSerialization.from_dict(json.loads(json.dumps(DagSerialization.to_dict(dag))))
    found = {task.task_id: task for task in stored.tasks}
    refresh, outcome = found.pop("refresh"), found.pop("outcome")
    assert outcome.upstream_task_ids == {"refresh", *found}
    assert not refresh.upstream_task_ids
    assert all(task.start_from_trigger and task.trigger_rule == TriggerRule.ALWAYS for task in found.values())
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
