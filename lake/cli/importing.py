"""`lakejoin import dbt`: writes a lakejoin.yml from a manifest of dbt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lake.cli import console
from lake.cli.arguments import Json
from lake.cli.context import invocation, write_atomically
from lake.errors import ConfigError

if TYPE_CHECKING:  # --help needs none of it
    from lake.config.dbt_import import Imported

app = typer.Typer(help="Write a lakejoin.yml from the project of another tool.", no_args_is_help=True, rich_markup_mode=None)


@app.command(epilog="Examples: lakejoin import dbt target/manifest.json | lakejoin import dbt target/manifest.json -o lake/lakejoin.yml")
def dbt(
    context: typer.Context,
    manifest: Annotated[Path, typer.Argument(help="The manifest.json that dbt compile (or dbt build) wrote: of dbt 1.6 or newer.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write. Default: that of --config.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: Json = False,
) -> None:
    """Write a lakejoin.yml from dbt's manifest: models become views; sources, seeds and snapshots become tables.

    Models that can't be views are listed with the reason. Exit code 2: there is no model that can be a view.
    """
    with invocation(context):
        from lake.config.dbt_import import import_dbt
        from lake.config.dbt_manifest import read_manifest

        file = output if output is not None else context.obj.config
        if file.exists() and not force:
            raise ConfigError(f"{file} already exists. Overwrite it with --force, or give another file with --output.")
        found = import_dbt(read_manifest(manifest), str(manifest))
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, found.text)
        console.print_json({"file": str(file), **found.to_json()}) if as_json else _print(found, file)


def _print(found: Imported, file: Path) -> None:
    for node in found.skipped:
        table = " It is a table here: dbt goes on to build it." if node.as_table else ""
        console.errors().print(f"not imported: model {node.name}: {node.reason}.{table}", markup=False)
    for warning in found.warnings:
        console.errors().print(f"warning: {warning}", markup=False)
    console.out().print(f"Wrote {file} with {len(found.views)} views and {len(found.tables)} tables.", markup=False)
    console.out().print("Next: look through it, then lakejoin doctor, and lakejoin refresh --all.")
