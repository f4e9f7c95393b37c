"""Refreshes several views in one application to one snapshot, which the first attempt of a scheduled run chooses.

    pin (first attempt, put-if-absent) → refresh each view after the views that it reads → check → report

A later attempt finds the same pin, so it ends at the same snapshot; a view that is already there is not refreshed. If a view fails, the
views that read it are skipped, and no others. The results are stored under the run's name, beside the views, where a scheduler reads them
without Spark.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lake.config.models import PIN, run_file, whole_run
from lake.core.results import RunResult, ViewOutcome
from lake.core.stamp import Stamp
from lake.delta.sidecar import Folder
from lake.delta.tables import pin_at
from lake.errors import ConcurrencyError, ExpiredError, SourceError, TargetError
from lake.lakehouse import Lakehouse
from lake.operations import development
from lake.operations.in_parallel import Ordered, side_by_side, workers
from lake.operations.no_changes import nothing_done
from lake.spark.failures import as_lake_error, is_transient, root_cause, safely
from lake.views.inputs import Until, check_named, ends, versions_at

Checker = Callable[[Lakehouse, str], tuple[Mapping[str, Any], ...]]


_WRITTEN_WITHIN = 60
"""Seconds in which a writer that lives has written its pin, which is one small file."""


class Run:
    """The files of one run: `<name>.pin.json`, the snapshot that is written once, and `<name>.json`, the results so far.

    A run `<name>::<part>` goes to the snapshot of the run `<name>`, if that has one, and has results of its own.
    """

    def __init__(self, lake: Lakehouse, name: str) -> None:
        self.name, self._whole = run_file(name), run_file(whole_run(name))
        self._folder = Folder(lake.spark, lake.config.runs_path)

    def pinned(self, choose: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """The pin of the run; chosen and written if no attempt has written one.

        Only a missing file means that there is no pin. A file that can't be read is an error, since another attempt may have refreshed
        views to the snapshot in it. There is one exception: a file that is empty or ends in the middle of its JSON, and was not written to
        for a minute. It was never complete, and its writer was killed: a pin is one small write. That writer had refreshed nothing, since
        an attempt reads its pin back before it refreshes. Such a file is replaced.

        Raises ConcurrencyError if another attempt may be writing the file, and SourceError if it can't be read.
        """
        name = f"{self._whole}{PIN}"
        text = self._read(name)
        if text is None and self._whole != self.name:
            name = f"{self.name}{PIN}"
            text = self._read(name)
        if text is None:
            if self._folder.create(name, json.dumps(choose())):
                return self._complete(name)
            text = self._read(name)  # another attempt was first
        if text is not None and _is_torn(text):
            if time.time() - self._folder.written(name) < _WRITTEN_WITHIN:
                place = f"{self._folder.path}/{name}"
                raise ConcurrencyError(f"{place} is incomplete: another attempt of this run may be writing it. Retry in a minute.")
            self._folder.replace(name, json.dumps(choose()))
        return self._complete(name)

    def store(self, result: Any) -> None:
        """Store the results of the run so far."""
        self._folder.replace(f"{self.name}.json", json.dumps({"told": datetime.now(UTC).isoformat(), "answer": result}, default=str))

    def _complete(self, name: str) -> dict[str, Any]:
        """The pin in the file. Raises SourceError if the file has none."""
        text = self._read(name)
        try:
            return dict(json.loads(text or ""))
        except ValueError as error:
            raise self._unreadable(name, "it is no pin of a run") from error

    def _read(self, name: str) -> str | None:
        """The text of a file, None if there is no such file. Raises SourceError if it can't be read."""
        try:
            if not self._folder.written(name):
                return None
            try:
                return self._folder.read(name)
            except ValueError:  # it does not match its checksum, which only local files have: half-written, or damaged
                text = Path(re.sub(r"^file:/*", "/", self._folder.path), name).read_text(encoding="utf-8")
                if not _is_torn(text):
                    raise
                return text
        except Exception as error:
            raise self._unreadable(name, root_cause(error)) from error

    def _unreadable(self, name: str, reason: str) -> SourceError:
        return SourceError(
            f"{self._folder.path}/{name}, which holds the snapshot of this run, can't be read ({reason}). Retry; or delete the file, "
            f"and the next attempt chooses a new snapshot."
        )


def _is_torn(text: str) -> bool:
    """Whether a text is the start of a JSON object, but not all of it (a pin has no braces in its names)."""
    return not text or (text.startswith("{") and text.count("{") > text.count("}"))


@dataclass(frozen=True)
class GroupRefresh:
    """Refreshes several views to one snapshot.

    `until`: the snapshot of the base tables (newest for those not named), chosen at a run's first attempt; `checker`: checks a view after
    its refresh, and returns the events of its findings; `on_view`: called with each outcome, in the order in which the refreshes end;
    `profile`: measure each refresh, one after the other, because Spark's counters are those of all threads; `parallel`: how many views at
    once (default: as configured).
    """

    lake: Lakehouse
    views: Sequence[str]
    until: Until
    checker: Checker | None
    on_view: Callable[[ViewOutcome], None]
    profile: bool = False
    parallel: int | None = None
    _checking: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def run(self, run: Run | None = None) -> RunResult:
        """Refresh each view. Raises LakeError if the snapshot can't be read; an error of one view is in its outcome."""
        if run is None and self.until is None and self.checker is None and not self.profile and (nothing := self._nothing()) is not None:
            return nothing
        order = self.lake.in_order(self.views)
        pin = run.pinned(lambda: self._chosen(order)) if run is not None else self._chosen(order)
        name = run.name if run is not None else ""

        def ended(view: str, outcomes: Mapping[str, ViewOutcome]) -> None:
            self.on_view(outcomes[view])
            if run is not None:
                run.store(RunResult(name, pin["until"], tuple(outcomes.values())).to_json())

        many = 1 if self.profile else workers(self.parallel, self.lake.config.parallel)
        ordered = Ordered(order, self.lake.reads)
        outcomes = side_by_side(ordered, lambda view, read: self._outcome(view, pin, read), many, self.lake.spark, ended)
        return RunResult(name, pin["until"], tuple(outcomes.values()))

    def _nothing(self) -> RunResult | None:
        """The result if no view has anything to do and this can be determined without a JVM; else None."""
        stamps: dict[str, Stamp] = {}
        for view in self.views:
            stamp = self.lake.unchanged(view)
            if stamp is None:
                return None
            stamps[view] = stamp
        found = nothing_done(self.lake.config, stamps)
        for outcome in found.outcomes:
            self.on_view(outcome)
        return found

    def _chosen(self, order: Sequence[str]) -> dict[str, Any]:
        """The snapshot that the run refreshes to, without tables that can't be read: the views that read them report the error later."""
        bases = self.lake.bases(order)
        if isinstance(self.until, Mapping):
            check_named(self.until, bases)
        until: dict[str, int] = {}
        for table in bases:
            with suppress(SourceError, ExpiredError):
                until |= self._asked(table)
        return {"until": until, "before": {view: self._published(view) for view in order}}

    def _asked(self, table: str) -> dict[str, int]:
        """The version of a table that the run refreshes to. Raises SourceError or ExpiredError if it can't be read."""
        return versions_at({table: self.lake.source_head(table)}, self._wanted(table), others="newest")

    def _wanted(self, table: str) -> Until:
        """The part of `until` that is about a table."""
        if not isinstance(self.until, Mapping):
            return self.until
        return {table: self.until[table]} if table in self.until else None

    def _published(self, view: str) -> dict[str, int]:
        """The versions of the base tables that the view was built from; none if it has not been built, or somebody else wrote its table."""
        with suppress(TargetError):
            stamp = self.lake.stamp(view)
            return dict(stamp.answers_for) if stamp is not None else {}
        return {}

    def _outcome(self, view: str, pin: Mapping[str, Any], read: Mapping[str, ViewOutcome]) -> ViewOutcome:
        """Refresh a view and check it. `read`: the outcomes of the views that it reads."""
        since, failed, result, events = pin["before"].get(view, {}), None, None, tuple[Mapping[str, Any], ...]()
        broken = [name for name, outcome in read.items() if outcome.state != "done"]
        if broken:
            error = f"View {view!r} was left as it is: it reads view {broken[0]!r}, which failed."
            return ViewOutcome(view, "skipped", since, since, error=error, exit_code=1)
        try:
            pinned = self._pinned(view, pin["until"])
            to = self._to(view, pinned)
            older = [table for table, number in to.items() if number > pinned[table]]
            result = self.lake.refresh(view, to, profile=self.profile)
            if older and result.mode == "none":
                result = replace(result, reason=f"the view is already at a newer snapshot of {', '.join(older)}")
            if self.checker is not None:
                with self._checking:  # checks of two views store results of the same tables, and read them back
                    events = self.checker(self.lake, view)
        except Exception as error:  # one view's failure must not stop the others
            failed, events = error, getattr(error, "events", ())
        until = self._published(view)
        at_pin = all(pin["until"].get(table, number) == number for table, number in until.items())
        moved = until != since and (at_pin or (result is not None and result.mode != "none"))
        if failed is None:
            return ViewOutcome(view, "done", since, until, result, moved, events=events)
        said = str(as_lake_error(failed, f"Refreshing view {view!r}", safely(lambda: self.lake.shown_of(view))))
        return ViewOutcome(view, "failed", since, until, result, moved, said, getattr(failed, "exit_code", 1), is_transient(failed), events)

    def _pinned(self, view: str, until: Mapping[str, int]) -> dict[str, int]:
        """The run's snapshot, completed by tables of the view that could not be read when the snapshot was chosen.

        Raises as `_asked`, unless the view has already processed that version or a newer one.
        """
        read, found = self._published(view), dict(until)
        for table in self.lake.bases([view]):
            if table not in until:
                try:
                    found |= self._asked(table)
                except ExpiredError:
                    if table not in read or not self._is_as_new(table, read[table]):
                        raise
                    found[table] = read[table]
        return found

    def _is_as_new(self, table: str, number: int) -> bool:
        """Whether a version of a table is at least as new as the one that the run refreshes to."""
        wanted = ends(self._wanted(table), [table])[table]
        return number >= wanted if isinstance(wanted, int) else pin_at(self.lake.source_head(table), table, number).time >= wanted

    def _to(self, view: str, pinned: Mapping[str, int]) -> dict[str, int]:
        """The versions that the view is refreshed to, none older than those it has processed. Tables that are read by views below it are
        left out: their versions follow from those views."""
        reads, read = self.lake.reads(view), self._published(view)
        parents = {table for name in reads if name in self.lake.config.views for table in self._published(name)}
        parents |= development.held(self.lake, view).keys() - (self.until.keys() if isinstance(self.until, Mapping) else set())
        return {table: max(number, read.get(table, number)) for table, number in pinned.items() if table in reads and table not in parents}
