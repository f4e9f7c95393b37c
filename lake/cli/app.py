"""The lakejoin command: each command calls one function of the Python API and prints its result, with --json as JSON.

Exit codes: 0 success, 1 a check failed, 2 the request was wrong, 3 the answer can't be determined (versions expired). Results go to
standard output; messages and errors go to standard error. A stack trace is printed with --debug only.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from lake import __version__
from lake.cli import adopting, console, dropping, environments, importing, planning, watching
from lake.cli.arguments import BackfillMode, Json, Kind, RowFormat, moment, step_of, time_of, until_of, versions
from lake.cli.context import GlobalOptions, invocation, with_progress, working
from lake.cli.logs import set_up_logs
from lake.cli.remote import in_server, taking, wrote_report
from lake.cli.view_tests import run_view_tests
from lake.errors import LakeError, SourceError

app = typer.Typer(
    name="lakejoin",
    help="Keeps SQL views over Delta Lake tables exactly up to date, incrementally.",
    epilog="Example: lakejoin --config lakejoin.yml refresh q20",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
View = Annotated[str, typer.Argument(help="The view's name in lakejoin.yml.")]
OptionalView = Annotated[
    str | None, typer.Argument(help="The view's name in lakejoin.yml. Without it: all views (some commands ask for --all).")
]
Accept = Annotated[
    list[str] | None, typer.Option("--accept", help="Publish despite this finding of a blocking expectation, once. Repeatable.")
]
_Versions = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also print the versions of each source, and how long its changes stay readable.")
]
All = Annotated[bool, typer.Option("--all", help="All views of the configuration.")]
Until = Annotated[
    list[str] | None,
    typer.Option("--until", help="TABLE=VERSION (repeatable), or one time such as 2026-01-31T12:00. Default: the newest versions."),
]


def _version(asked: bool) -> None:
    if asked:
        print(f"lakejoin {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    config: Annotated[Path, typer.Option("--config", "-c", help="The configuration file.", envvar="LAKEJOIN_CONFIG")] = Path(
        "lakejoin.yml"
    ),
    env: Annotated[
        str | None, typer.Option("--env", "-e", help="The environment of the configuration to use.", envvar="LAKEJOIN_ENV")
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            help="The name of a scheduled run: the result is stored under this name. NAME::PART has the snapshot of the run NAME.",
        ),
    ] = None,
    log_format: Annotated[str, typer.Option("--log-format", help="The format of logs on standard error: none, text or json.")] = "none",
    debug: Annotated[bool, typer.Option("--debug", help="Also print the stack trace of an error.")] = False,
    server: Annotated[
        str,
        typer.Option(
            "--server",
            envvar="LAKEJOIN_SERVER",
            help="auto: use the running `lakejoin serve` of this configuration, if there is one; off: do not; or its address (https://...).",
        ),
    ] = "auto",
    version: Annotated[bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version and exit.")] = False,
) -> None:
    context.obj = GlobalOptions(config, env, run, debug, server, log_format, lasts=context.invoked_subcommand == "realtime")
    set_up_logs(log_format, os.urandom(6).hex())


@app.command(epilog="Examples: lakejoin refresh q20 | lakejoin refresh q20 --until bid=57 | lakejoin refresh q20 --step 6h")
@in_server
def refresh(
    context: typer.Context,
    views: Annotated[list[str] | None, typer.Argument(help="The names of views. If one fails, the views that read it are skipped.")] = None,
    all_views: All = False,
    until: Until = None,
    step: Annotated[
        str | None, typer.Option("--step", help="Refresh in steps of this many commits (100) or this length of time (30m, 6h, 1d).")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Check each view after its refresh, as lakejoin check does.")] = False,
    accept: Accept = None,
    profile: Annotated[bool, typer.Option("--profile", help="Print the time of each phase, of Spark jobs and of code generation.")] = False,
    parallel: Annotated[
        int | None, typer.Option("--parallel", min=1, help="How many views to refresh at once. Default: parallel in lakejoin.yml.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Bring views up to date with the newest versions of their sources, or those of --until. The first refresh builds a view.

    With --run NAME (before `refresh`), the first attempt of a run chooses the snapshot, and its retries refresh to the same snapshot.
    """
    with invocation(context) as invoked:
        opened = invoked.lake(strict=False)
        names = list(opened.config.views) if all_views else views or [_required(None)]
        if accept and (len(names) > 1 or step is not None or check or context.obj.run):
            raise typer.BadParameter("--accept works for one view only, without --step, --check and --run")
        if parallel and parallel > 1 and (profile or step is not None):
            raise typer.BadParameter("--parallel works without --profile and --step, which refresh one view after the other")
        if step is not None:
            steps = [
                s
                for v in opened.in_order(names)
                for s in opened.catch_up(v, step_of(step), until_of(until), profile=profile, on_step=console.print_made).steps
            ]
            console.print_results([s.result for s in steps], as_json)
        elif len(names) > 1 or check or context.obj.run:
            from lake.cli.scheduled_run import GroupRefresh
            from lake.quality.after_refresh import check_after_refresh

            checker = check_after_refresh if check else None
            group = GroupRefresh(opened, names, until_of(until), checker, console.print_outcome, profile, parallel)
            came = group.run(invoked.run)
            console.print_run(came, as_json)
            if came.exit_code:
                raise typer.Exit(came.exit_code)
        else:
            done = working(f"refreshing {names[0]}", lambda: opened.refresh(names[0], until_of(until), accept or (), profile))
            console.print_results([done], as_json)


@app.command(epilog="Example: lakejoin rebuild q20")
@in_server
def rebuild(
    context: typer.Context,
    view: View,
    until: Until = None,
    accept: Accept = None,
    as_json: Json = False,
) -> None:
    """Recompute a view and publish the difference in one commit. Until then readers see the old rows."""
    with invocation(context) as invoked:
        opened = invoked.lake()
        console.print_results([working(f"rebuilding {view}", lambda: opened.rebuild(view, until_of(until), accept or ()))], as_json)


@app.command(
    epilog="Examples: lakejoin backfill q20 --since bid=10 --until bid=40 --step 5 | lakejoin backfill q20 --since 2026-01-01 --dry-run"
)
@in_server
def backfill(
    context: typer.Context,
    view: View,
    since: Annotated[
        list[str] | None, typer.Option("--since", help="TABLE=VERSION (repeatable), or a time: the start of a replay.")
    ] = None,
    until: Until = None,
    step: Annotated[
        str, typer.Option("--step", help="The size of a step: a number of commits (5) or a length of time (30m, 6h, 1d).")
    ] = "1",
    mode: Annotated[
        BackfillMode, typer.Option("--mode", help="replay: past states, beside the view; the others change the view itself.")
    ] = BackfillMode.replay,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the steps, and which of them exist.")] = False,
    publish: Annotated[
        bool, typer.Option("--publish", help="At the end of a replay, publish its rows as those of the view, in one commit.")
    ] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Delete the replay of earlier backfills and start again.")] = False,
    as_json: Json = False,
) -> None:
    """Re-create past states of a view in a table beside it, step by step; `show --at` reads them. A second run continues the first.

    --mode catch-up refreshes the view itself to --until in steps. --mode rebuild recomputes it at --until, in one commit.
    """
    with invocation(context) as invoked:
        if mode != BackfillMode.replay and (since or publish or restart):
            raise typer.BadParameter(
                f"--since, --publish and --restart need --mode replay: --mode {mode} starts at the view's own snapshot"
            )
        if mode == BackfillMode.replay and not since:
            raise typer.BadParameter("--mode replay needs --since: the start of the range")
        opened = invoked.lake(strict=False)
        made, to, size = console.Steps(), until_of(until), step_of(step)
        if mode == BackfillMode.replay:
            asked = {"publish": publish, "restart": restart, "dry_run": dry_run, "on_step": made}
            found = opened.backfill(view, moment(since or [], "--since"), to, size, **asked)
        elif mode == BackfillMode.catch_up:
            found = opened.catch_up(view, size, to, dry_run=dry_run, on_step=made)
        else:
            found = opened.rebuild_at(view, to, dry_run=dry_run)
        invoked.store(found.to_json())
        console.print_backfill(found, as_json)


@app.command(
    epilog="Examples: lakejoin show q20 --limit 5 | lakejoin show q20 --at bid=57 | "
    "lakejoin show q20 --where 'price > 100' --order-by 'price DESC' --format csv"
)
@in_server
def show(
    context: typer.Context,
    view: View,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="The number of rows to print.")] = 20,
    consistency: Annotated[str, typer.Option("--consistency", help="strong: the view; eventual: its real-time table.")] = "strong",
    at: Annotated[
        list[str] | None, typer.Option("--at", help="TABLE=VERSION of a source (repeatable): the view at these versions.")
    ] = None,
    where: Annotated[
        str | None, typer.Option("--where", help="A condition in Spark SQL over the view's columns, without subqueries.")
    ] = None,
    order_by: Annotated[
        str | None, typer.Option("--order-by", help="Columns, such as 'price DESC, item'. Default: the ORDER BY of the view's query.")
    ] = None,
    row_format: Annotated[RowFormat, typer.Option("--format", help="How to print the rows.")] = RowFormat.table,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Print rows of a view as last published, or at given versions of its sources."""
    with invocation(context) as invoked:
        if as_json and row_format == RowFormat.csv:
            raise typer.BadParameter("--json is --format json: give one of them")
        opened = invoked.lake()
        frame = opened.read(view, consistency, versions(at, "--at") if at else None)
        from lake.cli.row_format import shown_rows
        from lake.cli.showing import chosen, print_rows

        found = chosen(frame, opened.config, view, where, order_by)
        rows = working(f"reading {view}", lambda: shown_rows(found, limit))
        print_rows(frame.columns, rows, RowFormat.json if as_json else row_format)


@app.command(epilog="Examples: lakejoin explain q20 | lakejoin explain q20 --strict | lakejoin explain q20 --why-not")
@in_server
def explain(
    context: typer.Context,
    view: View,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a refresh would recompute anything.")] = False,
    why_not: Annotated[bool, typer.Option("--why-not", help="Print only what to change in the query to make it incremental.")] = False,
    as_json: Json = False,
) -> None:
    """Print what each operator of a view does on a refresh, and the reason if it is not incremental."""
    with invocation(context) as invoked:
        opened = invoked.lake()
        explanation = working(f"explaining {view}", lambda: opened.explain(view))
        told = explanation.why_not if why_not else str(explanation)
        console.print_json(explanation.to_json()) if as_json else console.out().print(told, markup=False)
        if strict and not explanation.incremental:
            raise typer.Exit(1)


@app.command(epilog="Examples: lakejoin verify q20 | lakejoin verify --all --json")
@in_server
def verify(context: typer.Context, view: OptionalView = None, all_views: All = False, as_json: Json = False) -> None:
    """Compare a view with its query, run from scratch by plain Spark at the view's snapshot.

    Rows that differ are counted and, by the view's key, shown side by side, as far as `samples` allows. Commits on the view's table that
    Lakejoin did not write are listed with the rows that they changed.

    Exit code 1: they differ, or the table has such a commit; 3: the versions of the snapshot can no longer be read. With --all, an error
    of one view does not stop the others.
    """
    with invocation(context) as invoked:
        opened = invoked.lake(strict=False)
        found, failed = list[Any](), dict[str, LakeError]()
        for name in opened.config.views if all_views else [_required(view)]:
            try:
                found.append(working(f"verifying {name}", partial(opened.verify, name)).sampled(opened.shown(name)))
            except Exception as error:  # one view's failure does not stop the others
                if not all_views:
                    raise
                failed[name] = invoked.reported(error)
        invoked.store(console.print_differences(found, failed, as_json))
        code = 1 if any(not d.exact or d.other_commits for d in found) else max((error.exit_code for error in failed.values()), default=0)
        if code:
            raise typer.Exit(code)


@app.command(epilog="Examples: lakejoin check q20 | lakejoin check --all --verbose | lakejoin check --all --report --json")
@in_server
def check(
    context: typer.Context,
    view: OptionalView = None,
    all_views: All = False,
    with_report: Annotated[bool, typer.Option("--report", help="Also write the report, beside the results.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also print the checks that passed.")] = False,
    as_json: Json = False,
) -> None:
    """Check views and their sources: exactness, agreement of the two paths, freshness, retention, expectations.

    What failed is printed, with what to run, and a line for all. Results are stored (quality_results, Data Docs). A finding is reported
    when it opens, escalates or is resolved.

    Exit code 1: a check failed; 3: a check could not run.
    """
    with invocation(context) as invoked:
        opened = invoked.lake(strict=False)
        names = list(opened.config.views) if all_views else [_required(view)]
        for name in names:
            opened.config.view(name)
        from lake.cli.check_output import print_checked
        from lake.quality.checks import Checks  # loads Great Expectations, for those only who check

        found, written = working(f"checking {', '.join(names)}", lambda: Checks(opened).run(names)), ""
        if with_report:
            from lake.quality.report import store_report

            written = store_report(opened)
        invoked.store(found.to_json())
        console.print_json(found.to_json()) if as_json else print_checked(found, verbose, written and opened.config.report_url)
        if found.exit_code:
            raise typer.Exit(found.exit_code)


@app.command(epilog="Examples: lakejoin report -o report.html | lakejoin report q20 -o q20.html")
@in_server
def report(
    context: typer.Context,
    view: OptionalView = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write; - for standard output.")] = Path("report.html"),
) -> None:
    """Write a report of the results of checks and refreshes of each view: one HTML file, which needs no network."""
    with invocation(context) as invoked:
        from lake.quality.report import report as page

        opened = invoked.lake()
        names = [view] if view is not None else list(opened.config.views)
        text = working("writing the report", lambda: page(opened, names))
        if output == Path("-"):
            print(text, file=console.out().file)
        else:
            wrote_report(output, text)


@app.command(epilog="Example: lakejoin snooze F1a2b3c4d --until 2026-12-01 --reason 'the loader is being repaired'")
@in_server
def snooze(
    context: typer.Context,
    finding: Annotated[str, typer.Argument(help="The identifier of the finding, as lakejoin check prints it.")],
    until: Annotated[str, typer.Option("--until", help="The end of the snooze: a time such as 2026-12-01 or 2026-12-01T12:00 (UTC).")],
    reason: Annotated[str, typer.Option("--reason", help="Why the finding can wait. It is stored with your user name.")],
    as_json: Json = False,
) -> None:
    """Mute a finding until a given time: it fails no check and is not reported, unless it escalates."""
    with invocation(context) as invoked:
        from lake.quality.decisions import snooze_finding

        row = snooze_finding(invoked.lake(), finding, time_of(until), reason)
        console.print_json(row) if as_json else console.out().print(f"{finding} is snoozed until {row['until']}: {reason}", markup=False)


@in_server
def status(
    context: typer.Context,
    view: OptionalView = None,
    verbose: _Versions = False,
    as_json: Json = False,
) -> None:
    """Print the state of each view, worst first, with what is wrong and what to run.

    Exit code 1: a view needs somebody (failed, refused, expired, wrong or stopped).
    """
    with invocation(context) as invoked:
        from lake.cli.status import look

        found = working("reading the logs", lambda: look(invoked, view))
        if as_json:
            console.print_json(found.to_json())
        else:
            console.print_status(found.states, found.rows if verbose else (), found.paths)
            console.print_health(found.checked)
        if any(one.needs_somebody for one in found.states):
            raise typer.Exit(1)


@app.command("status", help=status.__doc__, epilog="Examples: lakejoin status | lakejoin status q20 --json | lakejoin status --watch 5")
def watched_status(
    context: typer.Context,
    view: OptionalView = None,
    verbose: _Versions = False,
    watch: Annotated[float | None, typer.Option("--watch", "-w", min=1, help="Look again every so many seconds, until Ctrl-C.")] = None,
    as_json: Json = False,
) -> None:
    """`status`, which a server can carry out, once or again and again."""
    options = {"view": view, "verbose": verbose, "as_json": as_json}
    if watch is None or taking.get() is not None:  # a server looks once
        status(context, **options)
    else:
        watching.repeat(lambda: status(context, **options), watch)


@app.command(epilog="Examples: lakejoin history q20 | lakejoin history q20 --limit 100 --json")
@in_server
def history(
    context: typer.Context,
    view: View,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The number of versions to print, newest first.")] = 20,
    as_json: Json = False,
) -> None:
    """Print the published versions of a view, newest first: when, how and why, how many rows changed, and from which versions."""
    with invocation(context) as invoked:
        opened = invoked.lake()
        opened.config.view(view)
        found = working("reading the log", lambda: list(opened.history(view)))[: -limit - 1 : -1]
        console.print_history(found, as_json)


@app.command(epilog="Examples: lakejoin realtime q20 | lakejoin realtime --all --metrics-port 9090 | lakejoin realtime q20 --available-now")
def realtime(
    context: typer.Context,
    view: OptionalView = None,
    all_views: Annotated[bool, typer.Option("--all", help="All views with `realtime`.")] = False,
    available_now: Annotated[bool, typer.Option("--available-now", help="Process the commits that exist now, then exit.")] = False,
    reset: Annotated[
        bool, typer.Option("--reset", help="Replace the real-time table by the rows of the view, and continue from there.")
    ] = False,
    metrics_port: Annotated[
        int | None, typer.Option("--metrics-port", help="Serve Prometheus metrics on this port (0: any free port).")
    ] = None,
    metrics_address: Annotated[
        str,
        typer.Option("--metrics-address", help="The address on which metrics are served. The default is reachable from this machine only."),
    ] = "127.0.0.1",
    rendered: Annotated[
        Kind | None,
        typer.Option("--render", help="Print a systemd unit, Kubernetes manifest or Compose file that keeps the path running."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each batch.")] = False,
) -> None:
    """Keep the real-time table of a view up to date within seconds. SIGTERM or Ctrl-C stops it after the current batch."""
    with invocation(context) as invoked:
        if rendered is not None:
            from lake.cli.render import realtime_service, render

            named = None if all_views else _required(view)
            print(render(rendered, context.obj.config, realtime_service(context.obj.config, context.obj.env, named, metrics_port)))
            return
        from lake.cli import realtime

        opened = invoked.lake()
        options = realtime.Options(available_now, reset, metrics_port, metrics_address, as_json)
        code = realtime.run(opened, None if all_views else _required(view), options)
        if code:
            raise typer.Exit(code)


@app.command(epilog="Examples: lakejoin maintain --all | lakejoin maintain q20 --dry-run")
@in_server
def maintain(
    context: typer.Context,
    view: OptionalView = None,
    all_views: All = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print how many files a vacuum would remove.")] = False,
    as_json: Json = False,
) -> None:
    """Compact and vacuum the tables of views, and sources with `maintain: true`. Files that a view has yet to read are not removed."""
    with invocation(context) as invoked:
        opened = invoked.lake()
        found = working("maintaining", lambda: opened.maintain(None if all_views else _required(view), dry_run))
        invoked.store(found.to_json())
        console.print_maintenance(found, as_json)
        if found.failed:
            raise typer.Exit(SourceError.exit_code)


@app.command(epilog="Examples: lakejoin serve | lakejoin serve --background | lakejoin serve --status | lakejoin serve --stop")
def serve(
    context: typer.Context,
    background: Annotated[bool, typer.Option("--background", help="Start the server in the background, and wait for it.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="End the running server; its requests may finish within --drain.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Print what the running server does. Exit code 1: there is none.")] = False,
    listen: Annotated[
        str | None, typer.Option("--listen", help="Also listen on HOST:PORT (port 0: a free one); this needs a token.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="The file with the token of --listen. Default: the variable LAKEJOIN_TOKEN.")
    ] = None,
    read_only_token_file: Annotated[
        Path | None,
        typer.Option("--read-only-token-file", help="A file with a token for reading only. Default: LAKEJOIN_READ_ONLY_TOKEN, if set."),
    ] = None,
    host_name: Annotated[
        list[str] | None, typer.Option("--host-name", help="A name by which clients of --listen call this server. Repeatable.")
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option("--tls-certificate", help="The certificate of --listen with its chain (PEM).")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="The key of the certificate (PEM).")] = None,
    parallel: Annotated[
        int | None, typer.Option("--parallel", min=1, help="How many requests run at once. Default: the number of cores.")
    ] = None,
    queue: Annotated[int, typer.Option("--queue", min=1, help="How many requests may wait; further ones are refused.")] = 100,
    timeout_minutes: Annotated[
        float | None, typer.Option("--timeout-minutes", min=0.01, help="Cancel a request that runs longer. Default: no limit.")
    ] = None,
    idle_minutes: Annotated[
        float | None,
        typer.Option("--idle-minutes", min=0, help="End after so long without requests; 0: never. Default: 180 in the background, else 0."),
    ] = None,
    drain: Annotated[float, typer.Option("--drain", min=0, help="Seconds in which running requests may finish at the end.")] = 60.0,
    rendered: Annotated[
        Kind | None,
        typer.Option("--render", help="Print a systemd unit, Kubernetes manifest or Compose file that keeps the server running."),
    ] = None,
    connect: Annotated[
        int | None,
        typer.Option(
            "--connect", min=1, max=65535, help="Also serve Spark Connect clients of this machine on this port, with LAKEJOIN_TOKEN."
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Refresh views by their `schedule` or `refresh: changes`, without Airflow.")
    ] = False,
    watch_seconds: Annotated[
        float, typer.Option("--watch-seconds", min=0.1, help="How often --watch looks for new versions of tables.")
    ] = 5.0,
    as_json: Json = False,
) -> None:
    """Keep Spark running for this configuration, so that commands take no time to start it. They find the server by themselves.

    The server listens on a Unix socket that only this user can open, and answers the same verbs over HTTP.
    """
    with invocation(context):
        if background + stop + status + (rendered is not None) > 1:
            raise typer.BadParameter("--background, --stop, --status and --render exclude each other")
        if rendered is not None:
            from lake.cli.render import SERVER_PORT, render, server_service

            print(render(rendered, context.obj.config, server_service(context.obj.config, context.obj.env, SERVER_PORT)))
            return
        from lake.cli import serve as serving

        if stop:
            serving.stop(context.obj)
            return
        if status:
            code = serving.show_status(context.obj, as_json)
        else:
            names, tls = tuple(host_name or ()), (tls_certificate, tls_key)
            tokens = (token_file, read_only_token_file)
            limits = serving.Bounds(parallel, queue, timeout_minutes, idle_minutes, drain)
            options = serving.Options(listen, *tokens, names, *tls, limits, watch_seconds if watch else None, connect)
            if background:
                serving.start_in_background(context.obj, options, as_json)
                return
            code = serving.serve(context.obj, options)
        if code:
            raise typer.Exit(code)


@app.command(epilog="Example: lakejoin init ./lakehouse")
def init(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder to search for Delta tables.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a lakejoin.yml, with comments, for the Delta tables in a folder."""
    from lake.cli.init import write_config

    with invocation(context):
        written = write_config(folder, context.obj.config, force)
        console.out().print(f"Wrote {context.obj.config} with {len(written)} tables: {', '.join(written)}.", markup=False)
        console.out().print("Next: define a view in it, then lakejoin refresh VIEW.")


@app.command(epilog="Example: lakejoin doctor")
def doctor(context: typer.Context, as_json: Json = False) -> None:
    """Check the installation (Python, Java, Spark, Delta, jars) and every table of the configuration; print how to fix each problem."""
    from lake.cli.doctor import examine

    with invocation(context):
        findings = working("examining", lambda: examine(context.obj.config, context.obj.env))
        if as_json:
            console.print_json([f.to_json() for f in findings])
        else:
            for f in findings:
                console.out().print(f"{'ok   ' if f.ok else 'WRONG'} {f.what}: {f.found}{'' if f.ok else f'. {f.remedy}'}", markup=False)
        if not all(f.ok for f in findings):
            raise typer.Exit(1)


@app.command(epilog="Examples: lakejoin setup | lakejoin setup --no-archive --json")
def setup(
    context: typer.Context,
    no_archive: Annotated[bool, typer.Option("--no-archive", help="Do not create the class archive.")] = False,
    as_json: Json = False,
) -> None:
    """Download Delta's jars (87 MB), compile Lakejoin's Java classes, and create an archive of all classes, with which Spark starts faster.

    What exists is not made again. Without this command, the jars are downloaded at the first use. The other two are optional: set-up
    succeeds without them. After an upgrade of Lakejoin, Spark, Delta or Java, run it again.
    """
    from lake.cli.setup import set_up

    with invocation(context):
        steps = []
        for step in with_progress(lambda say: set_up(not no_archive, say)):
            steps.append(step)
            if not as_json:
                console.out().print(f"{step.step}: {step.state}, {step.detail}", markup=False)
        if as_json:
            console.print_json([step.to_json() for step in steps])


app.command(epilog="Examples: lakejoin drop q20 | lakejoin drop q20 --dry-run --json | lakejoin drop q20 --yes")(dropping.drop)
app.command(epilog="Examples: lakejoin gc | lakejoin gc --yes | lakejoin gc --older-than 7 --yes --json")(dropping.gc)
app.command(epilog="Examples: lakejoin plan | lakejoin plan --out plan.json | lakejoin plan --markdown")(planning.plan)
app.command("apply", help=planning.apply.__doc__, epilog="Examples: lakejoin apply | lakejoin apply q20 | lakejoin apply --plan plan.json")(
    planning.apply_command
)
app.command(
    epilog="Examples: lakejoin adopt q20 --table /nightly/q20 --at bid=57,auction=12 | lakejoin adopt q20 --verify-first --dry-run"
)(adopting.adopt)
app.command("test", epilog="Examples: lakejoin test | lakejoin test q20 -k late --junit results.xml")(run_view_tests)

app.add_typer(importing.app, name="import")
app.add_typer(environments.app, name="env")


def main() -> None:
    """The entry point of the `lakejoin` command."""
    app()


def _required(view: str | None) -> str:
    if view is None:
        raise typer.BadParameter("give the name of a view, or --all")
    return view


if __name__ == "__main__":
    main()
