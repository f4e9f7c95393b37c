"""The results of the verbs: small frozen records, each with `to_json` for machines. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from lake.core.kinds import WRONG
from lake.core.snapshots import Snapshot


@dataclass(frozen=True)
class Phase:
    """Seconds of a phase, those of them in Spark jobs, the CPU seconds of their tasks, how many there were, and bytes that they read."""

    name: str
    seconds: float
    jobs: int = 0
    tasks: int = 0
    job_seconds: float = 0.0
    task_cpu_seconds: float = 0.0
    bytes_read: int = 0


@dataclass(frozen=True)
class Profile:
    """One refresh, or several. `rules_seconds`: of analysing and optimising plans (within the phases); `code_seconds`: of compiling
    generated code, of this many `classes`. Without a JVM there are no metrics: only the phases have seconds."""

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
    """What a refresh did. Rows are counted in the view's own terms; an updated row of a keyed view counts as one deleted
    and one inserted, and once more in `rows_updated`. `seconds`: wall-clock time of the whole refresh; `profile`: where they went, if
    asked for."""

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
    """The outcome of one view in a run: `done`, `failed`, or `skipped` as a view that it reads failed.

    `since`: the base tables' versions that it answered for before the run's first try, `until`: those that it answers for now; `moved`:
    this run, at one of its tries, has brought it from the one to the other; `exit_code`: what a command for it alone would end with;
    `again`: another try may help; `events`: the findings that opened, got worse or were resolved, where it was checked.
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
    """A run's views, and the base tables' versions that they were to go to."""

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
    """One step of a backfill: from which versions of the base tables (None: built) to which, with how many commits of theirs and changed
    rows (by estimate). `done`: it is there; `result`: what making it now did."""

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
    """A backfill's steps, and what publishing its end changed in the view's own table. `seconds`: of all of it."""

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
    """A row that differs: +n is missing from the view, -n is too many in it."""

    weight: int
    row: dict[str, Any]


@dataclass(frozen=True)
class Differences:
    """The view against the query run from scratch at its snapshot. Empty (and so false) where the view is exact.

    `missing` and `surplus` count rows with their multiplicity; `samples` are some of them; `key`: the columns that tell them apart, if
    the view has such; `share`: what was compared, "1/1" all of it, "3/64" the third of 64 equal parts by hash.
    """

    view: str
    snapshot: Snapshot
    rows: int
    missing: int
    surplus: int
    samples: tuple[Difference, ...]
    key: tuple[str, ...] = ()
    share: str = "1/1"

    @property
    def exact(self) -> bool:
        return self.missing == self.surplus == 0

    @property
    def summary(self) -> str:
        """In a line, as it is said to a person."""
        if self.exact:
            return f"exact: {self.rows:,} rows at {self.snapshot}"
        return f"NOT exact at {self.snapshot}: {self.missing:,} rows missing, {self.surplus:,} too many (of {self.rows:,})"

    def __len__(self) -> int:
        return self.missing + self.surplus

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.samples)

    def sampled(self, shown: Callable[[Mapping[str, Any], Sequence[str]], dict[str, Any] | None]) -> Differences:
        """With as much of its samples as may be shown."""
        rows = [(s.weight, shown(s.row, self.key)) for s in self.samples]
        return replace(self, samples=tuple(Difference(weight, row) for weight, row in rows if row is not None))

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"snapshot": dict(self.snapshot), "exact": self.exact, "samples": [asdict(s) for s in self.samples]}


Position = Literal["equal", "ahead", "behind", "undecidable"]
"""Where the real-time path is, seen from the strong one; undecidable: ahead of some tables and behind others, or it can't be known."""


@dataclass(frozen=True)
class Classified:
    """Differences of one class between the paths: how many rows, and some of them, each with its counterpart in the other table."""

    name: str
    rows: int
    samples: tuple[tuple[dict[str, Any], dict[str, Any] | None], ...] = ()


@dataclass(frozen=True)
class Agreement:
    """The real-time table against the strong view. `position`: where the real-time path was; `rows`: of its table; `reason`: why its
    differences can't be told apart, empty where they can; `key`: the columns that tell rows apart."""

    view: str
    strong: Snapshot
    eventual: Snapshot
    position: Position
    rows: int
    classes: tuple[Classified, ...]
    key: tuple[str, ...] = ()
    reason: str = ""

    def count(self, name: str) -> int:
        """How many rows there are of a class."""
        return next((found.rows for found in self.classes if found.name == name), 0)

    @property
    def wrong(self) -> int:
        """How many rows are errors, whichever."""
        return sum(self.count(name) for name in WRONG)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"strong": dict(self.strong), "eventual": dict(self.eventual)}


@dataclass(frozen=True)
class SourceStatus:
    """One source of one view. `newest`: None where it is a view that is yet to be built; `lag`: versions to read; `expires_in`: seconds
    until the first of them may be gone, None where none is waiting; `way`: how its changes are read; `kept`: how many seconds a change
    stays readable."""

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
    """What maintenance did to a table. `files_before`, `files_after`: data files; `removed`: files that a vacuum removed, or would in a dry
    run; `kept`: why there was none."""

    table: str
    files_before: int
    files_after: int
    removed: int
    kept: str = ""


@dataclass(frozen=True)
class Maintenance:
    """What was done to each table, and what views have still to read that will be gone soon, by the tables' own settings. `failed`: why a
    table could not be maintained, by its name."""

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
    """What each operator does on a refresh, and why. `incremental`: no operator is ever recomputed whole.

    `warning`: what makes the result depend on the order of rows, empty where nothing does; `scope`: the columns under which rows are
    then computed anew and compared with those that the view holds. `most_changes`: with more than about so many the query is computed anew,
    by estimate (None: however many; so it is before the first build).
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

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"realtime": self.incremental}

    def __str__(self) -> str:
        how = "incremental" if self.incremental else f"not incremental: {self.reason}"
        key = f"by the key ({', '.join(self.key)})" if self.key else "as a multiset (no key can be derived)"
        lines = [f"{self.view}: {how}", f"published {key}"]
        if self.warning:
            lines.append(f"not a function of its rows alone: it uses {self.warning} (an ORDER BY that leaves no ties makes it one)")
        if self.scope:
            lines.append(f"what changes is computed anew by ({', '.join(self.scope)}), and compared with what the view holds")
        if self.most_changes is not None:
            lines.append(f"computed anew where more than about {self.most_changes:,} rows changed, which is cheaper by estimate")
        lines.append(f"in real time: {'yes' if self.incremental else f'no, {self.reason}'}")
        lines.append("")
        for step in self.steps:
            keys = f" by ({', '.join(step.keys)})" if step.keys else ""
            lines.append(f"{'  ' * step.depth}{step.operator}{keys}: {step.rule}")
            lines += [f"{'  ' * step.depth}    {text}" for text in (step.looks_up, step.reason) if text]
        return "\n".join([*lines, "", *[f"{name}: changes from its {way}" for name, way in self.sources.items()]])
