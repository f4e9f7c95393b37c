"""The trigger fires once for each new version, for versions committed while nothing ran, and waits for a table that does not exist yet."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from airflow.triggers.base import TriggerEvent
from deltalake import DeltaTable, write_deltalake

from lake.airflow.triggers import NewVersion
from lake.delta import newest_version as heads
from lake.delta.newest_version import newest_version
from lake.errors import SourceError


class Store:
    """Stands for what Airflow stores with an asset."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    async def aget(self, key: str) -> Any:
        return self.values.get(key)

    async def aset(self, key: str, value: Any) -> None:
        self.values[key] = value


def commit(table: Path) -> None:
    write_deltalake(str(table), pa.table({"id": [1]}), mode="append")


def watch(table: Path, store: Store) -> AsyncIterator[TriggerEvent]:
    trigger = NewVersion("bid", str(table), 0.01)
    path, arguments = trigger.serialize()
    assert path == "lake.airflow.triggers.NewVersion"
    again = NewVersion(**arguments)
    again.asset_state_store = store  # type: ignore[assignment]
    return again.run()


async def fired(events: AsyncIterator[TriggerEvent], seconds: float = 5.0) -> Any:
    return (await asyncio.wait_for(anext(events), seconds)).payload


def test_each_new_version_fires_once_and_versions_committed_meanwhile_on_restart(tmp_path: Path) -> None:
    async def history() -> None:
        table, store = tmp_path / "bid", Store()
        commit(table)
        events = watch(table, store)
        assert await fired(events) == {"table": "bid", "version": 0}
        commit(table)
        assert await fired(events) == {"table": "bid", "version": 1}
        with pytest.raises(asyncio.TimeoutError):
            await fired(events, 0.3)
        assert store.values == {"version": 1}
        with pytest.raises(asyncio.TimeoutError):  # started again, with nothing new
            await fired(watch(table, store), 0.3)
        commit(table)
        commit(table)
        assert await fired(watch(table, store)) == {"table": "bid", "version": 3}

    asyncio.run(history())


def test_an_event_that_was_not_stored_is_sent_again(tmp_path: Path) -> None:
    async def history() -> None:
        table, store = tmp_path / "bid", Store()
        commit(table)
        await fired(watch(table, store))  # the process died before it went on
        assert await fired(watch(table, store)) == {"table": "bid", "version": 0}

    asyncio.run(history())


def test_the_trigger_waits_for_a_table_that_does_not_exist_yet(tmp_path: Path) -> None:
    async def history() -> None:
        events = watch(tmp_path / "bid", Store())
        waiting = asyncio.ensure_future(fired(events))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        commit(tmp_path / "bid")
        assert (await waiting)["version"] == 0

    asyncio.run(history())


def test_the_newest_version_is_found_with_and_without_knowing_the_last(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for _ in range(5):
        commit(table)
    assert [newest_version(str(table), seen) for seen in (None, 0, 3, 4)] == [4, 4, 4, 4]
    assert newest_version(f"file://{table}") == 4


def test_after_many_commits_the_log_is_listed_instead_of_one_request_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, requests, exists = tmp_path / "t", [], heads._exists
    for _ in range(60):
        commit(table)
    monkeypatch.setattr(heads, "_exists", lambda *arguments: requests.append(arguments[2]) or exists(*arguments))
    assert newest_version(str(table), 0) == 59
    assert len(requests) <= 1 + heads._MOST_STEPS
    requests.clear()
    assert newest_version(str(table), 59) == 59
    assert requests == [59, 60]


def test_old_commits_that_were_cleaned_up_are_not_missed(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for _ in range(4):
        commit(table)
    DeltaTable(str(table)).create_checkpoint()
    for number in range(3):
        (table / "_delta_log" / f"{number:020}.json").unlink()
    assert [newest_version(str(table), seen) for seen in (None, 1, 3)] == [3, 3, 3]
    (table / "_delta_log" / f"{3:020}.json").unlink()  # only the checkpoint is left
    assert newest_version(str(table), 3) == 3


def test_a_table_made_again_starts_over(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for _ in range(4):
        commit(table)
    shutil.rmtree(table)
    commit(table)
    assert newest_version(str(table), 3) == 0


@pytest.mark.parametrize("place", ["nowhere", "empty", "no://scheme"])
def test_what_is_no_table_is_an_error_that_names_it(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty" / "_delta_log").mkdir(parents=True)
    path = place if ":" in place else str(tmp_path / place)
    with pytest.raises(SourceError, match=place):
        newest_version(path)
