"""Lets a view go on from a table that somebody else made: proves that the table's rows are the query's at a snapshot, then makes it the
view's, in one commit.

    find → refuse what is unfit → compare with the query at a snapshot → ask → move it to the view's place → commit

Nothing is written before the rows have been compared. The comparison is that of `verify`, and the commit is on the version compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lake.config.models import HIDDEN_PREFIX
from lake.core.adoption import Adoption, AdoptionState, RowsApart, Tried
from lake.core.sql import quoted
from lake.core.stamp import Stamp
from lake.delta.retention import changes_gone, is_of_a_file_gone
from lake.delta.tables import reason
from lake.errors import ConfigError, DefinitionError, ExpiredError, KeyViolationError, RowsDifferError, TargetError
from lake.operations import verify
from lake.operations.adopted_table import Foreign, at_its_place, find, place_of
from lake.operations.candidate_snapshots import MOST, candidates
from lake.operations.compare import against_query
from lake.refresh.adopted import AdoptRun
from lake.refresh.compute import Gate
from lake.refresh.decide import Decision
from lake.spark.failures import SPARK_ERRORS
from lake.spark.session import active_session, own_session
from lake.views.adoptable import changed, lacking, padded, refuse_other_columns, refuse_unfit
from lake.views.definition import Definition
from lake.views.inputs import Until, capture, ends
from lake.views.registry import OpenView, OpenViews
from lake.views.table import visible

_AT, _FIND, _REPAIR = "--at (in Python `at`)", "--verify-first (`verify_first=True`)", "--repair (`repair=True`)"
"""Options, as the command and as Python call them."""


@dataclass(frozen=True)
class Request:
    """What is asked of an adoption. `at`: versions of all base tables that the view reads, or a time; `verify_first`: find the snapshot (at
    the versions of `at`, of the tables that it names); `repair`: publish what differs; `gate`: the check before publishing; `say`: told
    what is being done; `may`: asked before anything is written."""

    view: str
    table: str | None
    at: Until
    repair: bool
    verify_first: bool
    dry_run: bool
    gate: Gate | None
    say: Callable[[str], None]
    may: Callable[[Adoption], bool]


def adopt(views: OpenViews, asked: Request) -> Adoption:
    """Adopt a table. Raises LakeError with what to do; the table is then as it was, at its place."""
    started = time.monotonic()
    if asked.at is None and not asked.verify_first:
        raise ConfigError(
            f"At which versions of its sources was the table of view {asked.view!r} computed? Nothing was written. Give them with {_AT}, "
            f"or let them be found with {_FIND}."
        )
    if asked.verify_first and asked.at is not None and not isinstance(asked.at, Mapping):
        raise ConfigError(f"Give a time with {_AT}, or let the snapshot be found with {_FIND}, not both. Nothing was written.")
    views.in_order([asked.view])
    tables = [name for name in views.reads(asked.view) if name in views.config.tables]
    ends(asked.at, tables, "at")  # raises for a table that it does not read, and for what is no time
    with views.opened(asked.view) as opened:  # no refresh of the view at the same time
        state = OpenView(own_session(views.spark), opened.functions)  # for what is run by plain Spark: temporary views of its tables
        with active_session(state.spark):
            found = _Adopting(views, state, asked, find(state.spark, views, asked.view, asked.table)).run()
    return replace(found, seconds=round(time.monotonic() - started, 3))


@dataclass(frozen=True)
class _Attempt:
    """The table as of one snapshot of the sources. `run`: what would be committed; `stamp`: that of the comparison."""

    run: AdoptRun
    stamp: Stamp

    @property
    def definition(self) -> Definition:
        return self.run.definition


class _Adopting:
    def __init__(self, views: OpenViews, state: OpenView, asked: Request, foreign: Foreign) -> None:
        self._views, self._state, self._asked, self._foreign = views, state, asked, foreign
        self._tried = list[Tried]()

    def run(self) -> Adoption:
        refuse_unfit(self._foreign.here, self._foreign.pinned)
        attempt, apart = self._found() if self._asked.verify_first else self._given()
        self._refuse_gone(attempt.run)
        found = self._adoption(attempt, apart)
        if not (apart.equal or self._asked.repair or self._asked.dry_run):
            self._refuse_differing(found)
        self._refuse_doubled(attempt.run)
        if self._asked.dry_run:
            return found
        if not self._asked.may(found):
            return replace(found, state="declined")
        if self._foreign.moves:
            self._asked.say(f"moving {found.table} to {found.place}")
        with at_its_place(self._state.spark, self._foreign) as pinned:
            self._asked.say("committing")
            _, inserted, deleted = replace(attempt.run, pinned=pinned).run()
        if attempt.run.whole and apart.equal:
            return replace(found, state="adopted", rows_rewritten=apart.rows)
        return replace(found, state="adopted", rows_inserted=inserted, rows_deleted=deleted)

    def _refuse_doubled(self, run: AdoptRun) -> None:
        try:
            run.refuse_doubled()
        except KeyViolationError as error:
            raise error.showing(self._views.shown(self._asked.view)) from error.__cause__

    # -- the snapshot -------------------------------------------------------------------------------------------------------

    def _given(self) -> tuple[_Attempt, RowsApart]:
        attempt = self._attempt(self._asked.at)
        if isinstance(self._asked.at, Mapping):
            self._refuse_unnamed(attempt, self._asked.at)
        self._asked.say(f"comparing {place_of(self._foreign.here)} with the query at {attempt.stamp.snapshot}")
        with self._readable(attempt):
            return self._compared(attempt)

    def _refuse_unnamed(self, attempt: _Attempt, at: Mapping[str, int]) -> None:
        inputs = attempt.run.decision.inputs
        unnamed = [name for name in inputs.pins if name not in at and name not in inputs.views and name not in inputs.bases]
        if unnamed:
            raise ConfigError(
                f"`at` does not name {', '.join(unnamed)}, which view {self._asked.view!r} reads as well. Nothing was written. Give the "
                f"version of each table, or let the others be found with {_FIND}."
            )

    def _found(self) -> tuple[_Attempt, RowsApart]:
        """The first of the likeliest snapshots that fits. Raises RowsDifferError where none does."""
        view, config, fixed = self._asked.view, self._views.config, dict(self._asked.at) if isinstance(self._asked.at, Mapping) else {}
        inputs = capture(self._state.spark, self._views.path, view, self._views.reads(view), fixed)
        free = {n: p for n, p in inputs.pins.items() if n in config.tables and n not in inputs.bases and n not in fixed}
        for number, at in enumerate(islice(candidates(free, self._foreign.pinned), MOST), 1):
            versions = {**fixed, **at}
            self._asked.say(f"trying snapshot {number} of at most {MOST}: {', '.join(f'{t}@{n}' for t, n in sorted(versions.items()))}")
            found = self._tried_at(versions)
            if found is not None:
                return found
            self._asked.say(f"    {self._tried[-1].found}")
        self._refuse_none_fits()
        raise AssertionError

    def _tried_at(self, at: dict[str, int]) -> tuple[_Attempt, RowsApart] | None:
        """The comparison at a snapshot that fits: first how many rows there are, then the rows."""
        try:
            attempt = self._attempt(at)
            with self._readable(attempt):
                rows = self._truth(attempt).count()
                if rows != self._rows:
                    self._tried.append(Tried(at, False, f"the query gives {rows:,} rows, the table has {self._rows:,}"))
                    return None
                attempt, apart = self._compared(attempt)
        except (ExpiredError, DefinitionError) as error:
            self._tried.append(Tried(at, False, str(error)))
            return None
        self._tried.append(Tried(at, apart.equal, str(apart)))
        return (attempt, apart) if apart.equal else None

    def _refuse_none_fits(self) -> None:
        view, said = self._asked.view, "\n".join(f"- {tried}" for tried in self._tried)
        raise RowsDifferError(
            f"{place_of(self._foreign.here)} does not have the rows of view {view!r} at any of the {len(self._tried)} snapshots that were "
            f"tried. Nothing was written.\n{said}\nIf it was computed at another snapshot, give that with {_AT}; if it is to be "
            f"corrected, give the snapshot that is nearest, and {_REPAIR}.",
            tuple(self._tried),
        )

    # -- the comparison -----------------------------------------------------------------------------------------------------

    def _attempt(self, at: Until) -> _Attempt:
        """What adopting at a snapshot would do. Raises LakeError where the table is unfit, or the snapshot can't be gone on from."""
        view, pinned = self._asked.view, self._foreign.pinned
        definition, inputs = self._views.prepare(view, self._state, at)
        decision = Decision(self._views.path, self._state.spark, definition, inputs, rebuild=False)
        refuse_other_columns(self._foreign.here, definition, pinned)
        char = padded(pinned)
        if char and not self._asked.repair:
            raise TargetError(
                f"{place_of(self._foreign.here)} can't be refreshed as it is: {char}. Nothing was written. Write it with a STRING instead, "
                f"or give the snapshot with {_AT}, and let all its rows be written again with {_REPAIR}."
            )
        decision.refuse_unwanted()
        run = AdoptRun(decision, pinned, bool(char or lacking(definition)), False, self._asked.gate)
        return _Attempt(run, run.stamp())

    def _refuse_gone(self, run: AdoptRun) -> None:
        """Raise ExpiredError where what came after a version can't be read any more, so that the view could not be refreshed from it."""
        inputs = run.decision.inputs
        for name, pin in inputs.pins.items():
            gone = "" if name in inputs.views else changes_gone(inputs.tables[name].head(self._state.spark), pin.version.number)
            if gone:
                raise ExpiredError(
                    f"View {run.definition.view!r} could not be refreshed from version {pin.version.number} of {name}: {gone}. Nothing was "
                    "written. Choose a newer version."
                )

    @contextmanager
    def _readable(self, attempt: _Attempt) -> Iterator[None]:
        try:
            yield
        except SPARK_ERRORS as error:
            if not is_of_a_file_gone(error) and "FileNotFound" not in str(error):
                raise
            raise ExpiredError(
                f"The sources of view {self._asked.view!r} can no longer be read at {attempt.stamp.snapshot} ({reason(error)}). Nothing "
                "was written. Give newer versions."
            ) from error

    @cached_property
    def _stored(self) -> DataFrame:
        """The table's rows."""
        return self._foreign.pinned.rows()

    @cached_property
    def _rows(self) -> int:
        """How many rows the table has."""
        count = self._foreign.pinned.count
        return self._stored.count() if count is None else count

    def _truth(self, attempt: _Attempt) -> DataFrame:
        """The rows of the query at the snapshot of an attempt, by plain Spark."""
        spark, view, pins = self._state.spark, self._asked.view, dict(attempt.run.decision.inputs.pins)
        for name in self._views.reads(view):
            if name not in pins:  # it is named, and nothing of it is read
                pins[name] = self._views.path.input(name).head(spark)
        tables = {name: visible(pinned.rows()) for name, pinned in pins.items()}
        return verify.from_scratch(spark, view, self._views.config, tables)

    def _apart(self, attempt: _Attempt) -> RowsApart:
        definition = attempt.definition
        stored = self._stored.select(*[F.col(quoted(c.name)) for c in definition.columns])
        key = () if any(n.startswith(HIDDEN_PREFIX) for n in definition.key_names) else definition.key_names
        truth = self._truth(attempt)
        found = against_query(self._views, attempt.stamp, truth, stored, key).sampled(self._views.shown(self._asked.view))
        if found.exact:
            return RowsApart(found.rows, 0, 0, rounding=str(found.rounding))
        samples = tuple((s.weight, s.row) for s in found.samples)
        by_key = None if found.paired is None else found.paired.as_row_changes(key)
        return RowsApart(found.rows, found.missing, found.surplus, samples, by_key, str(found.rounding))

    def _compared(self, attempt: _Attempt) -> tuple[_Attempt, RowsApart]:
        """How the rows differ, and what is to be done about it: the difference is published, and where rows of a view are found by all of
        their columns, also zeros of another sign than refreshes give them (`Definition.of_either_zero`)."""
        apart = self._apart(attempt)
        signs = attempt.definition.key is None and bool(attempt.definition.of_either_zero)
        return replace(attempt, run=replace(attempt.run, repair=signs or not apart.equal)), apart

    # -- what is said -------------------------------------------------------------------------------------------------------

    def _adoption(self, attempt: _Attempt, apart: RowsApart) -> Adoption:
        foreign, run = self._foreign, attempt.run
        here, own = place_of(foreign.here), place_of(foreign.own)
        changes = [f"it is moved from {here} to {own}"] if foreign.moves else []
        changes += changed(attempt.definition, foreign.pinned)
        if run.whole:
            again = "once more, as they are" if apart.equal else "again, as the query gives them"
            why = "; ".join(filter(None, (padded(foreign.pinned), lacking(attempt.definition))))
            changes.append(f"all its rows are written {again}, in new files: {why}")
        elif not apart.equal:
            changes.append(f"{apart.missing:,} rows are inserted and {apart.surplus:,} deleted, so that it has the rows of the query")
        state: AdoptionState = "equal" if apart.equal else "differs"
        number = foreign.pinned.version.number
        return Adoption(self._asked.view, state, here, own, number, attempt.stamp.snapshot, apart, tuple(changes), tried=tuple(self._tried))

    def _refuse_differing(self, found: Adoption) -> None:
        raise RowsDifferError(
            f"{found.table} does not have the rows of view {found.view!r} at {found.snapshot}: {found.apart}. Nothing was written. Give "
            f"the snapshot that it was computed at with {_AT}, let it be found with {_FIND}, or let the difference be published with "
            f"{_REPAIR}.",
            found,
        )
