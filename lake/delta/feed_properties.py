"""What a table's properties say of its changes: how long they stay readable, and what they are read from. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

FEED = "delta.enableChangeDataFeed"
_DAY = timedelta(days=1)


def has_feed(properties: Mapping[str, str]) -> bool:
    """Whether the change data feed is on."""
    return properties.get(FEED, "false").lower() == "true"


def way_of(properties: Mapping[str, str]) -> str:
    """What a table's changes are read from: of the two, whichever is cheaper."""
    return "change data feed or data files" if has_feed(properties) else "data files"


def changes_kept(properties: Mapping[str, str]) -> timedelta:
    """How long a change stays readable: until its commit may be cleaned from the log, or its files vacuumed."""
    return min(_duration(properties, "delta.logRetentionDuration", 30), files_kept(properties))


def files_kept(properties: Mapping[str, str]) -> timedelta:
    """How long VACUUM keeps the files of old versions."""
    return _duration(properties, "delta.deletedFileRetentionDuration", 7)


def expires_in(
    properties: Mapping[str, str], since: int, until: int, committed_after: Callable[[int], datetime | None], now: datetime
) -> timedelta | None:
    """How long until the commits since+1..until may be cleaned from the log (or vacuumed); None if no commit is waiting.

    `committed_after`: when the first commit after a version was made, None if it is no longer in the log.
    """
    if since >= until:
        return None
    committed = committed_after(since)
    return timedelta(0) if committed is None else committed + changes_kept(properties) - now


def _duration(properties: Mapping[str, str], name: str, days: int) -> timedelta:
    """A Delta interval property such as `interval 30 days`; Delta allows no months or years in one."""
    words = properties.get(name, f"interval {days} days").lower().replace("interval", "").split()
    units = {"week": 7 * _DAY, "day": _DAY, "hour": _DAY / 24, "minute": _DAY / 1440, "second": _DAY / 86400}
    total = timedelta()
    for amount, unit in zip(words[::2], words[1::2], strict=False):
        total += float(amount) * units.get(unit.rstrip("s"), timedelta())
    return total
