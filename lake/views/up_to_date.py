"""Whether a refresh is a no-op, found out from logs in folders of this machine, so that no JVM is started for it.

It is if nobody has changed the view's table since it was published, the view's and the session's settings are those of its stamp, and every
table that the stamp names is still the same table at the same version. Whatever can't be decided here is left to the refresh itself,
and so is every table elsewhere: its reader would want credentials of its own.
"""

from __future__ import annotations

from datetime import datetime

from lake.config.models import Config
from lake.core.phases import phase
from lake.core.stamp import Stamp
from lake.delta.local_log import LocalTable, UndecidedError
from lake.errors import LakeError
from lake.views.local_stamps import LocalStamps


@phase("read logs")
def unchanged(config: Config, view: str, session: str | None = None) -> Stamp | None:
    """The stamp of a view that is as new as its sources, None where it is not, or where that can't be decided. Raises ConfigError.

    `session`: the digest of the session that would refresh it; by default that of one which this process would make.
    """
    config.view(view)
    try:
        stamps = LocalStamps(config, session)
        stamp = stamps.own_stamp(view)
        as_read = all(stamps.table(name).version == version for name, version in stamp.snapshot.versions.items())
        return stamp if as_read else None
    except (LakeError, UndecidedError, OSError, ValueError, LookupError):
        return None


def committed_until(config: Config, stamp: Stamp, until: datetime) -> bool:
    """Whether the versions of tables that a view was built from were committed at a time or before it, whichever clock is asked."""
    try:
        read = {name: number for name, number in stamp.snapshot.items() if name in config.tables}
        return all(LocalTable.open(config.path_of(name)).latest_time(number) <= until for name, number in read.items())
    except (UndecidedError, LookupError):
        return False
