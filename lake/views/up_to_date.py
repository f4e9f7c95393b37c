"""Whether a refresh is a no-op, found out by a Delta reader in Python, so that no JVM is started for it.

It is if the newest commit of the view's table carries a stamp, the view's and the session's settings are those of that stamp, and every
table that the stamp names is still the same table at the same version. Whatever can't be decided here is left to the refresh itself,
and so is every table that is not in a folder of this machine: its reader would want credentials of its own.
"""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlparse

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lake.config.models import Config
from lake.core.phases import phase
from lake.core.snapshots import Version
from lake.core.stamp import Stamp
from lake.delta.local_log import LocalTable, UndecidedError
from lake.errors import LakeError
from lake.spark.session_digest import definition_digest


@phase("read logs")
def unchanged(config: Config, view: str, session: str | None = None) -> Stamp | None:
    """The stamp of a view that is as new as its sources, None where it is not, or where that can't be decided. Raises ConfigError.

    `session`: the digest of the session that would refresh it; by default that of one which this process would make.
    """
    if config.view(view).function is not None:  # what it calls is written elsewhere
        return None
    try:
        table = _table(config.view_path(view))
        if table is None or table.metadata().configuration.get("lakejoin.view") != view:
            return None
        stamp = Stamp.from_json(table.history(1)[0].get("userMetadata"))
        if stamp is None or stamp.view != view or stamp.base != table.version() - 1 or not stamp.fingerprint.get("text"):
            return None
        same = stamp.fingerprint["text"] == definition_digest(view, config, list(stamp.snapshot), session)
        return stamp if same and all(_newest(config, name) == version for name, version in stamp.snapshot.versions.items()) else None
    except (LakeError, DeltaError, OSError, ValueError, LookupError):
        return None


def committed_until(config: Config, stamp: Stamp, until: datetime) -> bool:
    """Whether the versions of tables that a view was built from were committed at a time or before it, whichever clock is asked."""
    try:
        read = {name: number for name, number in stamp.snapshot.items() if name in config.tables}
        return all(LocalTable.open(config.path_of(name)).latest_time(number) <= until for name, number in read.items())
    except (UndecidedError, LookupError):
        return False


def _newest(config: Config, name: str) -> Version | None:
    """The version of a table, or of a view's table."""
    table = _table(config.path_of(name))
    return None if table is None else Version(str(table.metadata().id), table.version())


def _table(path: str | None) -> DeltaTable | None:
    if path is None or urlparse(path).scheme not in ("", "file"):
        return None
    return DeltaTable(urlparse(path).path)
