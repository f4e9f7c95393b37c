"""Measures where the time of a refresh goes, by Spark's metrics, for `lakejoin refresh --profile` and the benchmarks.

A job belongs to the phase in which it was submitted; a task of few rows that the driver runs itself counts as a task without a job. The
rest of a phase is time of the driver: reading logs, planning, generating code,
calls between Python and the JVM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import SparkSession

from lake.core.phases import PHASES, Phases
from lake.core.results import Phase, Profile
from lake.spark.failures import CALL_ERRORS, java_class
from lake.spark.jvm.gateway import Java, jvm_of

T = TypeVar("T")
_WAIT = 10_000
"""Milliseconds to wait until Spark has recorded the finished jobs."""


@dataclass(frozen=True)
class _Counters:
    rules: int
    compiling: int
    classes: int

    @staticmethod
    def of(spark: SparkSession | None) -> _Counters:
        if spark is None:
            return _Counters(0, 0, 0)
        sql = jvm_of(spark).org.apache.spark.sql.catalyst
        compiled = jvm_of(spark).org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
        rules = sql.rules.RuleExecutor.getCurrentMetrics().time()
        return _Counters(int(rules), int(sql.expressions.codegen.CodeGenerator.compileTime()), int(compiled.getCount()))


def profiled(running: Callable[[], SparkSession | None], work: Callable[[], T]) -> tuple[T, Profile]:
    """Do some work and measure it. `running`: returns Spark's session, None while there is none. Jobs that other threads run in the
    same session meanwhile are counted as well."""
    before, phases = _Counters.of(running()), Phases()
    with phases.recorded():
        found = work()
    return found, _profile(running(), phases, before)


def _profile(spark: SparkSession | None, phases: Phases, before: _Counters) -> Profile:
    after = _Counters.of(spark)
    jobs = [*_jobs(spark, phases.spans[0][1]), *_driver_tasks(spark, phases.spans[0][1])] if spark is not None else []
    shown = []
    for name in PHASES:
        spans = [(since, until) for n, since, until in phases.spans if n == name]
        own = [job for job in jobs if any(since <= job.submitted < until for since, until in spans)]
        seconds, took = sum(until - since for since, until in spans), sum(job.seconds for job in own)
        jobs_of_phase, cpu, tasks, read = (sum(getattr(job, what) for job in own) for what in ("jobs", "cpu", "tasks", "read"))
        shown.append(Phase(name, round(seconds, 3), jobs_of_phase, tasks, round(took, 3), round(cpu, 3), read))
    nanos = 1e9
    rules, code = (after.rules - before.rules) / nanos, (after.compiling - before.compiling) / nanos
    return Profile(tuple(shown), round(rules, 3), round(code, 3), after.classes - before.classes)


@dataclass(frozen=True)
class _Job:
    """A job of Spark, or a task that ran without one."""

    submitted: float
    seconds: float
    tasks: int
    cpu: float
    read: int
    jobs: int = 1


def _jobs(spark: SparkSession, since: float) -> list[_Job]:
    """The jobs that were submitted since then. Spark stores the last thousand."""
    context, scala = jvm_of(spark).org.apache.spark.SparkContext.getOrCreate(), jvm_of(spark).conversions
    context.listenerBus().waitUntilEmpty(_WAIT)
    store, found = context.statusStore(), []
    for job in scala.list(store.jobsList(None)):
        submitted, ended = (at.get().getTime() / 1000 if at.isDefined() else 0.0 for at in (job.submissionTime(), job.completionTime()))
        if submitted < since - 0.001:  # its times are in milliseconds
            continue
        stages = [stage_of(store, int(number)) for number in scala.list(job.stageIds())]
        ran = [stage for stage in stages if stage is not None and str(stage.status().toString()) == "COMPLETE"]
        cpu, read = sum(int(s.executorCpuTime()) for s in ran) / 1e9, sum(int(s.inputBytes()) for s in ran)
        found.append(_Job(max(submitted, since), max(ended - submitted, 0.0), int(job.numCompletedTasks()), cpu, read))
    return found


def _driver_tasks(spark: SparkSession, since: float) -> list[_Job]:
    """The tasks that the driver ran itself since then (jvm/lakejoin/DriverTask.java). The last thousand are stored."""
    lines = [map(int, line.split()) for line in str(jvm_of(spark).own_plans.driverTasks()).splitlines()]
    return [_Job(max(started / 1000, since), 0.0, 1, cpu / 1e9, read, 0) for started, cpu, read in lines if started / 1000 >= since - 0.001]


def stage_of(store: Java, number: int) -> Java | None:
    """Spark's record of a stage; None for a skipped stage that is no longer stored."""
    try:
        return store.lastStageAttempt(number)
    except CALL_ERRORS as error:
        if "NoSuchElementException" not in java_class(error):
            raise
        return None


def heap_bytes(spark: SparkSession) -> int:
    """The used bytes of the driver's heap."""
    runtime = jvm_of(spark).java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())
