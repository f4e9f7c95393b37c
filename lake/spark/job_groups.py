"""Groups the Spark jobs of a thread under a name, so that they can be cancelled without those of other threads, and get a fair share."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession

from lake.spark.failures import SPARK_ERRORS

_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel", "spark.scheduler.pool")


@contextmanager
def job_group(spark: SparkSession, name: str, description: str) -> Iterator[None]:
    """Within it, the jobs that this thread starts belong to the group. Each group's name is used once.

    They are in the scheduler pool of the thread: with `spark.scheduler.mode` FAIR, pools share the cores. Spark never forgets a pool, so
    the threads are to be few.
    """
    context = spark.sparkContext
    context.setJobGroup(name, description)
    context.setLocalProperty("spark.scheduler.pool", threading.current_thread().name)
    try:
        yield
    finally:
        with suppress(*SPARK_ERRORS):
            for key in _PROPERTIES:
                context.setLocalProperty(key, None)  # type: ignore[arg-type]  # it unsets the property


def cancel_group(spark: SparkSession, name: str) -> None:
    """Cancel the jobs of a group, and those that it would start from now on."""
    with suppress(*SPARK_ERRORS):  # a JVM that has ended runs no job
        spark.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(name)
