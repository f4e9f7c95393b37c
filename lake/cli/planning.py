"""`lakejoin plan` and `lakejoin apply`: what a changed lakejoin.yml means for each view, and carrying it out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from lake.cli import console
from lake.cli.arguments import Json
from lake.cli.context import alone, invocation, working, writer
from lake.cli.remote import in_server, taking
from lake.core.formatting import size_text
from lake.core.planned import Plan, PlannedView
from lake.core.results import RefreshResult
from lake.errors import ConfigError

_SIGNS = {"build": "+", "edit": "~", "rebuild": "!", "rename": ">", "removed": "-", "refused": "x"}
_DONE = {
    "build": "to build",
    "edit": "to edit",
    "rebuild": "to rebuild",
    "rename": "to rename",
    "removed": "removed",
    "refused": "refused",
    "none": "unchanged",
}
_SHARED = "shared"
_PARTS = 64
_COSTS = {
    "stamp": "no row changes",
    "metadata": "no row is read or written",
    "delete": "reads {read} of the view",
    "rewrite": "reads and writes {read} of the view, nothing of the sources",
    "difference": "reads at most {read} of the sources",
}


_Views = Annotated[list[str] | None, typer.Argument(help="The names of views. Default: all.")]


@in_server
def plan(
    context: typer.Context,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Also write the plan to this file, for lakejoin apply --plan.")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Also run each edited query at the view's snapshot, and count the rows that differ.")
    ] = False,
    sample: Annotated[bool, typer.Option("--sample", help=f"The same for one of {_PARTS} parts of the rows, by their keys.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a comment on a pull request.")] = False,
    as_json: Json = False,
) -> None:
    """Compare lakejoin.yml with what is published: which views are new, edited or gone, and what applying that costs. Writes no table.

    Exit code 0: nothing to do; 2: there are changes; 1: a view is refused.
    """
    with invocation(context) as invoked:
        if markdown and as_json:
            raise typer.BadParameter("give --markdown or --json")
        if full and sample:
            raise typer.BadParameter("give --full or --sample")
        lake = invoked.lake()
        found = working("planning", lambda: lake.plan(_share(full, sample)))
        if out is not None:
            writer.get()(out, json.dumps(found.to_json(), indent=2) + "\n")
        if as_json:
            console.print_json(found.to_json())
        else:
            console.out().print("\n".join(_markdown(found) if markdown else _lines(found, context.obj.env)), markup=False)
        if found.exit_code:
            raise typer.Exit(found.exit_code)


@in_server
def apply(
    context: typer.Context,
    views: _Views = None,
    plan: Annotated[
        dict[str, Any] | None, typer.Option(help="A plan, as the verb plan gives it: apply nothing if it is another one now.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Carry out what lakejoin plan says: build new views, bring edited ones to their new query. Each is one commit; readers see the old
    rows until then.

    A view that fails does not stop those that do not read it, and the next lakejoin apply goes on.
    """
    with invocation(context) as invoked:
        shown = _plan_of(plan) if plan is not None else None
        lake = invoked.lake()

        def on_end(planned: PlannedView, result: RefreshResult) -> None:
            if not as_json:
                what = planned.how or planned.action
                console.out().print(f"{planned.view}: {what}, {_counts(result)}: {result.reason or planned.reason}", markup=False)

        results = working("applying", lambda: lake.apply(views, shown, on_end, alone=alone.get()))
        if as_json:
            console.print_json([result.to_json() for result in results])
        elif not results:
            console.out().print("Nothing to do: what is published is what lakejoin.yml says.")


def apply_command(
    context: typer.Context,
    views: _Views = None,
    file: Annotated[
        Path | None, typer.Option("--plan", help="A plan that lakejoin plan --out wrote: apply nothing if it is another one now.")
    ] = None,
    as_json: Json = False,
) -> None:
    """`apply`, which a server can carry out, with the plan that is in a file here."""
    if file is not None and taking.get() is not None:
        raise typer.BadParameter("the server reads no file: send the plan itself, as `plan` of POST /v1/apply")
    with invocation(context):
        found = _read(file).to_json() if file is not None else None
    apply(context, views=views, plan=found, as_json=as_json)


def _share(full: bool, sample: bool) -> Any:
    from lake.operations.verify import Share  # loads Spark

    return Share(1, _PARTS) if sample else Share() if full else None


def _read(file: Path) -> Plan:
    try:
        return Plan.from_json(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ConfigError(f"The plan {file} can't be read: {error}. Write one with lakejoin plan --out {file}.") from error


def _plan_of(body: Mapping[str, Any]) -> Plan:
    try:
        return Plan.from_json(body)
    except ValueError as error:
        raise ConfigError(f"The plan can't be read: {error}. Ask the verb plan for one.") from error


def _counts(result: RefreshResult) -> str:
    return f"{result.rows_inserted:,} rows inserted, {result.rows_deleted:,} deleted"


def _lines(found: Plan, env: str | None) -> Iterator[str]:
    """The plan for a terminal: what changes, then a line for all."""
    for view in found.changes:
        yield f"{_SIGNS[view.action]} {view.view}: {_title(view)}"
        yield from (f"    {text}" for text in _details(view))
        yield from (f"    {text}" for text in view.diff.splitlines())
    shared = [view.view for view in found.views if view.from_production]
    if shared:
        yield f"  read from production: {', '.join(shared)}"
    yield _summary(found)
    if found.exit_code == 2:
        yield f"Next: lakejoin {f'--env {env} ' if env else ''}apply"
    if any(view.action == "removed" for view in found.views):
        yield "lakejoin drop VIEW deletes what is kept of a removed view; lakejoin gc, of all that were removed long ago."


def _markdown(found: Plan) -> Iterator[str]:
    yield f"**{_summary(found)}**"
    if found.changes:
        yield ""
        yield "| view | action | why | cost |"
        yield "|---|---|---|---|"
    for view in found.changes:
        reason = view.reason.replace("|", "\\|").replace("\n", " ")
        yield f"| `{view.view}` | {view.action}{f' ({view.how})' if view.how else ''} | {reason} | {_cost(view)} |"
    for view in found.changes:
        details = [text for text in _details(view) if not text.startswith("cost")]
        if not details and not view.diff:
            continue
        yield f"\n<details><summary><code>{view.view}</code></summary>\n"
        yield from (f"- {text}" for text in details)
        if view.diff:
            yield f"\n```diff\n{view.diff}\n```"
        yield "\n</details>"


def _title(view: PlannedView) -> str:
    return f"{view.action}{f' ({view.how})' if view.how else ''}: {view.reason}"


def _details(view: PlannedView) -> Iterator[str]:
    """What readers and operators want to know of a change."""
    signed = [f"+{n}" for n in view.columns_added] + [f"-{n}" for n in view.columns_dropped] + [f"~{n}" for n in view.columns_changed]
    if signed:
        yield f"columns: {' '.join(signed)}"
    if _cost(view):
        yield f"cost: {_cost(view)}"
    if view.row_changes is not None:
        yield f"rows: {view.row_changes}"
    if view.downstream:
        yield f"views that read it: {', '.join(view.downstream)}"


def _cost(view: PlannedView) -> str:
    read, written = size_text(view.bytes_read), size_text(view.bytes_written)
    if view.action == "edit":
        return _COSTS[view.how].format(read=read)
    if view.action == "build":
        return f"reads {read} of the sources"
    if view.action == "removed":
        return f"{read} on disk"
    return f"reads {read}, writes at most {written} ({view.rows:,} rows now)" if view.action == "rebuild" and view.rows is not None else ""


def _summary(found: Plan) -> str:
    counts = Counter[str](_SHARED if view.from_production else view.action for view in found.views)
    said = [f"{counts[action]} {text}" for action, text in (_DONE | {_SHARED: "read from production"}).items() if counts[action]]
    return f"Plan: {', '.join(said) or 'no views'}."
