"""The last reported state of real-time paths whose tables lie on this machine, without a JVM: as lake.realtime.states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lake.config.models import Config
from lake.core.constants import LEASE_FOLDER, SUFFIXES
from lake.delta.lease import last_state
from lake.delta.local_folder import LocalFolder
from lake.delta.local_log import local_folder


def local_states(config: Config, views: Iterable[str]) -> dict[str, dict[str, Any]] | None:
    """The content of each view's newest lease; views without a real-time table are left out. None if a table is not on this machine."""
    found = {}
    for view in views:
        folder = local_folder(config.view_path(view + SUFFIXES["eventual"]))
        if folder is None:
            return None
        if LocalFolder(folder / "_delta_log").names("0"):
            found[view] = last_state(LocalFolder(folder / LEASE_FOLDER))
    return found
