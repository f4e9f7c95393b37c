"""`lakejoin env`: lists environments, lets production take over the rows of a development environment, and drops one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lake.cli import console
from lake.cli.arguments import Json
from lake.cli.context import invocation, working
from lake.cli.dropping import may
from lake.core.environments import Environment
from lake.core.formatting import size_text
from lake.core.results import RefreshResult

if TYPE_CHECKING:  # --help needs none of it
    from lake.core.environments import DroppedEnvironment, PromotedView

app = typer.Typer(
    help="List environments; promote a development environment's views to production, or drop it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a development environment in lakejoin.yml.")]


@app.command("list", epilog="Example: lakejoin env list")
def list_environments(context: typer.Context, as_json: Json = False) -> None:
    """List the environments of lakejoin.yml: where their views are, and of which of them each development environment is one."""
    with invocation(context):
        from lake.config.loader import environments_of

        found = environments_of(context.obj.config)
        if as_json:
            console.print_json([environment.to_json() for environment in found])
        else:
            console.print_table(["environment", "development of", "views in"], [_row(environment) for environment in found])


def _row(environment: Environment) -> list[str]:
    return [environment.name or "-", environment.development_of or "-", environment.error or environment.target]


@app.command(epilog="Examples: lakejoin env promote dev | lakejoin env promote dev q20 --dry-run")
def promote(
    context: typer.Context,
    name: _Name,
    views: Annotated[list[str] | None, typer.Argument(help="The names of views. Default: all that the environment has itself.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    accept: Annotated[
        list[str] | None, typer.Option("--accept", help="Publish despite this finding of a blocking expectation, once. Repeatable.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Let production take over the rows of a development environment's views, each in one commit, without running their queries.

    Readers of production see the old rows until then. Production's lakejoin.yml must define the views in the same way, and the rows
    must be at least as new as production's; else nothing is written, and the message says what to run. If it is interrupted, run it again.
    """
    with invocation(context) as invoked:
        lake, done = _opened(invoked, name), list[RefreshResult]()

        def on_end(result: RefreshResult) -> None:
            done.append(result)
            if not as_json:
                counts = f"{result.rows_inserted:,} rows inserted, {result.rows_deleted:,} deleted"
                console.out().print(f"{result.view}: {counts}: {result.reason}", markup=False)

        plan = working("promoting", lambda: lake.promote(views, dry_run=dry_run, accept=accept or (), on_end=on_end))
        if as_json:
            console.print_json({"plan": [one.to_json() for one in plan], "results": [result.to_json() for result in done]})
        else:
            _print_plan(plan, dry_run, name)
        if any(one.action == "refused" for one in plan):
            raise typer.Exit(2)


def _print_plan(plan: list[PromotedView], dry_run: bool, name: str) -> None:
    for one in plan if dry_run else [one for one in plan if one.action == "none"]:
        console.out().print(f"{one.view}: {one.action}: {one.reason}", markup=False)
    promoted = [one for one in plan if one.action == "promote"]
    if not plan:
        console.out().print(f"Nothing to do: environment {name} has no views of its own.", markup=False)
    elif dry_run:
        console.out().print(f"This was a dry run: {len(promoted)} of {len(plan)} views would be promoted.", markup=False)
    elif promoted:
        console.out().print(
            f"Promoted {len(promoted)} of {len(plan)} views. lakejoin env drop {name} drops the environment's tables.", markup=False
        )


@app.command(epilog="Examples: lakejoin env drop dev | lakejoin env drop dev --dry-run --json | lakejoin env drop dev --yes")
def drop(
    context: typer.Context,
    name: _Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")] = False,
    as_json: Json = False,
) -> None:
    """Drop a development environment's own tables, with all that is kept of their views, and the results of its checks and scheduled runs;
    nothing of production. It lists them, and asks. Files that Lakejoin did not write stay, and are named.

    If it is interrupted, run it again.
    """
    with invocation(context) as invoked:
        lake = _opened(invoked, name)
        found = working(f"looking for {name}", lambda: lake.drop_environment(dry_run=True))
        for view in found.views if not (as_json and dry_run) else ():
            for table in view.tables:
                console.errors().print(f"{table.place}: {size_text(table.bytes)} in {table.files:,} files", markup=False)
        something = bool(found.views or found.files)
        if something and not (as_json and dry_run):
            _print_beside(found)
        if something and not dry_run and may(yes, f"Drop what is listed of environment {name} ({size_text(found.bytes)})?"):
            found = working(f"dropping {name}", lake.drop_environment)
        console.print_json(found.to_json()) if as_json else console.out().print(_ended(found, dry_run), markup=False)
        if something and not (found.dropped or dry_run):
            raise typer.Exit(1)


def _print_beside(found: DroppedEnvironment) -> None:
    """What there is beside the tables, and what stays of it."""
    for kept in found.files:
        console.errors().print(f"{kept.place}: {kept.what}, {size_text(kept.bytes)} in {kept.files:,} files", markup=False)
    for place in found.stays:
        console.errors().print(f"stays: {place}", markup=False)


def _ended(found: DroppedEnvironment, dry_run: bool) -> str:
    if not (found.views or found.files):
        return f"Environment {found.name} has no tables of its own."
    if found.dropped:
        also = ", and the files beside them" if found.files else ""
        return f"Dropped {len(found.views)} views of environment {found.name}{also}: {size_text(found.bytes)}."
    return f"This was a dry run: {size_text(found.bytes)} would be removed." if dry_run else "Nothing was removed."


def _opened(invoked: Any, name: str) -> Any:
    """The lakehouse of the environment that the command names."""
    invoked.use(name)
    return invoked.lake()
