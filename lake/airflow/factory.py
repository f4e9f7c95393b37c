"""Makes the DAGs of a lakejoin.yml: one to refresh each group of views, and one each for backfills, quality, maintenance and real time.

Airflow's dags folder needs two files with one of these lines each; an invalid view is an import error of the second file only:

    globals().update(airflow_dags())        # LAKEJOIN_CONFIG names the lakejoin.yml
    raise_for_invalid_views()
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, CronDataIntervalTimetable, CronTriggerTimetable, Param, TaskGroup

from lake.airflow.operators import BackfillOperator, CheckOperator, LakejoinOperator, RefreshOperator, ViewOperator
from lake.airflow.realtime import CheckHeartbeat, StartRealtime
from lake.airflow.settings import Deployment
from lake.airflow.view_outcome import REFRESH, VIEWS
from lake.config.groups import Group, groups, refuse_no_cron
from lake.config.models import AirflowConfig
from lake.errors import ConfigError

_AT = "TABLE=VERSION (several are separated by spaces), or one time such as 2026-01-31T12:00"
_FORM_PATTERN = r"^\s*(\w+=\d+([,\s]+\w+=\d+)*|\d{4}-\d\d-\d\d\S*)?\s*$"


def airflow_dags(config: str | Path | None = None, env: str | None = None) -> dict[str, DAG]:
    """The DAGs of a configuration, by id, without its invalid views. Raises ConfigError if the rest of the file is not valid."""
    deployment = Deployment.of(config, env)
    refreshes = [_refresh(deployment, group) for group in groups(deployment.config)[0]]
    return {dag.dag_id: dag for dag in [*refreshes, *_others(deployment)]}


def raise_for_invalid_views(config: str | Path | None = None, env: str | None = None) -> None:
    """Raise ConfigError with the errors of the views, or groups of views, that have no DAG because of them."""
    deployment = Deployment.of(config, env)
    errors = {**deployment.wrong, **groups(deployment.config)[1]}
    if errors:
        raise ConfigError("\n".join(f"{name}: {error}" for name, error in errors.items()))


def _refresh(deployment: Deployment, group: Group) -> DAG:
    views = [deployment.config.views[view] for view in group.views]
    lines = [f"- **{name}**: {view.description or 'a view'}" for name, view in zip(group.views, views, strict=True)]
    schedule: Any = CronDataIntervalTimetable(group.schedule, timezone="UTC") if group.schedule else None
    if group.sources:
        schedule = reduce(or_, [deployment.asset(source) for source in group.sources])
    tags = {tag for view in views for tag in view.tags}
    with _dag(deployment, f"refresh_{group.name}", schedule, "\n".join(["Refreshes these views:", "", *lines]), tags) as dag:
        owner = next((view.owner for view in views if view.owner), "lakejoin")
        refresh = RefreshOperator(task_id=REFRESH, deployment=deployment, views=group.views, owner=owner)
        _views(deployment, group, refresh)
    return dag


def _views(deployment: Deployment, group: Group, refresh: RefreshOperator) -> None:
    """A task for each view of a group, below those of the views that it reads, and a last one."""
    tasks = dict[str, ViewOperator]()
    with TaskGroup(VIEWS, tooltip="How each view was refreshed"):
        for view, read in group.reads.items():
            config = deployment.config.views[view]
            query = f"```sql\n{config.query}\n```" if config.query else None
            doc = "\n\n".join(filter(None, [config.description, query])) or None
            owner = config.owner or "lakejoin"
            tasks[view] = ViewOperator(task_id=view, deployment=deployment, view=view, reads=read, owner=owner, doc_md=doc)
    for view, task in tasks.items():
        task.set_upstream([tasks[name] for name in group.reads[view]] or [refresh])
    # a run fails if a last task fails: this one is never started, and fails for all before it
    EmptyOperator(task_id="outcome").set_upstream([refresh, *tasks.values()])


def _others(deployment: Deployment) -> Iterator[DAG]:
    settings, views = deployment.config.airflow, deployment.config.views
    with _dag(deployment, "backfill", None, _BACKFILL, params=_form(list(views))) as dag:
        plan = BackfillOperator(task_id="plan", deployment=deployment)
        plan >> BackfillOperator(task_id="backfill", deployment=deployment, planned_by="plan")
    yield dag
    with _dag(deployment, "quality", _cron(settings, "quality"), "Checks all views and their sources, and writes the report.") as dag:
        read = [deployment.asset(view) for view in views]
        CheckOperator(task_id="check", deployment=deployment, command=["check", "--all", "--report"], inlets=read)
    yield dag
    with _dag(deployment, "maintenance", _cron(settings, "maintenance"), _MAINTENANCE) as dag:
        LakejoinOperator(task_id="maintain", deployment=deployment, command=["maintain", "--all"])
    yield dag
    if any(view.realtime for view in views.values()):
        with _dag(deployment, "realtime", None, "Starts the real-time paths that do not run, as a detached application.") as dag:
            StartRealtime(task_id="start", deployment=deployment)
        yield dag
        with _dag(deployment, "heartbeat", _cron(settings, "heartbeat"), "Fails if a real-time path does not run, or is behind.") as dag:
            CheckHeartbeat(task_id="check", deployment=deployment, retries=0)
        yield dag


def _dag(deployment: Deployment, name: str, schedule: Any, doc: str, tags: Any = (), params: Any = None) -> DAG:
    settings, intervals = deployment.config.airflow, isinstance(schedule, CronDataIntervalTimetable)
    return DAG(
        dag_id=deployment.dag_id(name),
        schedule=schedule,
        start_date=settings.start_date if intervals else None,
        catchup=settings.catchup and intervals,
        max_active_runs=1,
        doc_md=doc,
        params=params,
        tags={"lakejoin", *tags},
        default_args={
            "owner": "lakejoin",
            "retries": settings.retries,
            "retry_delay": timedelta(seconds=settings.retry_seconds),
            "retry_exponential_backoff": True,
            "execution_timeout": timedelta(minutes=settings.timeout_minutes),
        },
    )


def _cron(settings: AirflowConfig, name: str) -> CronTriggerTimetable | None:
    expression = getattr(settings, name)
    refuse_no_cron(expression, f"`airflow.{name}`")
    return CronTriggerTimetable(expression, timezone="UTC") if expression else None


def _form(views: list[str]) -> dict[str, Param]:
    versions: dict[str, Any] = {"type": ["string", "null"], "pattern": _FORM_PATTERN}
    return {
        "view": Param(views[0] if views else "", type="string", enum=views or [""], description="The view to backfill."),
        "mode": Param(
            "replay",
            type="string",
            enum=["replay", "catch-up", "rebuild"],
            description="replay: re-create past states beside the view. catch-up, rebuild: change the view itself.",
        ),
        "since": Param(None, **versions, description=f"The start of a replay: {_AT}."),
        "until": Param(None, **versions, description=f"The end; default: the newest versions. {_AT}."),
        "step": Param(
            "1",
            type="string",
            pattern=r"^\d+[smhd]?$",
            description="The size of a step: a number of commits (5) or a length of time (30m, 6h, 1d).",
        ),
        "publish": Param(False, type="boolean", description="At the end of a replay, publish its rows as those of the view."),
        "dry_run": Param(False, type="boolean", description="Only list the intervals and their sizes."),
    }


_MAINTENANCE = "Compacts the tables of views, and removes files that no view needs any more."
_BACKFILL = """Re-creates the history of a view over a range of snapshots (replay), refreshes a view that is far behind in steps
(catch-up), or recomputes it (rebuild). The first task lists the intervals and their sizes, and fails if a version can no longer be read.
The second task processes them one after the other; a retry continues where the last try stopped."""
