"""`lakejoin drop` and `lakejoin gc`: list what is kept of views, and remove it after a question, or with --yes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lake.cli import console
from lake.cli.arguments import Json
from lake.cli.context import invocation, is_served, working
from lake.cli.remote import in_server
from lake.core.formatting import length_text, size_text
from lake.errors import ConfigError, SourceError

if TYPE_CHECKING:  # --help needs none of it
    from lake.core.removals import Collected, Dropped

_View = Annotated[str, typer.Argument(help="The view's name. It may no longer be in lakejoin.yml.")]
_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")]


@in_server
def drop(
    context: typer.Context,
    view: _View,
    yes: _Yes = False,
    dry_run: _DryRun = False,
    force: Annotated[bool, typer.Option("--force", help="Also if other views, or tables of lakejoin.yml, read it.")] = False,
    as_json: Json = False,
) -> None:
    """Drop a view: its table, its real-time table, its backfills, with all files beside them, and the results of its scheduled runs.

    It lists what it would remove, and asks. It refuses tables that Lakejoin did not make for this view, views that others read, and
    views whose real-time path runs. If it is interrupted, run it again.
    """
    with invocation(context) as invoked:
        opened = invoked.lake()
        found = working(f"looking for {view}", lambda: opened.drop(view, force=force, dry_run=True))
        if found.tables or found.runs:
            _list(found, as_json and dry_run)
            if not dry_run and may(yes, f"Drop view {view} ({size_text(found.bytes)})?"):
                found = working(f"dropping {view}", lambda: opened.drop(view, force=force))
        if as_json:
            console.print_json(found.to_json())
        else:
            shared = found.dropped and found.configured and opened.is_shared(view)
            console.out().print(_ended(found, dry_run, shared), markup=False)
        if not (found.dropped or dry_run) and (found.tables or found.runs):
            raise typer.Exit(1)


def _list(found: Dropped, quiet: bool) -> None:
    """Print the tables with their sizes: to standard error, before the question."""
    for table in found.tables if not quiet else ():
        when = f"published {table.published:%Y-%m-%d %H:%M}" if table.published else table.state
        console.errors().print(f"{table.place}: {size_text(table.bytes)} in {table.files:,} files, {when}", markup=False)
    if found.runs and not quiet:
        console.errors().print(f"{len(found.runs)} files of scheduled runs", markup=False)
    if found.readers and not quiet:
        console.errors().print(f"It is read by {', '.join(found.readers)}.", markup=False)


def _ended(found: Dropped, dry_run: bool, shared: bool) -> str:
    if not (found.tables or found.runs):
        return f"Nothing is kept of view {found.view}."
    if found.dropped:
        again = " It is still in lakejoin.yml: its next refresh builds it again." if found.configured else ""
        again = " It is read from production again." if shared else again
        return f"Dropped view {found.view}: {size_text(found.bytes)}.{again}"
    return f"This was a dry run: {size_text(found.bytes)} would be removed." if dry_run else "Nothing was removed."


def may(yes: bool, question: str) -> bool:
    """Whether to go on. Raises ConfigError if there is nobody to ask."""
    if yes:
        return True
    if not has_terminal():
        raise ConfigError(
            "There is no terminal in which to ask whether to remove this. Nothing was removed. Add --yes, or --dry-run to only list it."
        )
    return typer.confirm(question, err=True)


def has_terminal() -> bool:
    """Whether a person can answer a question: whoever is at the terminal of a server did not ask for it."""
    return not is_served() and sys.stdin.isatty()


def gc(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed. This is the default.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove what is old enough.")] = False,
    older_than: Annotated[
        float | None,
        typer.Option(
            "--older-than", min=0, help="Remove what was last refreshed so many DAYS ago. Default: drop_after_days in lakejoin.yml."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List what is left of views that are no longer in lakejoin.yml, and of scheduled runs that died; with --yes, drop what is old.

    A view is as old as its last refresh. Only tables of this configuration's `target` and `project` are looked at.
    """
    with invocation(context) as invoked:
        if yes and dry_run:
            raise typer.BadParameter("--yes and --dry-run exclude each other")
        opened = invoked.lake()
        found = working("looking for leftovers", lambda: opened.gc(older_than, dry_run=not yes))
        console.print_json(found.to_json()) if as_json else _print_collected(found)
        if found.failed:
            raise typer.Exit(SourceError.exit_code)


def _print_collected(found: Collected) -> None:
    """A row for each leftover, the errors, and a line for all."""
    dropped = {leftover.name for leftover in found.dropped}
    rows = []
    for each in found.leftovers:
        state = "dropped" if each.name in dropped else "failed" if each.name in found.failed else "due" if each.due else "kept"
        age = "-" if each.age is None else length_text(each.age)
        rows.append([each.kind, each.name, size_text(each.bytes), age, state, each.reason])
    if rows:
        console.print_table(["what", "name", "size", "last refreshed before", "state", ""], rows)
    for name, error in found.failed.items():
        console.errors().print(f"lakejoin: {name}: {error}", markup=False)
    due = sum(leftover.bytes for leftover in found.due)
    if not found.leftovers:
        said = "Nothing is left of removed views or dead runs."
    elif found.dry_run:
        said = f"This was a dry run: {len(found.due)} of {len(rows)} would be dropped, {size_text(due)}. Add --yes to drop them."
    else:
        said = f"Dropped {len(dropped)} of {len(rows)}, {size_text(sum(leftover.bytes for leftover in found.dropped))}."
    console.out().print(said, markup=False)
