"""`lakejoin test`: runs tests of views, and prints each result as the test ends, with the rows that differ."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lake.cli import console
from lake.cli.arguments import Json
from lake.cli.context import GlobalOptions, invocation, working, write_atomically
from lake.errors import ConfigError

if TYPE_CHECKING:  # --help needs none of it
    from lake.config.models import Config
    from lake.config.view_tests import Declared
    from lake.core.view_test_results import Problem, TestOutcome, TestRun


def run_view_tests(
    context: typer.Context,
    views: Annotated[list[str] | None, typer.Argument(help="The views whose tests are run. Default: all.")] = None,
    chosen: Annotated[str | None, typer.Option("-k", help="Run only tests with this text in their names.")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Also write the results to this file, as JUnit XML.")] = None,
    as_json: Json = False,
) -> None:
    """Run the tests of views that lakejoin.yml and its test files hold, on tables in a temporary folder.

    Each test builds its view from given rows, changes them, refreshes the view, and compares it with the expected rows and with its query
    run from scratch. The lake is not written; the columns of its tables are read, if they exist.

    Exit code 1: a test failed; 2: a test could not run.
    """
    with invocation(context):
        from lake.cli.junit import junit as as_xml

        config, tests = _asked(context.obj, views or (), chosen)
        with tempfile.TemporaryDirectory(prefix="lakejoin-test-", ignore_cleanup_errors=True) as folder:
            run = _run(config, tests, Path(folder), quiet=as_json)
        if junit is not None:
            write_atomically(junit, as_xml(run))
        console.print_json(run.to_json()) if as_json else console.out().print(run.summary, markup=False)
        if run.exit_code:
            raise typer.Exit(run.exit_code)


def _asked(settings: GlobalOptions, views: Sequence[str], chosen: str | None) -> tuple[Config, list[Declared]]:
    """The configuration and the tests to run. Raises ConfigError if there are none."""
    from lake.config.view_tests import load_tests

    config, tests = load_tests(settings.config, settings.env)
    for view in views:
        config.view(view)
    found = [one for one in tests if one.test.view in (views or config.views) and (chosen or "").lower() in one.test.name.lower()]
    if not found:
        of = f" of {', '.join(views)}" if views else ""
        named = f" with {chosen!r} in their names" if chosen else ""
        raise ConfigError(
            f"There are no tests{of}{named}. Tests of views stand below `tests:` in {settings.config}, or in tests/*.yml beside it."
        )
    return config, found


def _run(config: Config, tests: Sequence[Declared], folder: Path, quiet: bool) -> TestRun:
    """Run tests, and print each result as it is there. `folder`: for what Spark writes besides."""
    from lake.core.view_test_results import TestRun
    from lake.opening import opened
    from lake.quality.view_tests.run import run_tests, session_settings
    from lake.spark.session import silence_pyspark_errors

    silence_pyspark_errors()
    settings = {"spark.sql.warehouse.dir": str(folder), **session_settings(config)}  # Spark would make it in the current folder
    session = {"tables": {}, "views": {}, "spark": settings}
    spark = working("starting Spark", lambda: opened(config.model_copy(update=session), one_command=True).spark)
    outcomes: list[TestOutcome] = []
    running = run_tests(spark, config, tests)
    for declared in tests:
        outcomes.append(working(f"testing {declared.test.view}: {declared.test.name}", lambda: next(running)))
        if not quiet:
            _print(outcomes[-1])
    return TestRun(tuple(outcomes))


def _print(outcome: TestOutcome) -> None:
    """Print a line for a test, and what was wrong."""
    word = {"passed": "passed", "failed": "FAILED", "error": "ERROR "}[outcome.state]
    modes = f"; {', '.join(outcome.modes)}" if outcome.modes else ""
    console.out().print(f"{word} {outcome.view}: {outcome.name} ({outcome.seconds:.1f} s{modes})", markup=False)
    for problem in outcome.problems:
        console.out().print(f"  {problem.text if outcome.state == 'error' else problem}", markup=False)
        _print_rows(problem)
    if outcome.note:
        console.out().print(f"  note: {outcome.note}.", markup=False)


def _print_rows(problem: Problem) -> None:
    if problem.rows:
        console.print_table(["", *problem.columns], problem.rows)
