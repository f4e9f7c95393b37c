"""A trigger that fires when a Delta table has a new version, without a JVM; views that read the same table share it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from lake.delta.newest_version import newest_version
from lake.errors import SourceError

_SEEN = "version"


class NewVersion(BaseEventTrigger):
    """Fires with `{"table", "version"}` when the newest version of the table at `path` differs from that of the last event, and at the
    first start. It polls every `seconds`. Airflow stores the version with the asset, so a restart finds versions committed meanwhile."""

    def __init__(self, table: str, path: str, seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.table, self.path, self.seconds = table, path, seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {"table": self.table, "path": self.path, "seconds": self.seconds}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        store = self.asset_state_store
        found = await store.aget(_SEEN) if store is not None else None
        seen = found if isinstance(found, int) else None
        reported = ""
        while True:
            version = seen
            try:
                version = await asyncio.to_thread(newest_version, self.path, seen)
                reported = ""
            except SourceError as error:  # the table does not exist yet, or its storage is not available
                if str(error) != reported:
                    self.log.warning("%s", error)
                reported = str(error)
            if version != seen:
                yield TriggerEvent({"table": self.table, "version": version})  # type: ignore[no-untyped-call]
                seen = version
                if store is not None:
                    await store.aset(_SEEN, version)
            await asyncio.sleep(self.seconds)
