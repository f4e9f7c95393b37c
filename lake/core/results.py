"""The results of the API's functions: small frozen records, each with `to_json`. No Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from lake.core.constants import WRONG
from lake.core.other_commits import OtherCommit
from lake.core.pairs import Paired
from lake.core.redaction import Samples
from lake.core.snapshots import Snapshot


@dataclass(frozen=True)
class Phase:
    """Metrics of one phase of a refresh. `seconds`: all of it; `job_seconds`: of its Spark jobs; `task_cpu_seconds`: of its tasks, which
    are those of the jobs and those that the driver ran without a job."""

    name: str
    seconds: float
    jobs: int = 0
    tasks: int = 0
    job_seconds: float = 0.0
    task_cpu_seconds: float = 0.0
    bytes_read: int = 0


@dataclass(frozen=True)
class Profile:
    """Where the time of one or several refreshes went. `rules_seconds`: spent in Spark's rules, which analyse and optimise plans (part
    of the phases); `code_seconds`: spent in compiling `classes` generated classes. Without a JVM only the phases have seconds."""

    phases: tuple[Phase, ...]
    rules_seconds: float = 0.0
    code_seconds: float = 0.0
    classes: int = 0

    @property
    def total(self) -> Phase:
        """All phases together."""
        numbers = [asdict(phase) for phase in self.phases]
        return Phase("all", **{name: sum(n[name] for n in numbers) for name in numbers[0] if name != "name"})

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"total": asdict(self.total)}


@dataclass(frozen=True)
class RefreshResult:
    """What a refresh did. An updated row of a view with a key counts once as deleted, once as inserted, and once in `rows_updated`.
    `seconds`: wall-clock time of the whole refresh; `profile`: where it went, if asked for."""

    view: str
    since: Snapshot | None
    until: Snapshot
    mode: str
    rows_inserted: int
    rows_deleted: int
    rows_updated: int
    seconds: float
    reason: str = ""
    changes_read: int | None = None
    profile: Profile | None = None

    def to_json(self) -> dict[str, Any]:
        said = asdict(self) | {"since": dict(self.since) if self.since else None, "until": dict(self.until)}
        del said["profile"]
        return said | ({"profile": self.profile.to_json()} if self.profile is not None else {})


@dataclass(frozen=True)
class ViewOutcome:
    """The outcome of one view in a run: `done`, `failed`, or `skipped` because a view that it reads failed.

    `since`, `until`: the versions of base tables that it was built from before the run's first attempt, and now; `moved`: this run
    published it, at one of its attempts; `exit_code`: that of a command for this view alone; `again`: another attempt may succeed;
    `events`: the findings that opened, escalated or were resolved, if it was checked.
    """

    view: str
    state: Literal["done", "failed", "skipped"]
    since: Mapping[str, int]
    until: Mapping[str, int]
    result: RefreshResult | None = None
    moved: bool = False
    error: str = ""
    exit_code: int = 0
    again: bool = False
    events: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"result": self.result.to_json() if self.result else None}


@dataclass(frozen=True)
class RunResult:
    """The outcomes of a run, and the versions of base tables (`pinned`) that it refreshes to."""

    name: str
    pinned: Mapping[str, int]
    outcomes: tuple[ViewOutcome, ...]

    @property
    def exit_code(self) -> int:
        """That of the first view that failed."""
        return next((outcome.exit_code for outcome in self.outcomes if outcome.exit_code), 0)

    def to_json(self) -> dict[str, Any]:
        return {"run": self.name, "pinned": dict(self.pinned), "views": {outcome.view: outcome.to_json() for outcome in self.outcomes}}


@dataclass(frozen=True)
class BackfillStep:
    """One step of a backfill, between two snapshots of the base tables (`since` None: a build), with its number of commits and of changed
    rows (estimated). `done`: it existed before; `result`: that of its refresh in this backfill."""

    since: Mapping[str, int] | None
    until: Mapping[str, int]
    commits: int
    rows: int
    done: bool = False
    result: RefreshResult | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"result": self.result.to_json() if self.result else None}


@dataclass(frozen=True)
class BackfillResult:
    """The steps of a backfill. `published`: what was changed in the view's own table at the end; `seconds`: of the whole backfill."""

    view: str
    steps: tuple[BackfillStep, ...]
    seconds: float
    published: RefreshResult | None = None

    def to_json(self) -> dict[str, Any]:
        steps = [step.to_json() for step in self.steps]
        published = self.published.to_json() if self.published else None
        return {"view": self.view, "steps": steps, "seconds": self.seconds, "published": published}


@dataclass(frozen=True)
class Difference:
    """A row that differs: `weight` +n if it is missing from the view n times, -n if the view has it n times too often."""

    weight: int
    row: dict[str, Any]


@dataclass(frozen=True)
class Rounding:
    """Rows that are equal but for rounding in sums of floating-point numbers: how many, and by how many ulps (units in the last place) at
    most."""

    rows: int = 0
    ulps: int = 0

    def __str__(self) -> str:
        one_row, one_ulp = self.rows == 1, self.ulps == 1
        if not self.rows:
            return ""
        return f"equal but for rounding: {self.rows:,} {'row' if one_row else 'rows'}, at most {self.ulps:,} {'ulp' if one_ulp else 'ulps'}"


@dataclass(frozen=True)
class Differences:
    """The differences of a view from its query, run from scratch at the view's snapshot. Empty (so false) if the view is exact.

    `missing` and `surplus` count rows with their multiplicity; `samples` are some of them; `key`: the view's key; `share`: the part of
    the rows that was compared, "1/1" all, "3/64" the third of 64 equal parts by hash. `rounding`: rows that count as exact, though their
    sums of floating-point numbers differ in the last digits. `paired`: the differing rows, those of both sides with one key together; None
    if there are none, or the view has no key. `other_commits`: those on the view's table that Lakejoin did not write, since the view was
    published; the next refresh refuses them, and `command` corrects the view.
    """

    view: str
    snapshot: Snapshot
    rows: int
    missing: int
    surplus: int
    samples: tuple[Difference, ...]
    key: tuple[str, ...] = ()
    share: str = "1/1"
    rounding: Rounding = Rounding()
    paired: Paired | None = None
    other_commits: tuple[OtherCommit, ...] = ()
    command: str = ""

    @property
    def exact(self) -> bool:
        return self.missing == self.surplus == 0

    @property
    def summary(self) -> str:
        """One line for people."""
        if self.exact:
            found = f"exact: {self.rows:,} rows at {self.snapshot}"
        else:
            found = f"NOT exact at {self.snapshot}: {self.missing:,} rows missing, {self.surplus:,} too many (of {self.rows:,})"
            found += f"; {self.paired.text(self.key)}" if self.paired is not None else ""
        return f"{found}; {self.rounding}" if self.rounding.rows else found

    def __len__(self) -> int:
        return self.missing + self.surplus

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.samples)

    def sampled(self, shown: Samples) -> Differences:
        """The same with its samples reduced to what may be shown."""
        rows = [(s.weight, shown(s.row, self.key)) for s in self.samples]
        return replace(
            self,
            samples=tuple(Difference(weight, row) for weight, row in rows if row is not None),
            paired=None if self.paired is None else self.paired.sampled(shown, self.key),
            other_commits=tuple(commit.sampled(shown, self.key) for commit in self.other_commits),
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(replace(self, paired=None, other_commits=())) | {
            "snapshot": dict(self.snapshot),
            "exact": self.exact,
            "samples": [asdict(s) for s in self.samples],
            "paired": None if self.paired is None else self.paired.to_json(),
            "other_commits": [commit.to_json() for commit in self.other_commits],
        }


Position = Literal["equal", "ahead", "behind", "undecidable"]
"""The snapshot of the real-time table compared with the view's. Undecidable: newer for some tables and older for others, or unknown."""


@dataclass(frozen=True)
class Classified:
    """Differences of one class between the two paths: the number of rows, and samples, each with its counterpart in the other table."""

    name: str
    rows: int
    samples: tuple[tuple[dict[str, Any], dict[str, Any] | None], ...] = ()


@dataclass(frozen=True)
class Agreement:
    """The comparison of the real-time table with the view. `position`: of the real-time table's snapshot; `rows`: of the real-time
    table; `reason`: why differences can't be classified, empty if they can; `key`: the view's key; `rounding`: rows that count as equal,
    though their sums of floating-point numbers differ in the last digits."""

    view: str
    strong: Snapshot
    eventual: Snapshot
    position: Position
    rows: int
    classes: tuple[Classified, ...]
    key: tuple[str, ...] = ()
    reason: str = ""
    rounding: Rounding = Rounding()

    def count(self, name: str) -> int:
        """The number of rows of a class."""
        return next((found.rows for found in self.classes if found.name == name), 0)

    @property
    def wrong(self) -> int:
        """How many rows are errors, of all classes."""
        return sum(self.count(name) for name in WRONG)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"strong": dict(self.strong), "eventual": dict(self.eventual)}


BELOW_UNBUILT = "a view below it is yet to be built"
"""How the changes of a source are read (SourceStatus.way) where nothing can be read yet."""


@dataclass(frozen=True)
class SourceStatus:
    """One source of one view. `newest`: None for a view that has not been built; `lag`: the number of unread versions; `expires_in`: the
    seconds until the first of them may be unreadable, None if there is none; `way`: what changes are read from; `kept`: for how many
    seconds a change stays readable."""

    view: str
    source: str
    published: int | None
    newest: int | None
    lag: int | None
    expires_in: float | None
    way: str
    advice: str = ""
    kept: float | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Maintained:
    """What maintenance did to a table. `files_before`, `files_after`: the number of data files; `removed`: the number of files that a
    vacuum removed, or would remove (dry run); `kept`: why there was no vacuum."""

    table: str
    files_before: int
    files_after: int
    removed: int
    kept: str = ""


@dataclass(frozen=True)
class Maintenance:
    """What was done to each table. `warnings`: unread changes of views that may soon be unreadable; `failed`: the error by table."""

    tables: tuple[Maintained, ...]
    warnings: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class OperatorExplanation:
    """One operator of a view's tree, as `explain` shows it."""

    depth: int
    operator: str
    rule: str
    keys: tuple[str, ...]
    looks_up: str
    reason: str


@dataclass(frozen=True)
class Explanation:
    """What each operator does on a refresh, and why. `incremental`: no operator is fully recomputed.

    `warning`: what makes the result depend on the order of rows, empty if nothing does; `scope`: the columns by which rows are then
    recomputed and compared with the stored rows. `most_changes`: with more changes than this, a refresh is estimated to be more
    expensive than a full recompute (None: never, or the view has not been built). `rounded`: the columns made of sums of floating-point
    numbers, which `verify` compares but for rounding. `suggestions`: changes of the query that would make it incremental.
    """

    view: str
    key: tuple[str, ...]
    incremental: bool
    reason: str
    steps: tuple[OperatorExplanation, ...]
    sources: dict[str, str]
    scope: tuple[str, ...] = ()
    warning: str = ""
    most_changes: int | None = None
    rounded: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"realtime": self.incremental}

    @property
    def why_not(self) -> str:
        """Why the view is not incremental, and what to change in its query."""
        if self.incremental:
            return f"{self.view}: incremental, nothing has to be changed"
        return "\n".join([f"{self.view}: not incremental: {self.reason}", *[f"to change it: {each}" for each in self.suggestions]])

    def __str__(self) -> str:
        how = "incremental" if self.incremental else f"not incremental: {self.reason}"
        key = f"by the key ({', '.join(self.key)})" if self.key else "as a multiset (no key can be derived)"
        lines = [f"{self.view}: {how}", f"published {key}"]
        if self.warning:
            lines.append(f"order-dependent: it uses {self.warning} (an ORDER BY without ties makes the result unique)")
        if self.scope:
            lines.append(f"affected rows are recomputed by ({', '.join(self.scope)}), and compared with the stored rows")
        if self.rounded:
            lines.append(f"equal to the query but for rounding (sums of floating-point numbers): {', '.join(self.rounded)}")
        if self.most_changes is not None:
            lines.append(f"fully recomputed if more than about {self.most_changes:,} rows changed (estimated to be cheaper)")
        lines.append(f"in real time: {'yes' if self.incremental else f'no, {self.reason}'}")
        lines.append("")
        for step in self.steps:
            keys = f" by ({', '.join(step.keys)})" if step.keys else ""
            lines.append(f"{'  ' * step.depth}{step.operator}{keys}: {step.rule}")
            lines += [f"{'  ' * step.depth}    {text}" for text in (step.looks_up, step.reason) if text]
        return "\n".join([*lines, "", *[f"{name}: changes from its {way}" for name, way in self.sources.items()]])
