"""Formats versions and metrics for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def versions_text(numbers: Mapping[str, int]) -> str:
    """`bid@57, auction@3`"""
    return ", ".join(f"{table}@{number}" for table, number in sorted(numbers.items()))


def path_texts(said: Mapping[str, Any]) -> dict[str, str]:
    """The metrics of a real-time path that are not plain numbers, formatted: `at`, `latency`, `hits`. `said`: its metrics as JSON."""
    return {
        "at": versions_text(said["versions"]),
        "latency": " / ".join("-" if value is None else f"{value:.1f} s" for value in said["latency_seconds"].values()),
        "hits": ", ".join(f"{source} {rate:.0%}" for source, rate in said["hit_rates"].items()),
    }
