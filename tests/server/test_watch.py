"""What `lakejoin serve --watch` refreshes and when, with a clock and tables of the test."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lake.config.groups import Group
from lake.config.loader import load
from lake.config.models import Config
from lake.errors import ConfigError, SourceError
from lake.server.queue import DrainingError, QueueFullError
from lake.server.request import Call, Request
from lake.server.watch import Watch

NOON = datetime(2026, 5, 1, 12, 0, 30, tzinfo=UTC).timestamp()
VIEWS: dict[str, Any] = {
    "v": {"query": "SELECT id FROM a", "refresh": "changes"},
    "w": {"query": "SELECT id FROM v", "refresh": "changes"},
    "hourly": {"query": "SELECT id FROM b", "schedule": "0 * * * *"},
    "by_hand": {"query": "SELECT id FROM b"},
}


@dataclass
class World:
    """Tables with versions, a clock, and requests that end when the test says."""

    folder: Path
    views: dict[str, Any] = field(default_factory=lambda: dict(VIEWS))
    versions: dict[str, int] = field(default_factory=lambda: {"a": 1, "b": 1, "v": 1})
    now: float = NOON
    sent: list[tuple[str, Request]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    full: bool = False
    broken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.watch = Watch(self.config, self.newest, self.submit, self.said.append, 5.0, lambda: self.now)

    def config(self) -> Config:
        tables = {name: {"path": name} for name in ("a", "b")}
        return load({"root": str(self.folder), "tables": tables, "views": self.views})

    def newest(self, config: Config, name: str, seen: int | None) -> int | None:
        if name in self.broken:
            raise KeyError(name)
        if name not in self.versions:
            raise SourceError(f"{name} is not there")
        return self.versions[name]

    def submit(self, group: Group) -> Request:
        if self.full:
            raise QueueFullError
        request = Request(Call("refresh", {"views": list(group.views)}, True, waits=False))
        self.sent.append((group.name, request))
        return request

    def look(self, ends: int | None = 0) -> list[str]:
        """Look once; the names of the groups that were refreshed, whose requests then end with this exit code (None: go on)."""
        before = len(self.sent)
        self.watch.look()
        new = self.sent[before:]
        for _, request in new if ends is not None else ():
            request.end(ends)
        return [name for name, _ in new]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_after_a_start_all_are_refreshed_once_and_views_without_a_schedule_never(world: World) -> None:
    assert world.look() == ["v", "w", "hourly"]
    assert world.look() == []


def test_a_new_version_of_a_source_refreshes_the_views_on_it(world: World) -> None:
    world.look()
    world.versions["a"] = 2
    assert world.look() == ["v"]
    world.versions["v"] = 2  # which it published
    assert world.look() == ["w"]
    world.versions["b"] = 2  # only the hourly view reads it
    assert world.look() == []


def test_what_comes_during_a_refresh_is_refreshed_after_it(world: World) -> None:
    world.look()
    world.versions["a"] = 2
    assert world.look(ends=None) == ["v"]
    world.versions["a"] = 3
    assert world.look() == []
    world.sent[-1][1].end(0)
    assert world.look() == ["v"]
    assert world.look() == []


def test_a_schedule_is_due_once_an_hour(world: World) -> None:
    world.look()
    world.now = NOON + 3569
    assert world.look() == []
    world.now = NOON + 3570  # 13:00:00
    assert world.look() == ["hourly"]
    world.now += 30
    assert world.look() == []
    world.now += 5 * 3600  # the machine slept: once, not five times
    assert world.look() == ["hourly"]
    assert world.look() == []


def test_a_failure_is_tried_again_later_and_later_and_said(world: World) -> None:
    world.views = {"v": VIEWS["v"]}
    assert world.look(ends=2) == ["v"]
    waits = []
    for _ in range(6):
        assert world.look() == []
        wait = 0
        while not world.look(ends=2):
            world.now += 10
            wait += 10
        waits.append(wait)
    assert waits == [30, 60, 120, 240, 480, 600]
    assert "v: failed, and is tried again in 30 s: exit code 2" in world.said[0]
    assert world.look() == []
    world.now += 600
    assert world.look(ends=0) == ["v"]
    world.versions["a"] = 9
    assert world.look(ends=2) == ["v"]
    assert world.look() == []
    assert world.said[-1].endswith("in 30 s: exit code 2")


def test_a_line_is_said_for_each_refresh(world: World) -> None:
    world.views = {"v": VIEWS["v"]}
    world.look(ends=None)
    request = world.sent[0][1]
    request.refreshes.append({"view": "v", "mode": "incremental", "rows_inserted": 1200, "rows_deleted": 1, "seconds": 0.42})
    request.end(0)
    world.look()
    assert world.said == ["2026-05-01 12:00:30 v: incremental, +1,200 -1 rows (0.4 s)"]


def test_a_table_that_comes_later_starts_its_view(world: World) -> None:
    world.views = {"v": VIEWS["v"]}
    del world.versions["a"]
    assert world.look(ends=2) == ["v"]
    assert world.look() == []
    world.now += 30
    assert world.look(ends=0) == ["v"]
    assert world.look() == []
    world.versions["a"] = 0
    assert world.look() == ["v"]


def test_a_full_queue_leaves_it_due(world: World) -> None:
    world.full = True
    assert world.look() == []
    world.full = False
    assert world.look() == ["v", "w", "hourly"]


def test_a_wrong_configuration_is_said_once_and_the_rest_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.views["bad"] = {"query": "SELECT 1 FROM a", "schedule": "at noon"}
    assert world.look() == ["v", "w", "hourly"]
    world.look()
    assert [text for text in world.said if "at noon" in text] == [
        "Group 'bad': `schedule`: 'at noon' is not a cron expression such as '*/5 * * * *' or '@daily'."
    ]

    def broken() -> Config:
        raise ConfigError("lakejoin.yml, line 1: not valid")

    monkeypatch.setattr(world.watch, "config", broken)
    assert world.look() == []
    assert world.look() == []
    assert world.said.count("lakejoin.yml, line 1: not valid") == 1
    monkeypatch.setattr(world.watch, "config", world.config)
    world.look()
    monkeypatch.setattr(world.watch, "config", broken)
    world.look()
    assert world.said.count("lakejoin.yml, line 1: not valid") == 2


def test_an_edited_configuration_is_followed(world: World) -> None:
    world.look()
    world.views["new"] = {"query": "SELECT id FROM a", "refresh": "changes"}
    assert world.look() == ["new"]
    del world.views["v"]
    world.views["w"] = {"query": "SELECT id FROM a", "refresh": "changes"}
    world.versions["a"] = 2
    assert world.look() == ["w", "new"]


def test_an_edited_schedule_is_followed_at_once(world: World) -> None:
    world.views = {"hourly": {**VIEWS["hourly"], "schedule": "@yearly"}}
    world.look()
    world.views = {"hourly": VIEWS["hourly"]}
    assert world.look() == []
    world.now = NOON + 3570
    assert world.look() == ["hourly"]
    world.views = {"hourly": {"query": "SELECT id FROM b", "refresh": "changes"}}
    assert world.look() == ["hourly"]
    assert world.look() == []
    world.versions["b"] = 2
    assert world.look() == ["hourly"]


def test_a_group_that_can_not_be_watched_stops_no_other(world: World) -> None:
    world.broken = {"a"}
    assert world.look() == ["w", "hourly"]
    world.look()
    assert world.said == ["Group 'v' can't be watched: KeyError: 'a'"]


def test_what_has_failed_for_weeks_is_still_tried_again(world: World) -> None:
    world.views = {"v": VIEWS["v"]}
    world.look(ends=2)
    world.watch._states["v"].failures = 2000
    assert world.look() == []
    world.now += 600
    assert world.look() == ["v"]


def test_the_watch_ends_with_the_server(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def ending(group: Group) -> Request:
        raise DrainingError

    monkeypatch.setattr(world.watch, "submit", ending)
    world.watch.seconds = 0.01
    world.watch.start()
    assert world.watch._thread is not None
    world.watch._thread.join(10)
    assert not world.watch._thread.is_alive()
    world.watch.end()
