"""Threads for refreshes beside each other: each has what the calling thread has set for its Spark jobs and for itself."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from threading import Thread

from py4j.clientserver import ClientServer
from pyspark import InheritableThread, SparkContext
from pyspark.sql import SparkSession

from lake.core.phases import unrecorded
from lake.spark.session import active_session


def pinned_threads() -> bool:
    """Whether each thread has a thread of its own in the JVM, where Delta looks for its session (not with PYSPARK_PIN_THREAD=false)."""
    return SparkContext._gateway is None or isinstance(SparkContext._gateway, ClientServer)


def thread_like_this(spark: SparkSession | None, work: Callable[[], None], name: str) -> Thread:
    """A thread, not yet started, that does some work with a copy of the calling thread's context variables.

    With a session it also has the local properties of the calling thread (job group, job tags, scheduler pool), and this session as its
    active one. Its thread in the JVM ends with it. Phases are not recorded in it, unless the work records its own: a recording is of one
    thread.
    """
    context = copy_context()
    if spark is None:
        return Thread(target=lambda: context.run(unrecorded, work), name=name)
    session = spark

    def in_session() -> None:
        with active_session(session):
            context.run(unrecorded, work)

    return InheritableThread(in_session, session=spark, name=name)
