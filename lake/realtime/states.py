"""The last reported state of each view's real-time path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lake.core.constants import LEASE_FOLDER
from lake.delta.lease import last_state
from lake.delta.sidecar import Folder
from lake.lakehouse import Lakehouse


def states(lake: Lakehouse, views: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The content of each view's newest lease, with the state "killed" if its process no longer runs.

    Views without a real-time table are left out.
    """
    eventual, found = lake.on("eventual"), {}
    for view in views:
        log = eventual.table_log(view)
        if log is not None:
            found[view] = last_state(Folder(lake.spark, f"{log.path}/{LEASE_FOLDER}"))
    return found
