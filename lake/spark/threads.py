"""Work for threads beside the calling one: in them it finds what the calling thread has set for its Spark jobs and for itself."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

from py4j.clientserver import ClientServer
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.util import inheritable_thread_target

from lake.core.phases import unrecorded
from lake.spark.session import active_session

T = TypeVar("T")


def pinned_threads() -> bool:
    """Whether each thread has a thread of its own in the JVM, where Delta looks for its session (not with PYSPARK_PIN_THREAD=false)."""
    return SparkContext._gateway is None or isinstance(SparkContext._gateway, ClientServer)


def as_in_this_thread(spark: SparkSession | None, work: Callable[[], T]) -> Callable[[], T]:
    """The work, to be called once in another thread, with a copy of the calling thread's context variables.

    With a session it also finds the local properties of the calling thread (job group, job tags, scheduler pool), and this session as
    the active one. Phases are not recorded, unless the work records its own: a recording is of one thread.
    """
    context = copy_context()
    if spark is None:
        return lambda: context.run(unrecorded, work)
    session = spark

    def in_session() -> T:
        with active_session(session):
            return context.run(unrecorded, work)

    made: Callable[[], T] = inheritable_thread_target(session)(in_session)
    return made
