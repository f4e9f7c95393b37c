"""The state of a view in one word: each cause, what comes first, and what to run."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from lake.core.results import BELOW_UNBUILT, SourceStatus
from lake.delta.identity import _MEANT
from lake.errors import DefinitionChangedError, TargetError
from lake.quality.findings import Finding
from lake.quality.health import Health
from lake.quality.view_status import STATES, view_statuses

DAY = 86_400.0
ROW = SourceStatus("v", "a", 3, 3, 0, None, "data files", "", 7 * DAY)
BEHIND = replace(ROW, newest=5, lag=2, expires_in=5 * DAY)
STAMP = SimpleNamespace(started=datetime(2024, 1, 1, tzinfo=UTC).timestamp(), mode="incremental")
NOW = datetime.now(UTC)
FINDING = Finding(
    "F1", "opened", "critical", "v", "exactness", "rows differ", "", NOW, NOW, 1.0, "", 1, None, "", None, "a bug", "lakejoin verify v", ""
)
WRONG = Health("bad", "1 rows differ from the query (just now)", (FINDING,))


class Lake:
    """What the state depends on besides the rows: the stamp, and whether the definition has changed."""

    def __init__(self, stamp: Any = STAMP, changed: Exception | None = None, on_change: str = "error") -> None:
        self._stamp, self._changed = stamp, changed
        self.config = SimpleNamespace(view=lambda view: SimpleNamespace(on_definition_change=on_change))

    def stamp(self, view: str) -> Any:
        if isinstance(self._stamp, Exception):
            raise self._stamp
        return self._stamp

    def is_shared(self, view: str) -> bool:
        return False

    def refuse_changed_definition(self, stamp: Any) -> None:
        if self._changed is not None:
            raise self._changed


def status(lake: Any, *rows: SourceStatus, path: Any = None, health: Health | None = None) -> Any:
    (found,) = view_statuses(lake, rows or (ROW,), {"v": path} if path else {}, {"v": health} if health else {})
    return found


def test_a_view_with_nothing_to_read_is_up_to_date() -> None:
    found = status(Lake(SimpleNamespace(started=time.time() - 7300, mode="incremental")))
    assert (found.state, found.needs_somebody, found.behind, found.command) == ("up to date", False, None, "")
    assert found.last_refresh == "2 hours ago, incremental"


def test_a_view_is_behind_since_its_oldest_unread_change() -> None:
    older = replace(BEHIND, source="b", expires_in=4 * DAY)
    found = status(Lake(), BEHIND, older, ROW)
    assert (found.state, found.needs_somebody, found.behind) == ("behind", False, 3 * DAY)


def test_one_that_was_never_built_is_no_error() -> None:
    found = status(Lake(stamp=None), replace(ROW, published=None, lag=None))
    assert (found.state, found.needs_somebody, found.last_refresh) == ("not built", False, "-")


@pytest.mark.parametrize("way", ["not known", "another table"])
def test_what_the_next_refresh_can_not_use_comes_first(way: str) -> None:
    broken = replace(BEHIND, way=way, advice="its table was written by someone else", expires_in=-1.0)
    found = status(Lake(stamp=TargetError("written by someone else")), ROW, broken, health=WRONG, path={"state": "killed"})
    assert (found.state, found.needs_somebody, found.problem) == ("failed", True, "its table was written by someone else")


def test_the_command_is_the_one_that_the_error_says_to_run() -> None:
    advised = replace(ROW, way="not known", advice='Version 3 was written by someone else. Run "lakejoin --env dev rebuild v" to mend it.')
    assert status(Lake(), advised).command == "lakejoin --env dev rebuild v"
    assert status(Lake(), replace(advised, advice="The folder has no Delta table.")).command == "lakejoin refresh v"
    assert status(Lake(), replace(advised, advice=f"a was replaced. {_MEANT}")).command == "lakejoin rebuild v"


def test_a_built_view_on_one_that_is_not_built_is_behind() -> None:
    below = SourceStatus("v", "a", None, None, None, None, BELOW_UNBUILT)
    assert (status(Lake(), below).state, status(Lake(), below).command) == ("behind", "lakejoin refresh a")
    assert status(Lake(stamp=None), below).state == "not built"


def test_changes_that_can_no_longer_be_read_need_a_rebuild() -> None:
    found = status(Lake(), replace(BEHIND, expires_in=0.0))
    assert (found.state, found.command, "a after version 3" in found.problem) == ("expired", "lakejoin rebuild v", True)
    assert status(Lake(), replace(ROW, expires_in=-1.0)).state == "up to date"  # nothing is unread


def test_a_changed_definition_is_refused_unless_it_is_rebuilt_by_itself() -> None:
    changed = DefinitionChangedError("the definition has changed")
    assert (status(Lake(changed=changed), BEHIND).state, status(Lake(changed=changed), BEHIND).command) == ("refused", "lakejoin rebuild v")
    assert status(Lake(changed=changed, on_change="rebuild"), BEHIND).state == "behind"
    assert status(Lake(changed=TargetError("gone"))).state == "failed"


def test_a_critical_finding_is_wrong_and_a_snoozed_one_or_a_warning_is_not() -> None:
    found = status(Lake(), health=replace(WRONG, open=(FINDING, replace(FINDING, id="F2"))))
    assert (found.state, found.command, found.problem.endswith("(and 1 more)")) == ("wrong", "lakejoin verify v", True)
    snoozed = replace(FINDING, snoozed=NOW + timedelta(days=1))
    warning = replace(FINDING, severity="warning")
    assert status(Lake(), health=replace(WRONG, open=(snoozed, warning))).state == "up to date"


@pytest.mark.parametrize("state", ["killed", "failed"])
def test_a_real_time_path_that_does_not_run_is_stopped(state: str) -> None:
    found = status(Lake(), path={"state": state, "error": "no space"})
    assert (found.state, found.command, "no space" in found.problem) == ("stopped", "lakejoin realtime v", True)
    assert status(Lake(), path={"state": "running"}).state == "up to date"
    assert status(Lake(), path={"state": "stopped"}).state == "up to date"  # by somebody


def test_the_worst_comes_first() -> None:
    rows = [replace(ROW, view="good"), replace(BEHIND, view="late"), replace(ROW, view="bad", way="not known", advice="x")]
    found = view_statuses(Lake(), rows, {}, {})  # type: ignore[arg-type]
    assert [one.view for one in found] == ["bad", "late", "good"]
    assert sorted((one.state for one in found), key=STATES.index) == [one.state for one in found]
