"""Whether a refresh has nothing to do, found out by its task itself, as the command finds it out (decision 16): no application is started.

For that, an application is told what its session is made of, as a digest, and stores it with what it publishes. Only settings and options
that change no results may be given to spark-submit beside those of lakejoin.yml's `spark:` without changing the digest.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError
from typing import Any

from lake.airflow.settings import Deployment
from lake.core.stamp import Stamp
from lake.spark.session_digest import SESSION_DIGEST, settings_digest

_RESOURCES = (
    *("spark.buffer.", "spark.cores.", "spark.driver.cores", "spark.driver.memory", "spark.dynamicAllocation.", "spark.eventLog."),
    *("spark.executor.", "spark.jars", "spark.kubernetes.", "spark.memory.", "spark.network.", "spark.submit.", "spark.ui.", "spark.yarn."),
)
"""Settings of what an application may use, by the beginnings of their names."""
_OPTIONS = frozenset(
    {"conf", "driver_memory", "executor_cores", "executor_memory", "jars", "name", "num_executors", "packages", "queue", "repositories"}
    | {"status_poll_interval", "total_executor_cores", "verbose"}
)
"""Options of spark-submit that change no results. Others may bring settings or an environment that are not known here."""


def session_settings(deployment: Deployment) -> dict[str, str] | None:
    """The setting by which an application knows what its session is made of; None if that is not known here."""
    if deployment.in_cluster or not _OPTIONS.issuperset(deployment.config.airflow.submit):
        return None
    conf = deployment.config.airflow.submit.get("conf", {})
    changing = {name: str(value) for name, value in conf.items() if not name.startswith(_RESOURCES)}
    try:
        return {SESSION_DIGEST: settings_digest({**deployment.config.spark, **changing})}
    except (PackageNotFoundError, OSError):  # this worker has no PySpark
        return None


def nothing_to_do(deployment: Deployment, views: Sequence[str], run: str, until: datetime | None) -> dict[str, Any] | None:
    """The answer of a refresh of some views that have nothing to do; None if they may have, or if only Spark can tell.

    `until`: the time to which the views are to be refreshed. It is no answer for views that have read newer versions.
    """
    known = session_settings(deployment)
    if known is None:
        return None
    from lake.operations.no_changes import nothing_done  # not while the DAG is parsed
    from lake.views.up_to_date import committed_until, unchanged

    started, config, stamps = time.monotonic(), deployment.config, dict[str, Stamp]()
    for view in views:
        stamp = unchanged(config, view, known[SESSION_DIGEST])
        if stamp is None or (until is not None and not committed_until(config, stamp, until)):
            return None
        stamps[view] = stamp
    found = nothing_done(config, stamps, run).to_json()
    for outcome in found["views"].values():
        outcome["result"]["seconds"] = round(time.monotonic() - started, 3)
    answer: dict[str, Any] = json.loads(json.dumps(found, default=str))
    return answer
