"""The operators for real-time paths: one starts their application and leaves it running, one checks their leases.

Real-time paths run without end, so they do not occupy a worker slot.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import conf
from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from lake.airflow.operators import LakejoinOperator
from lake.airflow.result_files import newest_lease
from lake.airflow.settings import Deployment
from lake.core.constants import SUFFIXES

_NOT_WAITED_FOR = {"spark.yarn.submit.waitAppCompletion": "false", "spark.kubernetes.submission.waitAppCompletion": "false"}
_POLL = 2.0


class StartRealtime(LakejoinOperator):
    """Starts one application for all real-time paths: on the cluster in cluster mode, otherwise as a detached process on the worker's
    machine. Skipped if all paths run."""

    lasts = True

    def __init__(self, *, deployment: Deployment, **kwargs: Any) -> None:
        submit = {"track_driver_via_k8s_api": True, "yarn_track_via_rm_api": True} if deployment.in_cluster else {}
        super().__init__(deployment=deployment, command=["realtime", "--all", "--json"], **submit, **kwargs)

    def execute(self, context: Context) -> Any:
        if not self._some_dead():
            raise AirflowSkipException("All real-time paths run already.")
        self.application_args = [*self.deployment.options, *self.command]
        self.conf = {**(self.conf or {}), **_NOT_WAITED_FOR}
        self.add_delta()
        with self.private_settings():
            return self._start()

    def _start(self) -> dict[str, Any] | None:
        """Start the application, and wait until it runs: it needs the file of private settings until then."""
        hook = self._get_hook()
        if self.deployment.in_cluster:
            hook.submit(self.application)
            return None
        log = Path(conf.get_mandatory_value("logging", "base_log_folder")) / f"{self.deployment.dag_id('realtime')}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        command = hook._build_spark_submit_command(self.application)  # the command that the hook would run and wait for
        env = {**os.environ, **self.deployment.env_vars}
        with log.open("w") as out:
            process = subprocess.Popen(
                command, env=env, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self._until_running(process, log)
        return {"process": process.pid, "log": str(log)}

    def _some_dead(self) -> bool:
        return any(dead(self.deployment, dict(_leases(self.deployment))))

    def _until_running(self, process: subprocess.Popen[bytes], log: Path) -> None:
        """Wait while the application starts: it may have to build tables first. Airflow's `execution_timeout` limits the wait."""
        while self._some_dead():
            if process.poll() is not None:
                raise AirflowException(f"The real-time paths did not start. The end of {log}:\n{log.read_text()[-2000:]}")
            time.sleep(_POLL)


class CheckHeartbeat(BaseOperator):
    """Fails if a real-time path does not run or is behind; the message says which, and what to do."""

    def __init__(self, *, deployment: Deployment, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.deployment = deployment

    def execute(self, context: Context) -> Any:
        leases = dict(_leases(self.deployment))
        problems = [*dead(self.deployment, leases), *behind(self.deployment, leases)]
        for view, lease in leases.items():
            self.log.info("%s: %s, latency %s", view, lease.get("state", "never ran"), lease.get("latency_seconds"))
        if problems:
            raise AirflowException("\n".join(problems))


def dead(deployment: Deployment, leases: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    """A message for each real-time path that does not run, by its lease, with how to start it."""
    from lake.core.constants import LEASE_RUNNING, LEASE_SECONDS

    start = f"Run the DAG {deployment.dag_id('realtime')}, or `lakejoin realtime --all`."
    for view, lease in leases.items():
        age = time.time() - float(lease.get("renewed", 0))
        if not lease:
            yield f"The real-time path of view {view!r} has never run. {start}"
        elif lease.get("state") not in LEASE_RUNNING:
            yield f"The real-time path of view {view!r} has {lease.get('state')}{_because(lease)}. {start}"
        elif age > LEASE_SECONDS:
            process = f"process {lease.get('process')} on {lease.get('host')}"
            for_long = f"has not renewed its lease for {timedelta(seconds=int(age))}"
            yield f"The real-time path of view {view!r} is dead: {process} {for_long}. {start}"


def behind(deployment: Deployment, leases: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    """A message for each running real-time path whose latency is above `behind_seconds`."""
    limit = deployment.config.airflow.behind_seconds
    for view, lease in leases.items():
        late, waiting = (lease.get("latency_seconds") or {}).get("p95"), lease.get("backlog_versions", 0)
        if late is not None and late > limit and waiting:
            yield (
                f"The real-time path of view {view!r} is behind: {waiting:,} versions wait, and 95 % of changes took up to {late:.0f} s "
                f"(`behind_seconds` is {limit:.0f}). Give it more cores, or larger batches (`buffer_capacity`)."
            )


def _leases(deployment: Deployment) -> Iterator[tuple[str, dict[str, Any]]]:
    """The newest lease of each real-time path. Tables in a schema of a catalog can't be read without Spark, so they are left out."""
    from lake.core.constants import LEASE_FOLDER

    for name, view in deployment.config.views.items():
        place = deployment.config.view_path(name + SUFFIXES["eventual"])
        if view.realtime is not None and place is not None:
            yield name, newest_lease(f"{place}/{LEASE_FOLDER}")


def _because(lease: Mapping[str, Any]) -> str:
    return f": {lease['error']}" if lease.get("error") else ""
