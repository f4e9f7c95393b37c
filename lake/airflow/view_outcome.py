"""A trigger that tells how one view was refreshed as soon as that is known; it takes no worker slot, and tasks of one run ask together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.execution_time.xcom import XCom
from airflow.triggers.base import BaseTrigger, TaskFailedEvent, TaskSuccessEvent, TriggerEvent
from asgiref.sync import sync_to_async

from lake.airflow.result_files import answer_of
from lake.config.models import run_file

REFRESH = "refresh"
"""The task that refreshes all views of a group."""
_ENDED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
_MOST_RUNS = 100
_looks: dict[tuple[str, str], tuple[float, asyncio.Task[Any]]] = {}
"""What was last asked about a run, and when."""


def run_name(dag: str, task: str, run: str) -> str:
    """The name of a task's run, which is that of its files."""
    return run_file(f"{dag}.{task}.{run}")


def task_of(view: str) -> str:
    """The task that tells how a view was refreshed."""
    return f"views.{view}"


def shown(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """What a view's task returns: how the view was refreshed, how many rows changed, and how long it took."""
    result = outcome["result"] or {}
    names = ("mode", "reason", "rows_inserted", "rows_deleted", "seconds")
    return {"view": outcome["view"], "moved": outcome["moved"], **{name: result.get(name) for name in names}}


class ViewRefreshed(BaseTrigger):
    """Ends the task of a view when the task `refresh` of its run has refreshed the view, or failed to: with the rows, or with the message.

    A view that is refreshed is told of at once, one that failed when `refresh` has ended, since a retry may still refresh it. If the task
    was cleared after `refresh` had ended, the trigger fires, and the task refreshes the view by itself, once the tasks of the views that it
    reads (`reads`) have ended. `folder`: where runs leave their answers; `seconds`: between two looks.
    """

    def __init__(self, view: str, reads: Sequence[str], folder: str, seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.view, self.reads, self.folder, self.seconds = view, list(reads), folder, seconds
        self._warned = ""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        said = {"view": self.view, "reads": self.reads, "folder": self.folder, "seconds": self.seconds}
        return f"{type(self).__module__}.{type(self).__qualname__}", said

    async def run(self) -> AsyncIterator[TriggerEvent]:
        state, report = await self._look()
        if state in _ENDED and self._ti.try_number > 1:
            yield await self._by_itself()
            return
        old = report.get("told") if self._ti.try_number > 1 else None  # of the tries before it was cleared
        while state not in _ENDED:
            outcome = _outcome(report.get("answer"), self.view)
            if outcome is not None and outcome["state"] == "done" and report.get("told") != old:
                yield self._succeeded(outcome)
                return
            await asyncio.sleep(self.seconds)
            state, report = await self._look()
        answer = await XCom.aget_one(key="return_value", dag_id=self._ti.dag_id, task_id=REFRESH, run_id=self._ti.run_id)
        said = report.get("answer") if report.get("told") != old else None
        yield self._at_the_end(state, answer, said)

    @property
    def _ti(self) -> Any:
        return self.task_instance

    async def _look(self) -> tuple[str | None, dict[str, Any]]:
        """The state of the task `refresh`, and what it has reported so far."""
        found: tuple[str | None, dict[str, Any]] = await _together((self._ti.dag_id, self._ti.run_id), self.seconds, self._ask)
        return found

    async def _ask(self) -> tuple[str | None, dict[str, Any]]:
        state = (await self._states([REFRESH])).get(REFRESH)
        try:
            report = await asyncio.to_thread(answer_of, self.folder, run_name(self._ti.dag_id, REFRESH, self._ti.run_id))
        except Exception as error:  # whatever the storage raises: the answer of the task tells it in the end
            if str(error) != self._warned:
                self.log.warning("%s can't be read: %s", self.folder, error)
            self._warned, report = str(error), {}
        return state, report

    async def _states(self, tasks: Sequence[str]) -> dict[str, str | None]:
        ti = self._ti
        ask = sync_to_async(RuntimeTaskInstance.get_task_states)
        found = await ask(dag_id=ti.dag_id, task_ids=list(tasks), run_ids=[ti.run_id])
        return dict(found.get(ti.run_id, {}))

    async def _by_itself(self) -> TriggerEvent:
        """Fire when the views that this one reads are refreshed; fail if one of them is not."""
        tasks = {task_of(view): view for view in self.reads}
        while tasks:
            states = await self._states(list(tasks))
            failed = [tasks[task] for task, state in states.items() if state in _ENDED - {"success"}]
            if failed:
                return self._failed(f"View {self.view!r} was left as it is: it reads view {failed[0]!r}, which failed.")
            if all(state == "success" for state in states.values()):
                break
            await asyncio.sleep(self.seconds)
        self.log.info("The task %s has ended: this task refreshes view %r by itself, to the snapshot of its run.", REFRESH, self.view)
        return TriggerEvent({"view": self.view})  # type: ignore[no-untyped-call]

    def _at_the_end(self, state: str | None, answer: Any, said: Any) -> TriggerEvent:
        """The end of this task, by the answer that the task `refresh` returned; `said`: what its application has left."""
        outcome = _outcome(answer, self.view) or _outcome(said, self.view)
        if outcome is None:
            why = said["error"] if isinstance(said, dict) and "error" in said else "its log says why"
            return self._failed(f"The task {REFRESH} ended ({state}) before view {self.view!r} was refreshed: {why}")
        return self._succeeded(outcome) if outcome["state"] == "done" else self._failed(outcome["error"])

    def _succeeded(self, outcome: Mapping[str, Any]) -> TriggerEvent:
        said = shown(outcome)
        self.log.info("View %r: %s", self.view, said)
        return TaskSuccessEvent(xcoms={"return_value": said})

    def _failed(self, message: str) -> TriggerEvent:
        self.log.error("%s", message)
        return TaskFailedEvent()


def _outcome(answer: Any, view: str) -> dict[str, Any] | None:
    """The outcome of a view in the answer of a refresh; None if there is none yet."""
    found = answer.get("views", {}).get(view) if isinstance(answer, dict) else None
    return dict(found) if found else None


async def _together(key: tuple[str, str], seconds: float, ask: Callable[[], Awaitable[Any]]) -> Any:
    """What was asked about a run, at most once in so many seconds: a group may have hundreds of views."""
    at, asked = _looks.get(key, (0.0, None))
    if asked is None or time.monotonic() - at > seconds / 2:
        asked = asyncio.ensure_future(ask())
        _looks.pop(key, None)
        _looks[key] = (time.monotonic(), asked)
        while len(_looks) > _MOST_RUNS:
            del _looks[next(iter(_looks))]
    return await asyncio.shield(asked)
