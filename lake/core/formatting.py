"""Formats versions, times and metrics for people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_UNITS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}


def versions_text(numbers: Mapping[str, int]) -> str:
    """`bid@57, auction@3`"""
    return ", ".join(f"{table}@{number}" for table, number in sorted(numbers.items()))


def time_text(seconds: float) -> str:
    """A time in seconds since 1970: `2026-01-31 12:00:00`, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def duration_text(seconds: float) -> str:
    """A length of time in its largest unit: `3 hours`; empty if it is less than a minute."""
    return _in_units(seconds)[0] if seconds >= _UNITS["minute"] else ""


def length_text(seconds: float) -> str:
    """A length of time in its two largest units: `1 hour 30 minutes`."""
    parts = _in_units(abs(seconds))
    return ("-" if seconds < 0 and parts else "") + (" ".join(parts[:2]) or f"{abs(seconds):.3g} seconds")


def _in_units(seconds: float) -> list[str]:
    """A length of time in all of its units, the largest first; empty if it is less than a second."""
    parts = list[str]()
    for unit, size in _UNITS.items():
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number:.0f} {unit}{'s' if number > 1 else ''}")
    return parts


def size_text(size: float) -> str:
    """A number of bytes in its largest unit: `1.5 GB`, of a thousand MB each."""
    units = ["bytes", "kB", "MB", "GB", "TB", "PB"]
    while size >= 1_000 and len(units) > 1:
        size, units = size / 1_000, units[1:]
    return f"{size:,.0f} {units[0]}" if units[0] == "bytes" else f"{size:.3g} {units[0]}"


def counted(number: int, one: str, many: str = "") -> str:
    """`1 row`, `2,000 rows`"""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters, with dots where it is cut."""
    return text if len(text) <= most else f"{text[:most]}..."


def path_texts(said: Mapping[str, Any]) -> dict[str, str]:
    """The metrics of a real-time path that are not plain numbers, formatted: `at`, `latency`, `hits`. `said`: its metrics as JSON."""
    return {
        "at": versions_text(said["versions"]),
        "latency": " / ".join("-" if value is None else f"{value:.1f} s" for value in said["latency_seconds"].values()),
        "hits": ", ".join(f"{source} {rate:.0%}" for source, rate in said["hit_rates"].items()),
    }
