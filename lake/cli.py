"""The lakejoin command: the verbs of the public API, for people and (with --json) for machines.

Exit codes: 0 done, 1 a check failed, 2 the request was wrong, 3 it can't be known. What a person should read goes to standard
error, answers to standard output; never a Spark stack trace alone.
"""

from __future__ import annotations

import itertools
import json
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from lake import console
from lake.errors import LakeError

app = typer.Typer(
    name="lakejoin",
    help="SQL views over Delta Lake tables, kept exact from snapshot to snapshot.",
    epilog="Example: lakejoin --config lakejoin.yml refresh q20",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
View = Annotated[str, typer.Argument(help="The view's name in lakejoin.yml.")]
OptionalView = Annotated[str | None, typer.Argument(help="The view's name in lakejoin.yml; all views without it.")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON, for machines.")]
All = Annotated[bool, typer.Option("--all", help="Every view of the configuration.")]
Until = Annotated[
    list[str] | None, typer.Option("--until", help="TABLE=VERSION (repeat it), or one time such as 2026-01-31T12:00; default: newest.")
]


class _Settings:
    """What the options before the verb say."""

    config = Path("lakejoin.yml")
    env: str | None = None
    run_id = uuid.uuid4().hex[:12]


@app.callback()
def _options(
    context: typer.Context,
    config: Annotated[Path, typer.Option("--config", "-c", help="The configuration file.", envvar="LAKEJOIN_CONFIG")] = Path(
        "lakejoin.yml"
    ),
    env: Annotated[str | None, typer.Option("--env", "-e", help="An environment of the configuration.", envvar="LAKEJOIN_ENV")] = None,
    log_format: Annotated[str, typer.Option("--log-format", help="Logs on standard error: none, text or json.")] = "none",
) -> None:
    settings = _Settings()
    settings.config, settings.env = config, env
    context.obj = settings
    _set_up_logs(log_format, settings.run_id)


@app.command(epilog="Examples: lakejoin refresh q20 | lakejoin refresh q20 --until bid=57 | lakejoin refresh q20 --step 6h")
def refresh(
    context: typer.Context,
    view: OptionalView = None,
    all_views: All = False,
    until: Until = None,
    step: Annotated[str | None, typer.Option("--step", help="In steps of so many commits or so long a time: 100, 30m, 6h, 1d.")] = None,
    as_json: Json = False,
) -> None:
    """Bring a view to the newest snapshot of its sources (or to --until); the first refresh builds it."""
    with _answering() as lake:
        opened = lake(context)
        if step is not None:
            views = opened.in_order(opened.config.views) if all_views else [_required(view)]
            results = [result for v in views for result in opened.catch_up(v, _step(step), _until(until), console.print_progress)]
        elif all_views:
            results = _working("refreshing all views", lambda: opened.refresh_all(_until(until)))
        else:
            results = [_working(f"refreshing {view}", lambda: opened.refresh(_required(view), _until(until)))]
        console.print_results(results, as_json)


@app.command(epilog="Example: lakejoin rebuild q20")
def rebuild(context: typer.Context, view: View, until: Until = None, as_json: Json = False) -> None:
    """Compute a view anew and publish the difference in one commit; readers see the old view until then."""
    with _answering() as lake:
        opened = lake(context)
        console.print_results([_working(f"rebuilding {view}", lambda: opened.rebuild(view, _until(until)))], as_json)


@app.command(
    epilog="Examples: lakejoin backfill q20 --since bid=10 --until bid=40 --step 5 | lakejoin backfill q20 --since 2026-01-01 --dry-run"
)
def backfill(
    context: typer.Context,
    view: View,
    since: Annotated[list[str], typer.Option("--since", help="TABLE=VERSION (repeat it), or one time: where the history begins.")],
    until: Until = None,
    step: Annotated[str, typer.Option("--step", help="So many commits of the sources, or so long a time: 5, 30m, 6h, 1d.")] = "1",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what the steps are, and which are there.")] = False,
    publish: Annotated[bool, typer.Option("--publish", help="Replace the view's own rows by those at the end, in one commit.")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Make all of it again.")] = False,
    as_json: Json = False,
) -> None:
    """Make a view's history over a past range again, step by step, beside the view; `show --at` reads it. Run again, it goes on."""
    with _answering() as lake:
        opened = lake(context)
        made = itertools.count()
        found = opened.backfill(
            view,
            _moment(since, "--since"),
            _until(until),
            _step(step),
            publish=publish,
            restart=restart,
            dry_run=dry_run,
            on_step=lambda done: console.print_step(next(made), done),
        )
        console.print_backfill(found, as_json)


@app.command(epilog="Examples: lakejoin show q20 --limit 5 | lakejoin show q20 --at bid=57 | lakejoin show q20 --json")
def show(
    context: typer.Context,
    view: View,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many rows.")] = 20,
    consistency: Annotated[str, typer.Option("--consistency", help="strong, or eventual for the real-time path's rows.")] = "strong",
    at: Annotated[list[str] | None, typer.Option("--at", help="TABLE=VERSION of a source (repeat it): the view as of then.")] = None,
    as_json: Json = False,
) -> None:
    """Print rows of a view as it was published last, or as of some versions of its sources."""
    with _answering() as lake:
        frame = lake(context).read(view, consistency, _versions(at, "--at") if at else None)
        rows = _working(f"reading {view}", lambda: frame.limit(limit).collect())
        if as_json:
            console.print_json([row.asDict(recursive=True) for row in rows])
        else:
            console.print_table(frame.columns, [[console.shown(v) for v in row] for row in rows])


@app.command(epilog="Examples: lakejoin explain q20 | lakejoin explain q20 --strict")
def explain(
    context: typer.Context,
    view: View,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 where anything would be recomputed.")] = False,
    as_json: Json = False,
) -> None:
    """Show what each operator of a view does on a refresh, and why it is not incremental where it is not."""
    with _answering() as lake:
        opened = lake(context)
        explanation = _working(f"explaining {view}", lambda: opened.explain(view))
        console.print_json(explanation.to_json()) if as_json else console.out.print(str(explanation), markup=False)
        if strict and not explanation.incremental:
            raise typer.Exit(1)


@app.command(epilog="Examples: lakejoin verify q20 | lakejoin verify --all --json")
def verify(context: typer.Context, view: OptionalView = None, all_views: All = False, as_json: Json = False) -> None:
    """Compare a view with its query run from scratch at its snapshot. Exit code 1 where they differ, 3 where it can't be known."""
    with _answering() as lake:
        opened = lake(context)
        views = list(opened.config.views) if all_views else [_required(view)]
        found = [_working(f"verifying {v}", partial(opened.verify, v)).sampled(opened.config.samples) for v in views]
        if as_json:
            console.print_json([d.to_json() for d in found])
        else:
            for d in found:
                text = f"exact: {d.rows:,} rows at {d.snapshot}"
                if not d.exact:
                    text = f"NOT exact at {d.snapshot}: {d.missing:,} rows missing, {d.surplus:,} too many (of {d.rows:,})"
                console.out.print(f"{d.view}: {text}", markup=False)
                for sample in d:
                    console.out.print(f"  {sample.weight:+d} {sample.row}", markup=False)
        if any(not d.exact for d in found):
            raise typer.Exit(1)


@app.command(epilog="Examples: lakejoin status | lakejoin status q20 --json")
def status(context: typer.Context, view: OptionalView = None, as_json: Json = False) -> None:
    """Show for each view and source: published and newest version, lag, and how long its changes can still be read."""
    with _answering() as lake:
        from lake.realtime.command import states

        opened = lake(context)
        rows = _working("reading the logs", lambda: opened.status(view))
        paths = states(opened, dict.fromkeys(row.view for row in rows))
        if as_json:
            console.print_json([row.to_json() | {"realtime": paths.get(row.view)} for row in rows])
            return
        console.print_status(rows, paths)


@app.command(epilog="Examples: lakejoin realtime q20 | lakejoin realtime --all --metrics-port 9090 | lakejoin realtime q20 --available-now")
def realtime(
    context: typer.Context,
    view: OptionalView = None,
    all_views: Annotated[bool, typer.Option("--all", help="Every view with `realtime: true`.")] = False,
    available_now: Annotated[bool, typer.Option("--available-now", help="Process what is there, then end.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Start again from the rows that the strong path published last.")] = False,
    metrics_port: Annotated[int | None, typer.Option("--metrics-port", help="Answer Prometheus there (0: a free port).")] = None,
    metrics_address: Annotated[str, typer.Option("--metrics-address", help="The address to answer Prometheus at.")] = "127.0.0.1",
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for each batch.")] = False,
) -> None:
    """Keep a view's real-time table within seconds of its sources, until stopped (SIGTERM, Ctrl-C) after the batch under way."""
    with _answering() as lake:
        from lake.realtime import command

        opened = lake(context)
        options = command.Options(available_now, reset, metrics_port, metrics_address, as_json)
        code = command.run(opened, None if all_views else _required(view), options)
        if code:
            raise typer.Exit(code)


@app.command(epilog="Examples: lakejoin maintain --all | lakejoin maintain q20 --dry-run")
def maintain(
    context: typer.Context,
    view: OptionalView = None,
    all_views: All = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many files a vacuum would remove.")] = False,
    as_json: Json = False,
) -> None:
    """Compact and vacuum view tables, and sources with `maintain: true`; what a view has still to read stays."""
    with _answering() as lake:
        opened = lake(context)
        found = _working("maintaining", lambda: opened.maintain(None if all_views else _required(view), dry_run))
        console.print_maintenance(found, as_json)


@app.command(epilog="Example: lakejoin init ./lakehouse")
def init(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder under which Delta tables are looked for.")],
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
) -> None:
    """Write a commented lakejoin.yml from the Delta tables under a folder."""
    from lake.init import write_config

    with _answering():
        written = write_config(folder, context.obj.config, force)
        console.out.print(f"Wrote {context.obj.config} with {len(written)} tables: {', '.join(written)}.", markup=False)
        console.out.print("Next: define a view in it, then lakejoin refresh VIEW.")


@app.command(epilog="Example: lakejoin doctor")
def doctor(context: typer.Context, as_json: Json = False) -> None:
    """Check Python, Java, Spark, Delta, jars, and each place in the configuration; a remedy a line."""
    from lake.doctor import examine

    with _answering():
        findings = _working("examining", lambda: examine(context.obj.config, context.obj.env))
        if as_json:
            console.print_json([f.to_json() for f in findings])
        else:
            for f in findings:
                console.out.print(f"{'ok   ' if f.ok else 'WRONG'} {f.what}: {f.found}{'' if f.ok else f'. {f.remedy}'}", markup=False)
        if not all(f.ok for f in findings):
            raise typer.Exit(1)


def main() -> None:
    """The entry point of the `lakejoin` command."""
    app()


@contextmanager
def _answering() -> Iterator[Callable[[typer.Context], Any]]:
    """Turn errors into a message for a person and an exit code."""

    def opened(context: typer.Context) -> Any:
        from lake.lakehouse import open_lake  # Spark is loaded only by the verbs that need it
        from lake.session import quieten

        quieten()
        return open_lake(context.obj.config, env=context.obj.env)

    try:
        yield opened
    except LakeError as error:
        console.errors.print(f"lakejoin: {error}", markup=False)
        raise typer.Exit(error.exit_code) from error
    except KeyboardInterrupt as error:
        console.errors.print("lakejoin: interrupted; what was published stays as it was.", markup=False)
        raise typer.Exit(130) from error


def _working(what: str, work: Callable[[], Any]) -> Any:
    if not console.errors.is_terminal:
        return work()
    with console.errors.status(what):
        return work()


def _required(view: str | None) -> str:
    if view is None:
        raise typer.BadParameter("name a view, or give --all")
    return view


def _until(values: list[str] | None) -> dict[str, int] | str | None:
    return _moment(values, "--until") if values else None


def _moment(values: list[str], option: str) -> dict[str, int] | str:
    """Versions of tables, or a time."""
    return values[0] if len(values) == 1 and "=" not in values[0] else _versions(values, option, " or one time")


def _versions(values: list[str], option: str, otherwise: str = "") -> dict[str, int]:
    found = {}
    for value in values:
        table, _, version = value.partition("=")
        if not version.isdigit():
            raise typer.BadParameter(f"{option} is TABLE=VERSION{otherwise}, not {value!r}")
        found[table] = int(version)
    return found


def _step(text: str) -> int | timedelta:
    """So many commits, or so long a time."""
    units = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
    number, unit = (text[:-1], text[-1]) if text and text[-1] in units else (text, "")
    if not number.isdigit():
        raise typer.BadParameter(f"--step is a number of commits, or of seconds, minutes, hours or days (30m, 6h, 1d), not {text!r}")
    return timedelta(seconds=int(number) * units[unit]) if unit else int(number)


def _set_up_logs(log_format: str, run_id: str) -> None:
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    if log_format == "none":
        return
    handler = logging.StreamHandler()

    def form(record: logging.LogRecord) -> str:
        body = {"time": datetime.now(UTC).isoformat(), "run_id": run_id, "level": record.levelname, "message": record.getMessage()}
        body |= getattr(record, "lakejoin", {})
        return json.dumps(body, default=str) if log_format == "json" else " ".join(f"{k}={v}" for k, v in body.items())

    handler.format = form  # type: ignore[method-assign]
    logger = logging.getLogger("lakejoin")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


if __name__ == "__main__":
    main()
