"""Prints the results of commands to standard output, and messages to standard error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lake.core.formatting import duration_text, path_texts, time_text, versions_text
from lake.core.variables import assigned

if TYPE_CHECKING:  # --help needs none of it
    from lake.core.results import (
        BackfillResult,
        BackfillStep,
        Differences,
        Maintenance,
        Profile,
        RefreshResult,
        RunResult,
        SourceStatus,
        ViewOutcome,
    )
    from lake.quality.view_status import ViewStatus
    from lake.views.table import Publication


@dataclass(frozen=True)
class Output:
    """Where a command prints: its result to `out`, messages to `errors`."""

    out: Console
    errors: Console

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Within it, a terminal shows that something is going on."""
        if not self.errors.is_terminal:
            yield
            return
        with self.errors.status(what):
            yield


_STANDARD = Output(Console(highlight=False, soft_wrap=True), Console(stderr=True, highlight=False, soft_wrap=True))
_output: ContextVar[Output] = ContextVar("output", default=_STANDARD)


def output() -> Output:
    """Where the command of this thread prints; by default standard output and standard error."""
    return _output.get()


def out() -> Console:
    return output().out


def errors() -> Console:
    return output().errors


def printing_to(other: Output) -> AbstractContextManager[Output]:
    """Within it, commands of this thread print elsewhere: `lakejoin serve` sends what they print to its client."""
    return assigned(_output, other)


_SHOWN = 0.005
"""Seconds; a phase that took less is left out."""


class Steps:
    """Prints a numbered line for each finished step of a backfill."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self, step: BackfillStep) -> None:
        print_made(step, f"step {self._number}: ")
        self._number += 1


def print_made(step: BackfillStep, before: str = "") -> None:
    """Print a line for a finished step."""
    if step.result is not None:
        errors().print(f"{before}{step.result.view} at {step.result.until}: {step.result.mode}, {step.result.seconds:.1f} s", markup=False)


def print_outcome(outcome: ViewOutcome) -> None:
    """Print the error of a view that failed or was skipped."""
    if outcome.state != "done":
        errors().print(f"lakejoin: {outcome.error}", markup=False)


def print_run(found: RunResult, as_json: bool) -> None:
    """Print a line for each refreshed view; as JSON, the whole result of a named run."""
    if as_json and found.name:
        print_json(found.to_json())
    else:
        print_results([outcome.result for outcome in found.outcomes if outcome.result is not None], as_json)


def print_status(found: Sequence[ViewStatus], rows: Sequence[SourceStatus], paths: Mapping[str, dict[str, Any]]) -> None:
    """Print a row for each view, what is wrong, and a sentence for all. `rows`: sources of views to print as well; `paths`: the newest
    lease of each real-time path."""
    from lake.quality.view_status import summary

    print_table(
        ["view", "state", "behind for", "last refresh", "proof"],
        [
            [
                one.view,
                one.state,
                _behind(one.behind),
                one.last_refresh,
                one.exact or "-",
            ]
            for one in found
        ],
    )
    shared = [one.view for one in found if one.from_production]
    if shared:
        out().print(f"read from production: {', '.join(shared)}", markup=False)
    for one in found:
        if one.problem:
            out().print(f"{one.view} ({one.state}): {one.problem}", markup=False)
        if one.needs_somebody and 'Run "' not in one.problem:
            out().print(f"  run: {one.command}", markup=False)
    if rows:
        print_table(
            ["view", "source", "published", "newest", "lag", "expires in", "changes from"],
            [[r.view, r.source, _dash(r.published), _dash(r.newest), _dash(r.lag), _days(r.expires_in), r.way] for r in rows],
        )
    if paths:
        print_table(
            ["real time", "state", "at", "batches", "rows in", "rows out", "waiting", "batch", "latency p50 / p95 / p99", "cache hits"],
            [[name, *_path_cells(said)] for name, said in paths.items()],
        )
        for error in (said["error"] for said in paths.values() if said.get("error")):
            out().print(error, markup=False)
    for advice in dict.fromkeys(r.advice for r in rows if r.advice and r.lag is not None):
        out().print(f"hint: {advice}", markup=False)
    out().print(summary(found), markup=False)


def print_health(found: Mapping[str, Any]) -> None:
    """Print the open findings of each checked view (lake.quality.health.Health)."""
    for finding in dict.fromkeys(f"{f}; run: {f.command}" for health in found.values() for f in health.open):
        out().print(f"finding {finding}", markup=False)


def print_results(results: Sequence[RefreshResult], as_json: bool) -> None:
    if as_json:
        print_json([r.to_json() for r in results])
        return
    for r in results:
        text = f"{r.view}: {r.mode}, +{r.rows_inserted:,} -{r.rows_deleted:,} rows, now at {r.until} ({r.seconds:.1f} s)"
        out().print(text + (f"; {r.reason}" if r.reason else ""), markup=False)
        if r.profile is not None:
            print_profile(r.profile)


def print_profile(profile: Profile) -> None:
    """Print a row for each phase, then the time for planning and code generation."""
    rows = [
        [
            p.name,
            f"{p.seconds:.2f}",
            str(p.jobs),
            str(p.tasks),
            f"{p.job_seconds:.2f}",
            f"{p.task_cpu_seconds:.2f}",
            f"{p.bytes_read / 1e6:.1f}",
        ]
        for p in (*profile.phases, profile.total)
        if p.seconds >= _SHOWN or p.jobs
    ]
    print_table(["phase", "seconds", "Spark jobs", "tasks", "s in jobs", "CPU s of tasks", "MB read"], rows)
    out().print(
        f"Plans took {profile.rules_seconds:.2f} s of it, and compiling {profile.classes} new classes of generated code "
        f"{profile.code_seconds:.2f} s.",
        markup=False,
    )


def print_backfill(found: BackfillResult, as_json: bool) -> None:
    """Print a row for each step, and what was published at the end."""
    if as_json:
        print_json(found.to_json())
        return
    rows = []
    for step in found.steps:
        made = step.result
        did = "exists" if step.done else "to do"
        if made is not None:
            did = f"{made.mode}, +{made.rows_inserted:,} -{made.rows_deleted:,} rows"
        read = "" if made is None or made.changes_read is None else f"{made.changes_read:,}"
        rows.append([versions_text(step.until), f"{step.commits:,}", f"{step.rows:,}", read, did, f"{made.seconds:.1f} s" if made else ""])
    print_table(["until", "commits", "rows changed (estimate)", "read", found.view, "took"], rows)
    if found.published is not None:
        print_results([found.published], as_json=False)


def print_differences(found: Sequence[Differences], failed: Mapping[str, Exception], as_json: bool) -> list[dict[str, Any]]:
    """Print a line for each view with sample rows that differ, and the errors of other views; returns all of it as JSON."""
    told = [*(d.to_json() for d in found), *({"view": view, "error": str(error)} for view, error in failed.items())]
    if as_json:
        print_json(told)
        return told
    for d in found:
        out().print(f"{d.view}: {d.summary}", markup=False)
        for line in _difference_lines(d):
            out().print(f"  {line}", markup=False)
    for view, error in failed.items():
        errors().print(f"{view}: can't be verified: {error}", markup=False)
    return told


def _difference_lines(found: Differences) -> Iterator[str]:
    """Some of the rows that differ, side by side where the view has a key, and the commits of others."""
    if found.paired is None:
        yield from (f"{sample.weight:+d} {sample.row}" for sample in found)
    else:
        yield from (pair.text(found.key) for pair in found.paired.samples)
    for commit in found.other_commits:
        yield f"Lakejoin did not write {commit}"
    if found.other_commits:
        yield f"The next refresh refuses {'this commit' if len(found.other_commits) == 1 else 'these commits'}. Run: {found.command}"


def print_maintenance(found: Maintenance, as_json: bool) -> None:
    """Print a row for each table, then warnings of changes that may soon be unreadable."""
    if as_json:
        print_json(found.to_json())
        return
    rows = [[t.table, f"{t.files_before:,}", f"{t.files_after:,}", f"{t.removed:,}", t.kept] for t in found.tables]
    print_table(["table", "data files before", "after", "old files removed", "not vacuumed, because"], rows)
    for table, error in found.failed.items():
        errors().print(f"lakejoin: {table} was not maintained: {error}", markup=False)
    for warning in found.warnings:
        errors().print(f"warning: {warning}", markup=False)


def print_history(found: Sequence[Publication], as_json: bool) -> None:
    """Print a row for each published version of a view."""
    if as_json:
        print_json([version.to_json() for version in found])
        return
    rows = [
        [
            str(version.version),
            time_text(version.committed),
            version.stamp.how,
            f"+{version.rows_inserted:,} -{version.rows_deleted:,}",
            str(version.stamp.snapshot),
            _dash(f"{version.seconds:.1f}" if version.seconds is not None else None),
        ]
        for version in found
    ]
    print_table(["version", "published (UTC)", "mode", "rows", "from", "seconds"], rows)


def print_json(data: Any) -> None:
    print(json.dumps(data, default=str, ensure_ascii=False), file=out().file)


def print_table(columns: list[str], rows: list[list[str]]) -> None:
    from rich.table import Table

    table = Table(*columns, header_style="bold")
    for row in rows:
        table.add_row(*row)
    (out() if out().is_terminal else Console(width=200, highlight=False, file=out().file)).print(table, markup=False)


def _path_cells(said: dict[str, Any]) -> list[str]:
    """The cells of a real-time path, from its newest lease."""
    if "batches" not in said:
        return [said.get("state", "not running"), *"--------"]
    texts = path_texts(said)
    numbers = [f"{said[n]:,}" for n in ("batches", "rows_in", "rows_out", "backlog_versions")]
    return [said["state"], texts["at"], *numbers, f"{said['batch_seconds']:.1f} s", texts["latency"], texts["hits"]]


def shown(value: Any) -> str:
    return "NULL" if value is None else str(value)


def _dash(value: Any) -> str:
    return "-" if value is None else str(value)


def _behind(seconds: float | None) -> str:
    return "-" if seconds is None else duration_text(seconds) or "under a minute"


def _days(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return "expired" if seconds <= 0 else f"{seconds / 86400:.1f} days" if seconds >= 86400 else f"{seconds / 3600:.1f} hours"
