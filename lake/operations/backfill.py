"""A view's history over a past range, recomputed in a table of its own, step by step: a replay.

    built at `since` → refreshed to the end of each step → ... → `until`

Each step is a published version of the view's replay table, whose stamp names the snapshot that it was built from. So a replay that was
stopped, killed or run twice continues with the first missing step, and each step can be read by its snapshot. The view's own table
has no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from lake.core.results import BackfillStep, RefreshResult
from lake.core.snapshots import Snapshot
from lake.core.stamp import Stamp
from lake.delta.commit_order import SourceCommit, in_order
from lake.delta.log import Log
from lake.delta.pinned import Pinned
from lake.delta.retention import missing_file, refuse_unreadable
from lake.delta.tables import Table, pin_at
from lake.errors import ConfigError, DefinitionChangedError, TargetError
from lake.views.inputs import Until, versions_at
from lake.views.table import Publication

_NEAREST = 3


class Views(Protocol):
    """What a replay asks of the lakehouse whose tables it makes, and the reader of old versions of any."""

    def refresh(self, view: str, until: Mapping[str, int], /) -> RefreshResult: ...
    def rebuild(self, view: str, until: Mapping[str, int], /) -> RefreshResult: ...
    def reads(self, view: str, /) -> list[str]: ...
    def stamp(self, view: str, /) -> Stamp | None: ...
    def history(self, view: str, /) -> Iterator[Publication]: ...
    def table_log(self, view: str, /) -> Log | None: ...


Judge = Callable[[str, Stamp], bool]
"""Whether a stamp of a view is of the definition that it has now."""


def steps(heads: Mapping[str, Pinned], since: Until, until: Until, step: int | timedelta) -> list[BackfillStep]:
    """The steps of a range of the base tables: the first is built at `since`, each other one takes `step` commits (of all tables, in
    the order of their times), or those of a length of time.

    `since`, `until`: versions of tables, or a time; tables that `since` does not name are taken as of the latest commit that it does,
    those that `until` does not name at their newest. Raises ConfigError, SourceError, or ExpiredError naming table and version.
    """
    check_step(step)
    first = versions_at(heads, since, others="as of")
    last = versions_at(heads, until, others="newest")
    for table, number in first.items():
        if number > last[table]:
            raise ConfigError(f"The range goes backwards: {table} from version {number} to {last[table]}. Give an `until` after `since`.")
    return [BackfillStep(None, first, 0, 0), *_between(heads, first, last, step)]


def ahead(heads: Mapping[str, Pinned], since: Mapping[str, int], until: Until, step: int | timedelta) -> list[BackfillStep]:
    """The steps of a view that has read `since` (nothing: it is yet to be built) up to `until`, none of them backwards; at least one.

    Raises as `steps` does.
    """
    check_step(step)
    last = {table: max(number, since.get(table, number)) for table, number in versions_at(heads, until, others="newest").items()}
    if since.keys() < last.keys():
        return [BackfillStep(None, last, 0, 0)]
    first = {table: since[table] for table in last}
    return list(_between(heads, first, last, step)) or [BackfillStep(first, last, 0, 0)]


def _between(
    heads: Mapping[str, Pinned], first: Mapping[str, int], last: Mapping[str, int], step: int | timedelta
) -> Iterator[BackfillStep]:
    ends = {table: pin_at(head, table, last[table]) for table, head in heads.items()}
    at = first
    for commits in _parts(in_order(ends, first), step):
        to = {**at, **{commit.source: commit.version for commit in commits}}
        yield BackfillStep(at, to, len(commits), sum(commit.rows for commit in commits))
        at = to


def check_step(step: int | timedelta) -> None:
    """Raise ConfigError for a step that is not positive."""
    if not (step > timedelta(0) if isinstance(step, timedelta) else step >= 1):
        raise ConfigError(f"`step` is a number of commits, 1 or more, or a length of time, not {step!r}.")


def refuse_gone(tables: Mapping[str, Table], heads: Mapping[str, Pinned], steps: Sequence[BackfillStep]) -> None:
    """Raise ExpiredError, naming table and version, where a step that is not `done` can't be made any more."""
    wanted = [step for step in steps if not step.done]
    for name, table in tables.items() if wanted else ():
        first, last = (wanted[0].since or wanted[0].until)[name], wanted[-1].until[name]
        refuse_unreadable(table, pin_at(heads[name], name, first), pin_at(heads[name], name, last), {step.until[name] for step in wanted})


def _parts(commits: Iterator[SourceCommit], step: int | timedelta) -> Iterator[list[SourceCommit]]:
    """The commits in parts of `step` commits, or of this length of time, beginning with the first commit."""
    part: list[SourceCommit] = []
    for commit in commits:
        full = commit.committed - part[0].committed >= step.total_seconds() if part and isinstance(step, timedelta) else len(part) == step
        if full:
            yield part
            part = []
        part.append(commit)
    if part:
        yield part


def each(
    steps: Sequence[BackfillStep], make: Callable[[BackfillStep], RefreshResult], on_step: Callable[[BackfillStep], None]
) -> list[BackfillStep]:
    """Make the steps that are not `done`, one after the other; `on_step` is called with each."""
    found = []
    for step in steps:
        found.append(step if step.done else replace(step, done=True, result=make(step)))
        on_step(found[-1])
    return found


@dataclass(frozen=True)
class Replay:
    """`order`: the view and the views that it reads, each after those that it reads itself; `bases`: the base tables below each; `restart`:
    make all steps again, whatever exists."""

    lake: Views
    view: str
    order: Sequence[str]
    bases: Mapping[str, Sequence[str]]
    current: Judge
    restart: bool

    def there(self, steps: Sequence[BackfillStep]) -> list[BackfillStep]:
        """The steps, with `done` where they have been made by the view's definition as it is now."""
        if self.restart:
            return list(steps)
        made = {frozenset(stamp.answers_for.items()): stamp for stamp in (made.stamp for made in self.lake.history(self.view))}
        found = [made.get(frozenset(step.until.items())) for step in steps]
        return [replace(step, done=s is not None and self.current(self.view, s)) for step, s in zip(steps, found, strict=True)]

    def run(self, steps: Sequence[BackfillStep], on_step: Callable[[BackfillStep], None]) -> list[BackfillStep]:
        """Make the steps that are not `done`; `on_step` is called with each."""
        return each(steps, self._make, on_step)

    def _make(self, step: BackfillStep) -> RefreshResult:
        """Bring the view, after those that it reads, from the step's start to its end; recomputed where it is at another snapshot."""
        for view in self.order:
            until = {table: step.until[table] for table in self.bases[view]}
            since = None if step.since is None else {table: step.since[table] for table in self.bases[view]}
            own = {table: number for table, number in until.items() if table in self.lake.reads(view)}
            if self.restart and step.since is None:
                result = self.lake.rebuild(view, own)
                continue
            stamp = self.lake.stamp(view)
            at = dict(stamp.answers_for) if stamp is not None and self.current(view, stamp) else None
            if view != self.view and at == until:
                continue
            goes_on = stamp is None or (at is not None and at == since)
            result = self._gone_on(view, own) if goes_on else self.lake.rebuild(view, own)
        return result

    def _gone_on(self, view: str, until: Mapping[str, int]) -> RefreshResult:
        try:
            return self.lake.refresh(view, until)
        except DefinitionChangedError:  # over the schemas that its tables have there, the same query is another one
            return self.lake.rebuild(view, until)


def published_at(paths: Sequence[Views], view: str, at: Mapping[str, int], current: Judge) -> Pinned:
    """The newest version of the view's table, on the first path that has one, built from these versions of some base tables.

    Raises ConfigError for tables that it does not read, TargetError where there is no such version, or it was vacuumed.
    """
    others, known, lost = list[Snapshot](), set[str](), False
    for lake in paths:
        fitting = None
        for made in lake.history(view):
            number, stamp = made.version, made.stamp
            answers = {**stamp.answers_for, **stamp.snapshot}
            known |= answers.keys()
            if any(answers.get(table) != version for table, version in at.items()):
                others.append(stamp.answers_for)
            elif current(view, stamp):
                fitting = number
        if fitting is None or (log := lake.table_log(view)) is None:
            continue
        head = log.head()
        found = pin_at(head, f"view {view}", fitting)
        lost = found is not head and missing_file(found) != ""
        if not lost:
            return found
    unknown = [table for table in at if table not in known]
    if known and unknown:
        raise ConfigError(f"View {view!r} is not built from {unknown[0]!r}. It reads: {', '.join(sorted(known))}.")
    asked = ", ".join(f"{table}@{version}" for table, version in at.items())
    others.sort(key=lambda s: sum(abs(s.get(t, 0) - n) for t, n in at.items()))
    nearest = "; ".join(dict.fromkeys(map(str, others[:_NEAREST]))) or "none"
    since, until = (" ".join(f"{option} {table}={version}" for table, version in at.items()) for option in ("--since", "--until"))
    raise TargetError(
        f"View {view!r} {'was vacuumed since it was' if lost else 'was never'} published at {asked}. Nearest: {nearest}. "
        f'To make it: "lakejoin backfill {view} {since} {until}".'
    )
