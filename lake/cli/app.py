"""The lakejoin command: the verbs of the public API, for people and (with --json) for machines.

Exit codes: 0 done, 1 a check failed, 2 the request was wrong, 3 it can't be known. What a person should read goes to standard
error, answers to standard output; never a Spark stack trace alone.
"""

from __future__ import annotations

import uuid
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from lake import __version__
from lake.cli import console
from lake.cli.arguments import Kind, Mode, moment, step_of, time_of, until_of, versions
from lake.cli.context import Settings, answering, with_progress, working, write_whole
from lake.cli.logs import set_up_logs
from lake.errors import LakeError, SourceError

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
Accept = Annotated[list[str] | None, typer.Option("--accept", help="A finding that is not to stop it this once (repeat it).")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON, for machines.")]
All = Annotated[bool, typer.Option("--all", help="Every view of the configuration.")]
Until = Annotated[
    list[str] | None, typer.Option("--until", help="TABLE=VERSION (repeat it), or one time such as 2026-01-31T12:00; default: newest.")
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
    env: Annotated[str | None, typer.Option("--env", "-e", help="An environment of the configuration.", envvar="LAKEJOIN_ENV")] = None,
    run: Annotated[str | None, typer.Option("--run", help="A scheduler's run: the answer is kept under its name, in `runs:`.")] = None,
    log_format: Annotated[str, typer.Option("--log-format", help="Logs on standard error: none, text or json.")] = "none",
    debug: Annotated[bool, typer.Option("--debug", help="Also show the stack trace of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version and exit.")] = False,
) -> None:
    context.obj = Settings(config, env, run, debug)
    set_up_logs(log_format, uuid.uuid4().hex[:12])


@app.command(epilog="Examples: lakejoin refresh q20 | lakejoin refresh q20 --until bid=57 | lakejoin refresh q20 --step 6h")
def refresh(
    context: typer.Context,
    views: Annotated[list[str] | None, typer.Argument(help="Views of lakejoin.yml; one that fails stops those that read it.")] = None,
    all_views: All = False,
    until: Until = None,
    step: Annotated[str | None, typer.Option("--step", help="In steps of so many commits or so long a time: 100, 30m, 6h, 1d.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Check each view afterwards, as lakejoin check does.")] = False,
    accept: Accept = None,
    profile: Annotated[bool, typer.Option("--profile", help="Show where the time went: phases, Spark jobs, generated code.")] = False,
    as_json: Json = False,
) -> None:
    """Bring views to the newest snapshot of their sources (or to --until); the first refresh builds them.

    Under the name of a run (--run before the verb) the snapshot is decided once: a later try goes to the same.
    """
    with answering(context) as answer:
        opened = answer.lake(strict=False)
        names = list(opened.config.views) if all_views else views or [_required(None)]
        if accept and (len(names) > 1 or step is not None or check or context.obj.run):
            raise typer.BadParameter("--accept is of one view, in one step, without --check and outside a run")
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

            group = GroupRefresh(opened, names, until_of(until), check_after_refresh if check else None, console.print_outcome, profile)
            came = group.run(answer.run)
            console.print_run(came, as_json)
            if came.exit_code:
                raise typer.Exit(came.exit_code)
        else:
            done = working(f"refreshing {names[0]}", lambda: opened.refresh(names[0], until_of(until), accept or (), profile))
            console.print_results([done], as_json)


@app.command(epilog="Example: lakejoin rebuild q20")
def rebuild(
    context: typer.Context,
    view: View,
    until: Until = None,
    accept: Accept = None,
    as_json: Json = False,
) -> None:
    """Compute a view anew and publish the difference in one commit; readers see the old view until then."""
    with answering(context) as answer:
        opened = answer.lake()
        console.print_results([working(f"rebuilding {view}", lambda: opened.rebuild(view, until_of(until), accept or ()))], as_json)


@app.command(
    epilog="Examples: lakejoin backfill q20 --since bid=10 --until bid=40 --step 5 | lakejoin backfill q20 --since 2026-01-01 --dry-run"
)
def backfill(
    context: typer.Context,
    view: View,
    since: Annotated[list[str] | None, typer.Option("--since", help="TABLE=VERSION (repeat it), or a time: where a replay begins.")] = None,
    until: Until = None,
    step: Annotated[str, typer.Option("--step", help="So many commits of the sources, or so long a time: 5, 30m, 6h, 1d.")] = "1",
    mode: Annotated[Mode, typer.Option("--mode", help="The past beside the view; or the view itself, in steps or at once.")] = Mode.replay,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what the steps are, and which are there.")] = False,
    publish: Annotated[bool, typer.Option("--publish", help="Replace the view's own rows by those at the end, in one commit.")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Make all of it again.")] = False,
    as_json: Json = False,
) -> None:
    """Make a view's history over a past range again, step by step, beside the view; `show --at` reads it. Run again, it goes on.

    --mode catch-up brings the view itself to --until in steps; --mode rebuild computes it anew there, in one commit.
    """
    with answering(context) as answer:
        if mode != Mode.replay and (since or publish or restart):
            raise typer.BadParameter(f"--since, --publish and --restart are of a replay: --mode {mode} begins where the view stands")
        if mode == Mode.replay and not since:
            raise typer.BadParameter("a replay needs --since: where the history begins")
        opened = answer.lake(strict=False)
        made, to, size = console.Steps(), until_of(until), step_of(step)
        if mode == Mode.replay:
            asked = {"publish": publish, "restart": restart, "dry_run": dry_run, "on_step": made}
            found = opened.backfill(view, moment(since or [], "--since"), to, size, **asked)
        elif mode == Mode.catch_up:
            found = opened.catch_up(view, size, to, dry_run=dry_run, on_step=made)
        else:
            found = opened.rebuild_at(view, to, dry_run=dry_run)
        answer.keep(found.to_json())
        console.print_backfill(found, as_json)


@app.command(epilog="Examples: lakejoin show q20 --limit 5 | lakejoin show q20 --at bid=57 | lakejoin show q20 --json")
def show(
    context: typer.Context,
    view: View,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="How many rows.")] = 20,
    consistency: Annotated[str, typer.Option("--consistency", help="strong, or eventual for the real-time path's rows.")] = "strong",
    at: Annotated[list[str] | None, typer.Option("--at", help="TABLE=VERSION of a source (repeat it): the view as of then.")] = None,
    as_json: Json = False,
) -> None:
    """Print rows of a view as it was published last, or as of some versions of its sources."""
    with answering(context) as answer:
        frame = answer.lake().read(view, consistency, versions(at, "--at") if at else None)
        from lake.cli.row_format import shown_rows

        rows = working(f"reading {view}", lambda: shown_rows(frame, limit))
        if as_json:
            console.print_json(rows)
        else:
            console.print_table(frame.columns, [[console.shown(v) for v in row.values()] for row in rows])


@app.command(epilog="Examples: lakejoin explain q20 | lakejoin explain q20 --strict")
def explain(
    context: typer.Context,
    view: View,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 where anything would be recomputed.")] = False,
    as_json: Json = False,
) -> None:
    """Show what each operator of a view does on a refresh, and why it is not incremental where it is not."""
    with answering(context) as answer:
        opened = answer.lake()
        explanation = working(f"explaining {view}", lambda: opened.explain(view))
        console.print_json(explanation.to_json()) if as_json else console.out.print(str(explanation), markup=False)
        if strict and not explanation.incremental:
            raise typer.Exit(1)


@app.command(epilog="Examples: lakejoin verify q20 | lakejoin verify --all --json")
def verify(context: typer.Context, view: OptionalView = None, all_views: All = False, as_json: Json = False) -> None:
    """Compare a view with its query run from scratch at its snapshot. Exit code 1 where they differ, 3 where it can't be known.

    With --all, a view that can't be verified does not keep the others from it.
    """
    with answering(context) as answer:
        opened = answer.lake(strict=False)
        found, failed = list[Any](), dict[str, LakeError]()
        for name in opened.config.views if all_views else [_required(view)]:
            try:
                found.append(working(f"verifying {name}", partial(opened.verify, name)).sampled(opened.shown(name)))
            except Exception as error:  # one view's failure does not stop the others
                if not all_views:
                    raise
                failed[name] = answer.reported(error)
        answer.keep(console.print_differences(found, failed, as_json))
        code = 1 if any(not d.exact for d in found) else max((error.exit_code for error in failed.values()), default=0)
        if code:
            raise typer.Exit(code)


@app.command(epilog="Examples: lakejoin check q20 | lakejoin check --all --json")
def check(
    context: typer.Context,
    view: OptionalView = None,
    all_views: All = False,
    with_report: Annotated[bool, typer.Option("--report", help="Write the report beside the results, too.")] = False,
    as_json: Json = False,
) -> None:
    """Check views and what they read: exact, both paths agreeing, sources, retention, expectations. Exit code 1 on failure.

    What is found is kept (quality_results, Data Docs), and told where it opens, gets worse or is resolved. 3: a check could not run.
    """
    with answering(context) as answer:
        opened = answer.lake(strict=False)
        names = list(opened.config.views) if all_views else [_required(view)]
        for name in names:
            opened.config.view(name)
        from lake.quality.checks import Checks  # loads Great Expectations, for those only who check

        found = working(f"checking {', '.join(names)}", lambda: Checks(opened).run(names))
        if with_report:
            from lake.quality.report import store_report

            store_report(opened)
        answer.keep(found.to_json())
        console.print_checked(found, as_json)
        if found.exit_code:
            raise typer.Exit(found.exit_code)


@app.command(epilog="Examples: lakejoin report -o report.html | lakejoin report q20 -o q20.html")
def report(
    context: typer.Context,
    view: OptionalView = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("report.html"),
) -> None:
    """Write a page, in one file that needs no network: whether each view can be trusted, and how it came to be so."""
    with answering(context) as answer:
        from lake.quality.report import report as page

        opened = answer.lake()
        names = [view] if view is not None else list(opened.config.views)
        text = working("writing the report", lambda: page(opened, names))
        write_whole(output, text)
        console.out.print(f"Wrote {output}: open it in a browser.", markup=False)


@app.command(epilog="Example: lakejoin snooze F1a2b3c4d --until 2026-12-01 --reason 'the loader is being mended'")
def snooze(
    context: typer.Context,
    finding: Annotated[str, typer.Argument(help="The finding, as lakejoin check names it.")],
    until: Annotated[str, typer.Option("--until", help="A time such as 2026-12-01 or 2026-12-01T12:00 (UTC).")],
    reason: Annotated[str, typer.Option("--reason", help="Why nobody is to hear of it until then.")],
    as_json: Json = False,
) -> None:
    """Put a finding off: until then it fails no check and nobody is told of it, unless it gets worse. It is kept who said so and why."""
    with answering(context) as answer:
        from lake.quality.decisions import snooze_finding

        row = snooze_finding(answer.lake(), finding, time_of(until), reason)
        console.print_json(row) if as_json else console.out.print(f"{finding} is put off until {row['until']}: {reason}", markup=False)


@app.command(epilog="Examples: lakejoin status | lakejoin status q20 --json")
def status(context: typer.Context, view: OptionalView = None, as_json: Json = False) -> None:
    """Show for each view and source: published and newest version, lag, and how long its changes can still be read."""
    with answering(context) as answer:
        from lake.quality.health import health_of_views
        from lake.realtime.states import states

        opened = answer.lake()
        rows = working("reading the logs", lambda: opened.status(view))
        views = list(dict.fromkeys(row.view for row in rows))
        paths, checked = states(opened, views), health_of_views(opened, views)
        if as_json:
            said = {name: found.to_json() for name, found in checked.items()}
            console.print_json([row.to_json() | {"realtime": paths.get(row.view), "checks": said.get(row.view)} for row in rows])
            return
        console.print_status(rows, paths)
        console.print_health(checked)


@app.command(epilog="Examples: lakejoin realtime q20 | lakejoin realtime --all --metrics-port 9090 | lakejoin realtime q20 --available-now")
def realtime(
    context: typer.Context,
    view: OptionalView = None,
    all_views: Annotated[bool, typer.Option("--all", help="Every view with `realtime`.")] = False,
    available_now: Annotated[bool, typer.Option("--available-now", help="Process the commits that exist now, then end.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Start again from the rows that the strong path published last.")] = False,
    metrics_port: Annotated[
        int | None, typer.Option("--metrics-port", help="Serve metrics for Prometheus on this port (0: a free one).")
    ] = None,
    metrics_address: Annotated[
        str, typer.Option("--metrics-address", help="The address of the metrics; by default only this machine.")
    ] = "127.0.0.1",
    rendered: Annotated[
        Kind | None, typer.Option("--render", help="Print a systemd unit or a Kubernetes manifest that keeps it running.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each batch.")] = False,
) -> None:
    """Keep the real-time table of a view within seconds of its sources. SIGTERM or Ctrl-C ends it after the current batch."""
    with answering(context) as answer:
        if rendered is not None:
            from lake.cli.render import render

            named = None if all_views else _required(view)
            print(render(rendered, context.obj.config, context.obj.env, named, metrics_port))
            return
        from lake.cli import realtime

        opened = answer.lake()
        options = realtime.Options(available_now, reset, metrics_port, metrics_address, as_json)
        code = realtime.run(opened, None if all_views else _required(view), options)
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
    with answering(context) as answer:
        opened = answer.lake()
        found = working("maintaining", lambda: opened.maintain(None if all_views else _required(view), dry_run))
        answer.keep(found.to_json())
        console.print_maintenance(found, as_json)
        if found.failed:
            raise typer.Exit(SourceError.exit_code)


@app.command(epilog="Example: lakejoin init ./lakehouse")
def init(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder under which Delta tables are looked for.")],
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
) -> None:
    """Write a commented lakejoin.yml from the Delta tables under a folder."""
    from lake.cli.init import write_config

    with answering(context):
        written = write_config(folder, context.obj.config, force)
        console.out.print(f"Wrote {context.obj.config} with {len(written)} tables: {', '.join(written)}.", markup=False)
        console.out.print("Next: define a view in it, then lakejoin refresh VIEW.")


@app.command(epilog="Example: lakejoin doctor")
def doctor(context: typer.Context, as_json: Json = False) -> None:
    """Check Python, Java, Spark, Delta, jars, and each place in the configuration; a remedy a line."""
    from lake.cli.doctor import examine

    with answering(context):
        findings = working("examining", lambda: examine(context.obj.config, context.obj.env))
        if as_json:
            console.print_json([f.to_json() for f in findings])
        else:
            for f in findings:
                console.out.print(f"{'ok   ' if f.ok else 'WRONG'} {f.what}: {f.found}{'' if f.ok else f'. {f.remedy}'}", markup=False)
        if not all(f.ok for f in findings):
            raise typer.Exit(1)


@app.command(epilog="Examples: lakejoin setup | lakejoin setup --no-archive --json")
def setup(
    context: typer.Context,
    no_archive: Annotated[bool, typer.Option("--no-archive", help="Do not make the class archive.")] = False,
    as_json: Json = False,
) -> None:
    """Download Delta's jars (87 MB), and make an archive of Java classes for faster starts. What exists is left as it is.

    Without it, the jars are downloaded at the first use. The archive is optional: if it can't be made, set-up still succeeds.
    """
    from lake.cli.setup import set_up

    with answering(context):
        steps = []
        for step in with_progress(lambda say: set_up(not no_archive, say)):
            steps.append(step)
            if not as_json:
                console.out.print(f"{step.step}: {step.state}, {step.detail}", markup=False)
        if as_json:
            console.print_json([step.to_json() for step in steps])


def main() -> None:
    """The entry point of the `lakejoin` command."""
    app()


def _required(view: str | None) -> str:
    if view is None:
        raise typer.BadParameter("name a view, or give --all")
    return view


if __name__ == "__main__":
    main()
