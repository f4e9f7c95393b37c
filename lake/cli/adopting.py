"""`lakejoin adopt`: show how a table compares with a view's query, and make it the view's table after a question, or with --yes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lake.cli import console
from lake.cli.arguments import Json, moment
from lake.cli.context import invocation
from lake.cli.dropping import has_terminal
from lake.cli.remote import in_server
from lake.errors import ConfigError, RowsDifferError

if TYPE_CHECKING:  # --help needs none of it
    from lake.core.adoption import Adoption


@in_server
def adopt(
    context: typer.Context,
    view: Annotated[str, typer.Argument(help="The view's name in lakejoin.yml. It must not be built yet.")],
    table: Annotated[
        str | None,
        typer.Option("--table", help="The folder of the table, or its name in a catalog. Default: the place of the view's table."),
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option("--at", help="TABLE=VERSION of each source (bid=57,auction=12; repeatable), or a time: what the table was made of."),
    ] = None,
    verify_first: Annotated[
        bool, typer.Option("--verify-first", help="Find the snapshot: try the newest versions, then those at the times of its commits.")
    ] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Where rows differ, publish the difference in the same commit.")] = False,
    accept: Annotated[
        list[str] | None, typer.Option("--accept", help="Adopt despite this finding of a blocking expectation. Repeatable.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only compare, and say what would be done. Write nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Let a view go on from a table that another job made, without building it: prove that its rows are the query's at a snapshot, then
    make it the view's table, in one commit. A table elsewhere is moved to the view's place.

    Exit code 1: the rows differ (and how is shown); 3: the versions can no longer be read. If it is interrupted, run it again.
    """
    with invocation(context) as invoked:
        if not (yes or dry_run) and not has_terminal():
            raise ConfigError(
                "There is no terminal in which to ask whether to write into the table. Nothing was done. Add --yes, or --dry-run to only "
                "compare it."
            )
        lake = invoked.lake()

        def may(found: Adoption) -> bool:
            if yes:
                return True
            for line in _lines(found):
                console.errors().print(line, markup=False)
            return typer.confirm(f"Make it the table of view {view}?", err=True)

        asked = {"repair": repair, "verify_first": verify_first, "dry_run": dry_run, "accept": accept or ()}
        try:
            found = lake.adopt(
                view, table, _moment(at), **asked, may=may, on_progress=lambda text: console.errors().print(text, markup=False)
            )
        except RowsDifferError as error:
            if as_json:
                console.print_json(_differing(view, error.found))
            raise
        _print(found, as_json)
        if found.state == "declined" or (found.state == "differs" and not repair):
            raise typer.Exit(1)


def _moment(values: list[str] | None) -> dict[str, int] | str | None:
    """Versions of tables, given as `a=1,b=2` or one by one, or a time."""
    return moment([part for value in values for part in value.split(",")], "--at") if values else None


def _differing(view: str, found: Any) -> dict[str, Any]:
    """What is known of a table whose rows differ: at one snapshot, or at none of those that were tried."""
    return {"view": view, "state": "differs", "tried": [asdict(t) for t in found]} if isinstance(found, tuple) else found.to_json()


def _print(found: Adoption, as_json: bool) -> None:
    if as_json:
        console.print_json(found.to_json())
        return
    for line in (*(_lines(found) if found.state != "declined" else ()), _ended(found)):
        console.out().print(line, markup=False)


def _lines(found: Adoption) -> Iterator[str]:
    """What was found, and what adopting the table means for it."""
    yield f"{found.table} (version {found.version}), compared with the query of {found.view} at {found.snapshot}: {found.apart}."
    yield from (f"    {change}" for change in found.changes)


def _ended(found: Adoption) -> str:
    """The result in a line."""
    if found.state == "adopted":
        rows = f", +{found.rows_inserted:,} -{found.rows_deleted:,} rows" if found.rows_inserted or found.rows_deleted else ""
        rows += f", {found.rows_rewritten:,} rows written once more" if found.rows_rewritten else ""
        again = f"lakejoin refresh {found.view}"
        return f"{found.view}: adopted{rows}, now at {found.snapshot} ({found.seconds:.1f} s). Next: {again}"
    if found.state == "declined":
        return "Nothing was written."
    wanted = "It can be adopted" if found.apart.equal else "With --repair it can be adopted"
    return f"This was a dry run: nothing was written. {wanted} at {found.snapshot}."
