"""An event when a Delta table has a new version: one watch a table, whatever number of views read it, and no JVM."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from lake.delta.newest_version import newest_version
from lake.errors import SourceError

_SEEN = "version"


class NewVersion(BaseEventTrigger):
    """Fires with `{"table", "version"}` when the table at `path` has another newest version than at the last event, looked at every
    `seconds`; at the first start, too. The version is kept with the asset, so that what came while nothing ran is found on restart."""

    def __init__(self, table: str, path: str, seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.table, self.path, self.seconds = table, path, seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {"table": self.table, "path": self.path, "seconds": self.seconds}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        kept = self.asset_state_store
        found = await kept.aget(_SEEN) if kept is not None else None
        seen = found if isinstance(found, int) else None
        wrong = ""
        while True:
            version = seen
            try:
                version = await asyncio.to_thread(newest_version, self.path, seen)
                wrong = ""
            except SourceError as error:  # not there yet, or not to be reached just now
                if str(error) != wrong:
                    self.log.warning("%s", error)
                wrong = str(error)
            if version != seen:
                yield TriggerEvent({"table": self.table, "version": version})  # type: ignore[no-untyped-call]
                seen = version
                if kept is not None:
                    await kept.aset(_SEEN, version)
            await asyncio.sleep(self.seconds)
