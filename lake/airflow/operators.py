"""The operators: each runs the lakejoin command, and reports its result, or Lakejoin's own error message.

The command is one Spark application, by spark-submit; or, with `airflow.server`, a request to `lakejoin serve`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import AssetAlias, BaseOperatorLink, Context, TriggerRule
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException, AirflowTaskTimeout
from airflow.sdk.execution_time.timeout import timeout
from airflow.triggers.base import StartTriggerArgs

from lake.airflow.no_changes import nothing_to_do, session_settings
from lake.airflow.private_settings import properties_file
from lake.airflow.result_files import answer_of, is_pinned
from lake.airflow.server import RequestEnded, ServerRequest
from lake.airflow.settings import Deployment
from lake.airflow.view_outcome import BEGAN, REFRESH, ViewRefreshed, run_name, shown
from lake.errors import LakeError
from lake.spark.driver_options import CLASS_PATH, JAVA_OPTIONS, driver_options, is_local
from lake.spark.preflight import AT_START, jars
from lake.views.sizes import are_small

_SOON = 2.0
"""Seconds in which a worker waits for a server before it lets a trigger wait: to start one takes as long."""
_SERVER_CANCELS_FIRST = timedelta(minutes=2)
JOB = str(Path(__file__).parent.parent / "cli" / "submit" / "job.py")


class ReportLink(BaseOperatorLink):
    """A link from a run to the newest report."""

    name = "Report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return str(operator.deployment.config.report_url)


class LakejoinOperator(SparkSubmitOperator):
    """Runs `lakejoin VERB ...` with spark-submit, or in a server; its answer is the return value of the task.

    `command`: the verb and its arguments. Killing the task ends its application, or cancels its request. A failure that a person
    must correct is not retried.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "command")
    operator_extra_links = (ReportLink(),)
    lasts = False
    """Whether the application goes on until it is stopped."""

    def __init__(self, *, deployment: Deployment, command: Iterable[str] = (), **kwargs: Any) -> None:
        self.deployment, self.command = deployment, list(command)
        self._sent: ServerRequest | None = None
        self._answered_before: Any = None
        settings = deployment.config.airflow
        conf = {**AT_START, **deployment.public_conf}
        submit = {"application": JOB, "name": "lakejoin", "env_vars": deployment.env_vars, **settings.submit, "conf": conf}
        super().__init__(conn_id=settings.conn_id, pool=settings.pool, **{**submit, **kwargs})

    def execute(self, context: Context) -> Any:
        """Start the application, or send the request, and wait for its end. Raises AirflowFailException if a retry would not help."""
        run = self._run_name(context)
        if self.deployment.config.airflow.server is not None:
            return self._execute_in_server(context, run)
        nothing = self.nothing_to_do(context, run)
        if nothing is not None:
            self.log.info("Nothing to do: no source has a new version. No application was started.")
            return self._reported(context, nothing, None)
        self.application_args = [*self.deployment.options, "--run", run, *self.arguments(context)]
        self.add_delta()
        before, failure = answer_of(self.deployment.config.runs_path, run), None
        self._answered_before = before.get("answer")
        try:
            with self.private_settings():
                super().execute(context)
        except AirflowException as error:
            failure = error
        report = answer_of(self.deployment.config.runs_path, run)
        return self._reported(context, report.get("answer") if report != before else None, failure)

    def _reported(self, context: Context, answer: Any, failure: AirflowException | None) -> Any:
        """The answer, after its events were sent, and the failure raised."""
        self.send_events(context, answer)
        if failure is not None:
            self.fail(context, failure, answer)
        return answer

    def _execute_in_server(self, context: Context, run: str) -> Any:
        """Send the request, and wait a moment for its answer: most refreshes take no longer. Then a trigger waits."""
        settings = self.deployment.config.airflow
        limit = self.execution_timeout or timedelta(minutes=settings.timeout_minutes)
        request = self._request(context, run)
        if context["ti"].try_number > 1:  # the earlier try may have timed out while its request still waited
            with suppress(LakeError):
                ServerRequest.of(request.server, run, context["ti"].try_number - 1).cancel()
        self._sent = request
        request.begin(self.arguments(context), run, limit.total_seconds())
        try:
            answer = request.answer_within(_SOON)
        except OSError as error:
            raise AirflowException(f"{request.server} ended meanwhile ({error}). A retry goes to the same snapshot.") from error
        if answer is None:
            waiting = RequestEnded(request.server, request.name, settings.server_poll_seconds)
            self.defer(trigger=waiting, method_name="ended_in_server", timeout=limit + _SERVER_CANCELS_FIRST)
        return self._of_server(context, answer)

    def ended_in_server(self, context: Context, event: Any = None) -> Any:
        """The answer of the request that a trigger has waited for."""
        request = self._request(context, self._run_name(context))
        try:
            answer = request.answer()
        except OSError as error:
            raise AirflowException(f"{request.server} does not answer ({error}). A retry goes to the same snapshot.") from error
        if answer is None:
            raise AirflowException(f"The request {request.name} has not ended yet. A retry goes to the same snapshot.")
        return self._of_server(context, answer)

    def _run_name(self, context: Context) -> str:
        """The name of the run, which is that of its files."""
        return run_name(context["ti"].dag_id, self.task_id, context["run_id"])

    def _request(self, context: Context, run: str) -> ServerRequest:
        return ServerRequest.of(str(self.deployment.config.airflow.server), run, context["ti"].try_number)

    def _of_server(self, context: Context, said: Mapping[str, Any]) -> Any:
        """The answer of a server's request, reported as that of an application."""
        messages = list(said["messages"])
        for line in messages:
            self.log.info("%s", line)
        answer, failure = said["result"], None
        if said["exit_code"]:
            text = "\n".join(messages) or f"The request ended with exit code {said['exit_code']}."
            failure = AirflowException(text)
            if not isinstance(answer, dict):
                answer = {"error": re.sub(r"^lakejoin: ", "", text), "again": bool(said["again"] or said["cancelled"])}
        return self._reported(context, answer, failure)

    def on_kill(self) -> None:
        """Airflow ends the task while its worker runs it."""
        if self._sent is not None:
            self._sent.cancel()
        elif self.deployment.config.airflow.server is None:
            super().on_kill()

    @contextmanager
    def private_settings(self) -> Iterator[None]:
        """Within it, spark-submit is given the settings that nobody else may see, through a file."""
        private = self.deployment.private_conf
        known = session_settings(self.deployment) or {}
        if self.deployment.config.secret_settings:  # a digest of secrets is for nobody's eyes
            private = {**private, **known}
        else:
            self.conf = {**(self.conf or {}), **known}
        with properties_file(private, self.properties_file) as file:
            shown, self.properties_file = self.properties_file, file
            try:
                yield
            finally:
                self.properties_file = shown

    def add_delta(self) -> None:
        """Add Delta's jars if they were resolved at set-up and the driver is on this machine; otherwise its Maven coordinates.

        Without executors on other machines, the jars are on the class path of a JVM that starts as the command's does.
        """
        if self.jars is not None or self.packages is not None:
            return
        found = [] if self.deployment.in_cluster else jars()
        if found and self._starts_as_the_command():
            settings = {**self.deployment.private_conf, **(self.conf or {})}
            self.conf = {**(self.conf or {}), **driver_options(settings, found, not self.lasts and are_small(self.deployment.config))}
            return
        spark = ".".join(version("pyspark").split(".")[:2])
        self.jars = ",".join(found) or None
        self.packages = None if found else f"io.delta:delta-spark_{spark}_2.13:{version('delta-spark')}"

    def _starts_as_the_command(self) -> bool:
        """Whether Spark runs on this machine alone, and its JVM has no options that must not be shown, or that come in another way."""
        secret = {CLASS_PATH, JAVA_OPTIONS} & self.deployment.private_conf.keys()
        local = is_local(str(self._get_hook()._connection["master"]))
        return local and not secret and self.driver_class_path is None and self.properties_file is None

    def arguments(self, context: Context) -> list[str]:
        """The verb and its arguments, in this run."""
        return self.command

    def nothing_to_do(self, context: Context, run: str) -> dict[str, Any] | None:
        """The answer, if it is known without an application; else None."""
        return None

    def send_events(self, context: Context, answer: Any) -> None:
        """Send asset events and findings."""

    def report_findings(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Call `airflow.on_finding` with each finding that opened, escalated or was resolved; an error in it is only logged."""
        called = self.deployment.config.airflow.on_finding
        for event in events:
            self.log.info("finding %s: %s", event["event"], event)
            if called is not None:
                module, _, function = called.partition(":")
                try:
                    getattr(import_module(module), function)(event)
                except Exception:  # an error in a user's function must not fail the checks
                    self.log.exception("`airflow.on_finding` failed")

    def fail(self, context: Context, failure: AirflowException, answer: Any) -> None:
        """Raise the failure with Lakejoin's message."""
        raise _with_message(failure, answer)


class ViewsOperator(LakejoinOperator):
    """Refreshes some views in one application, and sends an asset event for each view that was published.

    A scheduled run (or one of `airflow backfill`) refreshes to the versions of the sources at the end of its data interval; any other run
    to the newest versions at its first try. Retries use the same versions.
    """

    def __init__(self, *, deployment: Deployment, views: Sequence[str], **kwargs: Any) -> None:
        self.views = list(views)
        super().__init__(deployment=deployment, outlets=[AssetAlias(deployment.alias(view)) for view in views], **kwargs)

    def arguments(self, context: Context) -> list[str]:
        end = _until(context)
        until = ["--until", end.isoformat()] if end is not None else []
        check = ["--check"] if self.deployment.config.airflow.check_after_refresh else []
        return ["refresh", *self.views, *until, *check]

    def nothing_to_do(self, context: Context, run: str) -> dict[str, Any] | None:
        """The answer if no view has anything to do: no earlier try has begun, nothing is to be checked, and logs on this machine say so."""
        settings = self.deployment.config
        if settings.airflow.check_after_refresh or is_pinned(settings.runs_path, run):
            return None
        return nothing_to_do(self.deployment, self.views, run, _until(context))

    def send_events(self, context: Context, answer: Any) -> None:
        for view, outcome in views_of(answer).items():
            self.report_findings(outcome.get("events", ()))
            if outcome["moved"]:
                result = outcome["result"] or {}
                rows = {name: result.get(name) for name in ("rows_inserted", "rows_deleted", "mode")}
                extra = {"view": view, "since": outcome["since"], "snapshot": outcome["until"], **rows}
                context["outlet_events"][AssetAlias(self.deployment.alias(view))].add(self.deployment.asset(view), extra=extra)


class RefreshOperator(ViewsOperator):
    """Refreshes a group of views.

    Airflow sends the asset events of a task only if the task succeeds. So this task succeeds in the end even if views failed, and the tasks
    of these views (`ViewOperator`) fail for them. It fails itself if a view failed that an earlier try had refreshed: the task of that view
    may have ended.
    """

    def execute(self, context: Context) -> Any:
        context["ti"].xcom_push(key=BEGAN, value=datetime.now(UTC).isoformat())
        return super().execute(context)

    def fail(self, context: Context, failure: AirflowException, answer: Any) -> None:
        error, task = _with_message(failure, answer), context["ti"]
        failed = {outcome["view"] for outcome in _failed(answer)}
        if not failed or (not isinstance(error, AirflowFailException) and task.try_number <= task.max_tries):
            raise error
        if task.try_number > 1 and any(outcome["view"] in failed for outcome in _done(self._answered_before)):
            raise AirflowFailException(str(error))
        self.log.error("%s", error)


class CheckOperator(LakejoinOperator):
    """Checks views."""

    def send_events(self, context: Context, answer: Any) -> None:
        self.report_findings(answer.get("events", ()) if isinstance(answer, dict) else ())

    def fail(self, context: Context, failure: AirflowException, answer: Any) -> None:
        """Fail with the critical findings and broken checks, without retries."""
        results = answer if isinstance(answer, dict) else {}
        critical = [
            f"{f['id']} {f['scope']}, {f['check']}: {f['subject']} ({f['cause']}). Run: {f['command']}"
            for f in results.get("findings", [])
            if f["severity"] == "critical"
        ]
        broken = [f"{c['scope']}, {c['check']} could not run: {c['broken']}" for c in results.get("checks", []) if c["status"] == "broken"]
        if critical or broken:
            raise AirflowFailException("\n".join([*critical, *broken]))
        super().fail(context, failure, answer)


class ViewOperator(ViewsOperator):
    """The task of one view, beside the task that refreshes its group: it ends as the view's refresh does, with the rows or the message.

    A trigger waits for that (`ViewRefreshed`): no worker takes part. Cleared after the refresh of the group has ended, it refreshes the
    view by itself, to the snapshot of the run. `reads`: the views of the group that it reads.
    """

    def __init__(self, *, deployment: Deployment, view: str, reads: Sequence[str], **kwargs: Any) -> None:
        # to wait has no time limit: the refresh of the group may wait for its pool, and has one of its own, as it has retries
        fixed = {"retries": 0, "execution_timeout": None, "trigger_rule": TriggerRule.ALWAYS}
        super().__init__(deployment=deployment, views=[view], **fixed, **kwargs)
        settings = deployment.config.airflow
        folder = deployment.config.runs_path if settings.server is None else ""
        waits = {"view": view, "reads": list(reads), "folder": folder, "seconds": settings.server_poll_seconds}
        self.start_from_trigger = True
        where = f"{ViewRefreshed.__module__}.{ViewRefreshed.__qualname__}"
        self.start_trigger_args = StartTriggerArgs(where, next_method="by_itself", trigger_kwargs=waits)

    def execute(self, context: Context) -> Any:
        """Tell how the view was refreshed, where no triggerer does so: `airflow dags test` runs one task after the other."""
        outcome = views_of(context["ti"].xcom_pull(task_ids=REFRESH)).get(self.views[0])
        if outcome is None:
            raise AirflowSkipException(f"The task {REFRESH} has not ended yet. Without a triggerer, this task can't wait for it.")
        if outcome["state"] != "done":
            raise AirflowFailException(outcome["error"])
        return shown(outcome)

    def by_itself(self, context: Context, event: Any = None) -> Any:
        """Refresh the view, and return what the trigger would have returned. Raises as the refresh of a group, and for a failed view."""
        try:
            with timeout(self.deployment.config.airflow.timeout_minutes * 60):  # type: ignore[no-untyped-call]
                return self._of_view(super().execute(context))
        except AirflowTaskTimeout:
            self.on_kill()
            raise

    def ended_in_server(self, context: Context, event: Any = None) -> Any:
        return self._of_view(super().ended_in_server(context, event))

    def send_events(self, context: Context, answer: Any) -> None:
        """Send the asset event, unless nothing was published and the refresh of the group has sent it."""
        whole = views_of(context["ti"].xcom_pull(task_ids=REFRESH)).get(self.views[0], {})
        result = views_of(answer).get(self.views[0], {}).get("result") or {}
        if not (result.get("mode") == "none" and whole.get("moved")):
            super().send_events(context, answer)

    def _run_name(self, context: Context) -> str:
        """A part of the run of the group's refresh."""
        return f"{run_name(context['ti'].dag_id, REFRESH, context['run_id'])}::{self.views[0]}"

    def _of_view(self, answer: Any) -> dict[str, Any]:
        return shown(views_of(answer)[self.views[0]])


class BackfillOperator(LakejoinOperator):
    """Runs a backfill with the parameters of the form. `planned_by`: the task whose dry run chose the range; None: this is the dry run."""

    def __init__(self, *, planned_by: str | None = None, **kwargs: Any) -> None:
        self.planned_by = planned_by
        super().__init__(**kwargs)

    def arguments(self, context: Context) -> list[str]:
        form, mode = context["params"], context["params"]["mode"]
        common = ["backfill", form["view"], "--mode", mode, "--step", str(form["step"])]
        if self.planned_by is None:
            return [*common, *_each("--since", form["since"]), *_each("--until", form["until"]), "--dry-run"]
        if form["dry_run"]:
            raise AirflowSkipException("This was a dry run: the log of the task `plan` lists the intervals.")
        steps = context["ti"].xcom_pull(task_ids=self.planned_by)["steps"]
        ends = [f"--until={table}={number}" for table, number in steps[-1]["until"].items()]
        if mode == "replay":
            ends += [f"--since={table}={number}" for table, number in steps[0]["until"].items()]
            ends += ["--publish"] if form["publish"] else []
        return [*common, *ends]


def _until(context: Context) -> datetime | None:
    """The time to which a run refreshes; None for the newest versions."""
    run, end = context["dag_run"], context.get("data_interval_end")
    return end if run.run_type in ("scheduled", "backfill") else None


def views_of(answer: Any) -> dict[str, dict[str, Any]]:
    """The outcome of each view of a refresh."""
    return dict(answer.get("views", {})) if isinstance(answer, dict) else {}


def _each(option: str, text: str | None) -> list[str]:
    """One option for each part of a text such as `bid=10 auction=3`."""
    return [f"{option}={part}" for part in re.split(r"[,\s]+", text.strip()) if part] if text else []


def _done(answer: Any) -> list[dict[str, Any]]:
    """The outcomes of the views that were refreshed."""
    return [outcome for outcome in views_of(answer).values() if outcome["state"] == "done"]


def _failed(answer: Any) -> list[dict[str, Any]]:
    """The outcomes of the views that were not refreshed."""
    return [outcome for outcome in views_of(answer).values() if outcome["state"] != "done"]


def _with_message(failure: AirflowException, answer: Any) -> AirflowException:
    """The failure with Lakejoin's message if there is one, in its answer or in the last line that it printed."""
    views = _failed(answer)
    if views:
        retry = any(outcome["again"] for outcome in views)
        text = "\n".join(outcome["error"] for outcome in views)
    elif isinstance(answer, dict) and "error" in answer:
        retry, text = answer["again"], answer["error"]
    else:
        printed = re.findall(r"lakejoin: (.+)", str(failure))
        retry, text = not printed, printed[-1] if printed else str(failure)
    return AirflowException(text) if retry else AirflowFailException(text)
