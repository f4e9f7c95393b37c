"""Whether a refresh is a no-op, found out by a Delta reader in Python, so that no JVM is started for it.

It is if the newest commit of the view's table carries a stamp, the view's and the session's settings are those of that stamp, and every
table that the stamp names is still the same table at the same version. Whatever can't be decided here is left to the refresh itself,
and so is every table that is not in a folder of this machine: its reader would want credentials of its own.
"""

from __future__ import annotations

from urllib.parse import urlparse

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lake.config.models import Config
from lake.core.phases import phase
from lake.core.snapshots import Version
from lake.core.stamp import Stamp
from lake.errors import LakeError
from lake.spark.session_digest import definition_digest


@phase("read logs")
def unchanged(config: Config, view: str) -> Stamp | None:
    """The stamp of a view that is as new as its sources, None where it is not, or where that can't be decided. Raises ConfigError."""
    if config.view(view).function is not None:  # what it calls is written elsewhere
        return None
    try:
        table = _table(config.view_path(view))
        if table is None or table.metadata().configuration.get("lakejoin.view") != view:
            return None
        stamp = Stamp.from_json(table.history(1)[0].get("userMetadata"))
        if stamp is None or stamp.view != view or stamp.base != table.version() - 1 or not stamp.fingerprint.get("text"):
            return None
        same = stamp.fingerprint["text"] == definition_digest(view, config, list(stamp.snapshot))
        return stamp if same and all(_newest(config, name) == version for name, version in stamp.snapshot.versions.items()) else None
    except (LakeError, DeltaError, OSError, ValueError, LookupError):
        return None


def _newest(config: Config, name: str) -> Version | None:
    """The version of a table, or of a view's table."""
    if name in config.views:
        path = config.view_path(name)
    else:
        declared = config.tables[name].path
        path = None if declared is None else config.source_path(declared)
    table = _table(path)
    return None if table is None else Version(str(table.metadata().id), table.version())


def _table(path: str | None) -> DeltaTable | None:
    if path is None or urlparse(path).scheme not in ("", "file"):
        return None
    return DeltaTable(urlparse(path).path)
