"""What a lake's logs say of a stream: when each source's versions came, and when the real-time table had processed them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.nexmark.realtime import VIEW
from lake.core.stamp import Stamp
from lake.realtime.metrics import quantile, quantiles

SOURCES = ("auction", "bid")
BIN = 10
"""Seconds of one point of a series."""
_COLD = 60.0


def cold(seconds: float) -> float:
    """For how many of the seconds of a run the follower's JVM is taken to be cold."""
    return min(_COLD, seconds / 2)


@dataclass(frozen=True)
class Commit:
    """A version of a table: when its file was there (seconds since 1970), and its metadata's text."""

    version: int
    time: float
    metadata: str | None


def commits(table: Path, newest_first: bool = False) -> Iterator[Commit]:
    """The commits in a table's log, oldest first unless told otherwise; each is read when it is asked for."""
    for file in sorted((table / "_delta_log").glob("*.json"), reverse=newest_first):
        if file.stem.isdigit():
            infos = (json.loads(line).get("commitInfo") for line in file.read_text().splitlines())
            yield Commit(int(file.stem), file.stat().st_mtime, next((i.get("userMetadata") for i in infos if i), None))


def newest(lake: Path) -> dict[str, int]:
    """The newest version of each source."""
    return {source: next(commits(lake / source, newest_first=True)).version for source in SOURCES}


def realtime_table(lake: Path) -> Path:
    return lake / "views" / f"{VIEW}__realtime"


def processed(found: Iterable[Commit]) -> Iterator[tuple[float, dict[str, int]]]:
    """Of commits of the real-time table, those that moved it on: when, and to which version of each source."""
    stamps = ((commit.time, Stamp.from_json(commit.metadata)) for commit in found)
    return ((at, {s: v.number for s, v in stamp.snapshot.versions.items()}) for at, stamp in stamps if stamp)


def reached(lake: Path) -> dict[str, int]:
    """The versions that the real-time table has processed; none before it is there."""
    return next((versions for _, versions in processed(commits(realtime_table(lake), newest_first=True))), {})


@dataclass(frozen=True)
class Stream:
    """What the logs of a lake say: when each source's versions came, and when the real-time table had processed them."""

    written: dict[str, dict[int, float]]
    processed: list[tuple[float, dict[str, int]]]

    @staticmethod
    def of(lake: Path) -> Stream:
        written = {source: {c.version: c.time for c in commits(lake / source)} for source in SOURCES}
        return Stream(written, list(processed(commits(realtime_table(lake)))))

    def latencies(self) -> list[tuple[float, float]]:
        """Of each version of a source that came while the path ran: when it came, and seconds until it was processed."""
        found, (_, done) = [], self.processed[0]
        for at, versions in self.processed[1:]:
            for source, number in versions.items():
                found += [(self.written[source][n], at - self.written[source][n]) for n in range(done[source] + 1, number + 1)]
            done = versions
        return sorted(found)

    def backlog(self, at: float) -> int:
        """How many versions were there and not processed."""
        there = sum(time <= at for versions in self.written.values() for time in versions.values())
        done = next((versions for time, versions in reversed(self.processed) if time <= at), self.processed[0][1])
        return there - sum(number + 1 for number in done.values())

    def summary(self, started: float, ended: float) -> dict[str, Any]:
        """Latency and backlog: after the cold first minute (of a run that lasts so long), and over time."""
        points = self.latencies()
        warm = [seconds for at, seconds in points if at - started >= cold(ended - started)]
        bins: dict[int, list[float]] = {}
        for at, seconds in points:
            bins.setdefault(int((at - started) // BIN) * BIN, []).append(seconds)
        series = [(at, quantile(v, 0.5), quantile(v, 0.95), self.backlog(started + at + BIN)) for at, v in sorted(bins.items())]
        waiting = [backlog for *_, backlog in series]
        thirds = len(waiting) // 3
        return {
            "latency": quantiles(warm),
            "latency_cold": quantiles([seconds for _, seconds in points]),
            "backlog_middle": statistics.mean(waiting[thirds : 2 * thirds] or waiting),
            "backlog_last": statistics.mean(waiting[2 * thirds :]),
            "series": series,
        }
