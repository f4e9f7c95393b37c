"""What each view's real-time path reported last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lake.core.kinds import LEASE_FOLDER, LEASE_RUNNING
from lake.delta.sidecar import Folder
from lake.lakehouse import Lakehouse
from lake.realtime.lease import holds, newest


def states(lake: Lakehouse, views: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What each view's real-time path said last, "killed" where it said that it runs and does not; nothing of views that have none."""
    eventual, found = lake.on("eventual"), {}
    for view in views:
        log = eventual.table_log(view)
        if log is not None:
            _, said = newest(Folder(lake.spark, f"{log.path}/{LEASE_FOLDER}"))
            killed = {"state": "killed"} if said.get("state") in LEASE_RUNNING and not holds(said) else {}
            found[view] = {**said, **killed}
    return found
