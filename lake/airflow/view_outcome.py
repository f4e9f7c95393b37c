"""A trigger that reports how one view was refreshed as soon as that is known. It takes no worker slot; tasks of one run ask together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.execution_time.xcom import XCom
from airflow.triggers.base import BaseTrigger, TaskFailedEvent, TaskSuccessEvent, TriggerEvent
from asgiref.sync import sync_to_async

from lake.airflow.result_files import answer_of
from lake.config.models import run_file

T = TypeVar("T")
REFRESH, VIEWS, BEGAN = "refresh", "views", "began"
"""The task that refreshes all views of a group, the task group of these views, and the XCom in which each try of `refresh` says when it
began."""
_ENDED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
_CLOCKS_DIFFER = timedelta(minutes=1)
"""How far the clocks of the scheduler and of a worker may be apart, where nothing was cleared."""
_SILENT_FOR = 600.0
"""Seconds for which Airflow may not answer."""
_MOST_RUNS = 100
_looks: dict[tuple[str, str], tuple[float, asyncio.Task[Any]]] = {}
"""What was last asked about a run, and when."""


def run_name(dag: str, task: str, run: str) -> str:
    """The name of a task's run, which is that of its files."""
    return run_file(f"{dag}.{task}.{run}".replace("::", "__"))


def task_of(view: str) -> str:
    """The task that tells how a view was refreshed."""
    return f"{VIEWS}.{view}"


def shown(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """What a view's task returns: how the view was refreshed, how many rows changed, and how long it took."""
    result = outcome["result"] or {}
    names = ("mode", "reason", "rows_inserted", "rows_deleted", "seconds")
    return {"view": outcome["view"], "moved": outcome["moved"], **{name: result.get(name) for name in names}}


@dataclass(frozen=True)
class Look:
    """How far the task `refresh` is: its state, when its present try began, what its application has reported so far (None: nothing of this
    try), and what it has returned."""

    state: str | None = None
    began: datetime | None = None
    report: Any = None
    answer: Any = None

    @property
    def ended(self) -> bool:
        return self.state in _ENDED


class ViewRefreshed(BaseTrigger):
    """Ends the task of a view when the task `refresh` of its run has refreshed the view, or failed to: with the rows, or with the message.

    A refreshed view is reported at once. A failed view is reported when `refresh` has ended, because a retry may still refresh it. If the
    task was cleared after `refresh` had ended, the trigger fires, and the task refreshes the view by itself, once the tasks of the views
    that it reads (`reads`) have ended. `folder`: where runs leave their answers, empty if Airflow can't read it; `seconds`: between looks.
    """

    def __init__(self, view: str, reads: Sequence[str], folder: str, seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.view, self.reads, self.folder, self.seconds = view, list(reads), folder, seconds
        self._answered, self._warned = time.monotonic(), ""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        said = {"view": self.view, "reads": self.reads, "folder": self.folder, "seconds": self.seconds}
        return f"{type(self).__module__}.{type(self).__qualname__}", said

    async def run(self) -> AsyncIterator[TriggerEvent]:
        look = await self._look()
        late, cleared = look.ended, self._ti.try_number > 1
        while not look.ended:
            outcome = _outcome(look.report, self.view)
            if outcome is not None and outcome["state"] == "done" and self._is_of_this_run(look.began):
                yield self._succeeded(outcome)
                return
            await asyncio.sleep(self.seconds)
            look = await self._look()
        ours = look.began is not None and (not late or self._is_of_this_run(look.began))
        outcome = _outcome(look.answer, self.view) if ours else None
        if outcome is not None and outcome["state"] == "done":
            yield self._succeeded(outcome)
        elif cleared and late and (outcome is not None or not ours):
            yield await self._by_itself()
        elif outcome is not None:
            yield self._failed(outcome["error"])
        else:
            said = look.report if ours and isinstance(look.report, dict) else {}
            why = said.get("error", "its log says why")
            yield self._failed(f"The task {REFRESH} ended ({look.state}) before view {self.view!r} was refreshed: {why}")

    @property
    def _ti(self) -> Any:
        return self.task_instance

    def _is_of_this_run(self, began: datetime | None) -> bool:
        """Whether a try began in this run: not before the run was cleared, nor in a deleted run of the same name."""
        run = self._ti.get_template_context()["dag_run"].start_date if hasattr(self._ti, "get_template_context") else None
        apart = timedelta() if self._ti.try_number > 1 else _CLOCKS_DIFFER
        return began is not None and (run is None or began >= run - apart)

    async def _look(self) -> Look:
        return await self._patiently(lambda: _together((self._ti.dag_id, self._ti.run_id), self.seconds, self._ask), Look())

    async def _ask(self) -> Look:
        state = (await self._states([REFRESH])).get(REFRESH)
        text = await self._xcom(BEGAN)
        began = datetime.fromisoformat(text) if text else None
        answer = await self._xcom("return_value") if state in _ENDED else None
        return Look(state, began, await self._report(began), answer)

    async def _report(self, began: datetime | None) -> Any:
        """What the application has reported in the try that began then."""
        if not self.folder or began is None:
            return None
        try:
            found = await asyncio.to_thread(answer_of, self.folder, run_name(self._ti.dag_id, REFRESH, self._ti.run_id))
        except Exception as error:  # whatever the storage raises: the answer of the task tells it in the end
            self._warn(f"{self.folder} can't be read: {error}")
            return None
        return found["answer"] if found and datetime.fromisoformat(found["told"]) >= began else None

    async def _xcom(self, key: str) -> Any:
        return await XCom.aget_one(key=key, dag_id=self._ti.dag_id, task_id=REFRESH, run_id=self._ti.run_id)

    async def _states(self, tasks: Sequence[str]) -> dict[str, str | None]:
        ti = self._ti
        ask = sync_to_async(RuntimeTaskInstance.get_task_states)
        found = await ask(dag_id=ti.dag_id, task_ids=list(tasks), run_ids=[ti.run_id])
        return dict(found.get(ti.run_id, {}))

    async def _patiently(self, ask: Callable[[], Awaitable[T]], nothing: T) -> T:
        """The answer to a question; nothing while Airflow does not answer. Raises its error when that has lasted."""
        try:
            found = await ask()
        except Exception as error:
            if time.monotonic() - self._answered > _SILENT_FOR:
                raise
            self._warn(f"Airflow does not say how the task {REFRESH} gets on: {error}")
            return nothing
        self._answered = time.monotonic()
        return found

    def _warn(self, message: str) -> None:
        if message != self._warned:
            self.log.warning("%s", message)
        self._warned = message

    async def _by_itself(self) -> TriggerEvent:
        """Fire when the views that this one reads are refreshed; fail if one of them is not."""
        tasks = {task_of(view): view for view in self.reads}
        while tasks:
            unknown = dict[str, str | None]()
            states = await self._patiently(lambda: self._states(list(tasks)), unknown)
            failed = [tasks[task] for task, state in states.items() if state in _ENDED - {"success"}]
            if failed:
                return self._failed(f"View {self.view!r} was left as it is: it reads view {failed[0]!r}, which failed.")
            if states and all(state == "success" for state in states.values()):
                break
            await asyncio.sleep(self.seconds)
        self.log.info("The task %s has ended: this task refreshes view %r by itself, to the snapshot of its run.", REFRESH, self.view)
        return TriggerEvent({"view": self.view})  # type: ignore[no-untyped-call]

    def _succeeded(self, outcome: Mapping[str, Any]) -> TriggerEvent:
        said = shown(outcome)
        rows = f"{said['rows_inserted'] or 0:,} rows inserted, {said['rows_deleted'] or 0:,} deleted"
        reason = f" ({said['reason']})" if said["reason"] else ""
        self.log.info("View %r: %s, %s, %.1f s%s", self.view, said["mode"] or "done", rows, said["seconds"] or 0.0, reason)
        return TaskSuccessEvent(xcoms={"return_value": said})

    def _failed(self, message: str) -> TriggerEvent:
        self.log.error("%s", message)
        return TaskFailedEvent()


def _outcome(answer: Any, view: str) -> dict[str, Any] | None:
    """The outcome of a view in the answer of a refresh; None if there is none yet."""
    found = answer.get("views", {}).get(view) if isinstance(answer, dict) else None
    return dict(found) if found else None


async def _together(key: tuple[str, str], seconds: float, ask: Callable[[], Awaitable[Look]]) -> Look:
    """What was asked about a run, at most twice in so many seconds: a group may have hundreds of views."""
    at, asked = _looks.get(key, (0.0, None))
    if asked is None or (asked.done() and time.monotonic() - at > seconds / 2):
        asked = asyncio.ensure_future(ask())
        _looks.pop(key, None)
        _looks[key] = (time.monotonic(), asked)
        while len(_looks) > _MOST_RUNS:
            del _looks[next(iter(_looks))]
    found: Look = await asyncio.shield(asked)
    return found
