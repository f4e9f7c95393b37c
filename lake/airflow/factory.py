"""DAGs from lakejoin.yml: one to refresh each group of views, and one each for backfills, quality, maintenance and the real-time paths.

A file in Airflow's dags folder needs a line of each of these two; an invalid view is an import error of the second's file alone:

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

from airflow.sdk import DAG, CronDataIntervalTimetable, CronTriggerTimetable, Param

from lake.airflow.groups import Group, groups, refuse_no_cron
from lake.airflow.operators import BackfillOperator, CheckOperator, LakejoinOperator, Outcome, RefreshOperator
from lake.airflow.realtime import CheckHeartbeat, StartRealtime
from lake.airflow.settings import Deployment
from lake.config.models import AirflowConfig
from lake.errors import ConfigError

_AT = "TABLE=VERSION, several with a space between, or one time such as 2026-01-31T12:00"
_FORM_PATTERN = r"^\s*(\w+=\d+([,\s]+\w+=\d+)*|\d{4}-\d\d-\d\d\S*)?\s*$"


def airflow_dags(config: str | Path | None = None, env: str | None = None) -> dict[str, DAG]:
    """The DAGs of a configuration, by id, without its invalid views. Raises ConfigError where the rest of the file is not valid."""
    deployment = Deployment.of(config, env)
    refreshes = [_refresh(deployment, group) for group in groups(deployment.config)[0]]
    return {dag.dag_id: dag for dag in [*refreshes, *_others(deployment)]}


def raise_for_invalid_views(config: str | Path | None = None, env: str | None = None) -> None:
    """Raise ConfigError with what is wrong with each view, or group of views, that has no DAG for it."""
    deployment = Deployment.of(config, env)
    wrong = {**deployment.wrong, **groups(deployment.config)[1]}
    if wrong:
        raise ConfigError("\n".join(f"{name}: {error}" for name, error in wrong.items()))


def _refresh(deployment: Deployment, group: Group) -> DAG:
    views = [deployment.config.views[view] for view in group.views]
    about = [f"- **{name}**: {view.description or 'a view'}" for name, view in zip(group.views, views, strict=True)]
    schedule: Any = CronDataIntervalTimetable(group.schedule, timezone="UTC") if group.schedule else None
    if group.upon:
        schedule = reduce(or_, [deployment.asset(source) for source in group.upon])
    tags = {tag for view in views for tag in view.tags}
    with _dag(deployment, f"refresh_{group.name}", schedule, "\n".join(["Refreshes, exactly:", "", *about]), tags) as dag:
        owner = next((view.owner for view in views if view.owner), "lakejoin")
        refresh = RefreshOperator(task_id="refresh", deployment=deployment, views=group.views, owner=owner)
        refresh >> Outcome(task_id="outcome", retries=0, owner=owner)
    return dag


def _others(deployment: Deployment) -> Iterator[DAG]:
    settings, views = deployment.config.airflow, deployment.config.views
    with _dag(deployment, "backfill", None, _BACKFILL, params=_form(list(views))) as dag:
        plan = BackfillOperator(task_id="plan", deployment=deployment)
        plan >> BackfillOperator(task_id="backfill", deployment=deployment, planned_by="plan")
    yield dag
    with _dag(deployment, "quality", _cron(settings, "quality"), "Checks each view and what it reads.") as dag:
        read = [deployment.asset(view) for view in views]
        CheckOperator(task_id="check", deployment=deployment, command=["check", "--all", "--report"], inlets=read)
    yield dag
    with _dag(deployment, "maintenance", _cron(settings, "maintenance"), _MAINTENANCE) as dag:
        LakejoinOperator(task_id="maintain", deployment=deployment, command=["maintain", "--all"])
    yield dag
    if any(view.realtime for view in views.values()):
        with _dag(deployment, "realtime", None, "Starts the real-time paths, detached, where they do not run.") as dag:
            StartRealtime(task_id="start", deployment=deployment)
        yield dag
        with _dag(deployment, "heartbeat", _cron(settings, "heartbeat"), "Fails where a real-time path is dead or behind.") as dag:
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
    moment: dict[str, Any] = {"type": ["string", "null"], "pattern": _FORM_PATTERN}
    return {
        "view": Param(views[0] if views else "", type="string", enum=views or [""], description="The view."),
        "mode": Param("replay", type="string", enum=["replay", "catch-up", "rebuild"], description="The past, or the view itself."),
        "since": Param(None, **moment, description=f"Where a replay begins: {_AT}."),
        "until": Param(None, **moment, description=f"Where it ends (newest): {_AT}."),
        "step": Param("1", type="string", pattern=r"^\d+[smhd]?$", description="So many commits, or so long a time: 5, 30m, 6h, 1d."),
        "publish": Param(False, type="boolean", description="Replace the view's own rows by a replay's at its end."),
        "dry_run": Param(False, type="boolean", description="Only list the intervals, and their size."),
    }


_MAINTENANCE = "Compacts view tables, and vacuums what no view has to read any more."
_BACKFILL = """Makes a view's history again over a range of snapshots (replay), brings a view that is far behind to the newest in steps
(catch-up), or computes it anew (rebuild). The first task lists the intervals and their size, and finds what can't be read any more; the
second makes them, one after the other, and goes on where it was when it is tried again."""
