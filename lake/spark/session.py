"""Makes the Spark session, unless the caller provides one, and clones it: each view has a session with settings of its own."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from delta import configure_spark_with_delta_pip
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lake.errors import ConfigError
from lake.spark import log_store
from lake.spark.driver_options import CLASS_PATH, driver_options, is_local
from lake.spark.jars import at_first_use
from lake.spark.jvm.gateway import active, jvm_of
from lake.spark.launch import launch, refuse_unusable_java
from lake.spark.preflight import AT_START, jars
from lake.spark.session_digest import SESSION_DIGEST, settings_digest
from lake.spark.versions import refuse_untested

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

_GATEWAY = "PYSPARK_GATEWAY_PORT"  # set where spark-submit, or another launcher, has started the JVM

# A user's own settings (`spark:` in lakejoin.yml) come after these.
_DEFAULTS = {
    "spark.app.name": "lakejoin",
    "spark.scheduler.mode": "FAIR",  # requests of a server share the cores (job_groups.py); for one thread it is the same as FIFO
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # it asks the JVM five times at each call that makes a column
    **AT_START,
    "spark.sql.ui.explainMode": "simple",  # Spark formats each plan for that page
    "spark.sql.ui.retainedExecutions": "50",  # Spark stores a thousand plans for a page that is not served
    "spark.sql.codegen.cache.maxEntries": "5000",  # each refresh runs the same hundred generated classes
    "spark.sql.extensions": EXTENSION,
    "spark.sql.catalog.spark_catalog": CATALOG,
}
_ON_ONE_MACHINE = {
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.databricks.delta.snapshotPartitions": "2",
}
"""Only where the driver's cores do the work: a cluster of 200 cores would shuffle a build into the few partitions of a small driver."""


def make_session(
    settings: Mapping[str, str], besides: Mapping[str, str] | None = None, briefly: bool = False, one_writer: bool = False
) -> SparkSession:
    """A session with Delta. The given settings override those of spark-submit, and these override Lakejoin's defaults.

    `besides`: settings that change no results, so that views are the same with and without them. `briefly`: the process runs one command on
    small tables, and ends. `one_writer`: nobody else writes the tables of views, so commits are written as Delta does.

    Raises ConfigError if there is no Java that can run Spark.
    """
    builder, started_here = SparkSession.builder, SparkContext._active_spark_context is None
    submitted, named = _submitted(), bool({"spark.jars.packages", "spark.jars"} & settings.keys())
    launched_here = started_here and not submitted and "SPARK_REMOTE" not in os.environ and "spark.remote" not in settings
    if launched_here:
        refuse_unusable_java()
    resolved = at_first_use() if started_here and not submitted and not named else jars()
    written = {SESSION_DIGEST: settings_digest(settings)} if started_here and not submitted else {}
    options = {} if submitted else driver_options(settings, resolved, briefly)
    settings = {**submitted, **settings, **options}
    if "spark.master" not in settings and "SPARK_REMOTE" not in os.environ and not os.environ.get("SPARK_ENV_LOADED"):
        builder = builder.master("local[*]")
    for key, value in {**defaults(settings), **(besides or {}), **settings, **written}.items():
        builder = builder.config(key, value)
    if submitted:  # the JVM runs already, with its own class path and logging
        session = builder.config("spark.log.level", settings.get("spark.log.level", "ERROR")).getOrCreate()
        if started_here:
            _install(session, one_writer)
        return session
    if resolved:
        if CLASS_PATH not in options or not is_local(settings.get("spark.master", "local")):  # executors elsewhere need the jars
            builder = builder.config("spark.jars", ",".join(filter(None, [*resolved, settings.get("spark.jars")])))
    elif not named:
        builder = configure_spark_with_delta_pip(builder)
    if launched_here:
        launch(builder._options)
    session = builder.getOrCreate()
    if (session.sparkContext.master or "").startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        session.sparkContext.pythonExec = sys.executable  # Python functions run in this Python, not in the first python3 of PATH
    if started_here:
        _install(session, one_writer)
    return session


def defaults(settings: Mapping[str, str]) -> dict[str, str]:
    """Lakejoin's own settings of a session, for the master of the given ones (none: this machine)."""
    return {**_DEFAULTS, **(_ON_ONE_MACHINE if is_local(settings.get("spark.master", "local")) else {})}


def _install(session: SparkSession, one_writer: bool) -> None:
    """Write local files without starting a process for each (decision 23), and commits on S3 safely (decision 35).

    It affects the whole JVM, so never one of the caller's.
    """
    jvm_of(session).own("LocalFiles").install(session.sparkContext._jsc.hadoopConfiguration())
    if not one_writer:
        log_store.install(session)


def _submitted() -> dict[str, str]:
    """The settings of spark-submit: its arguments and its defaults file; empty if it did not start this process."""
    if _GATEWAY not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def silence_pyspark_errors() -> None:
    """Keep PySpark from printing each error as JSON in addition to our message."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def settings_of(spark: SparkSession) -> dict[str, str]:
    """All settings of a session, in one call."""
    found: dict[str, str] = jvm_of(spark).conversions.dict(spark._jsparkSession.conf().getAllAsJava())
    return found


def own_session(spark: SparkSession) -> SparkSession:
    """A clone of a session with its settings, without its temporary views (trap 17)."""
    java = getattr(spark, "_jsparkSession", None)
    if java is None:
        raise ConfigError("This session is a Spark Connect client, which has no JVM to reach. Lakejoin needs a classic Spark session.")
    if EXTENSION not in str(spark.conf.get("spark.sql.extensions", "")):
        try:
            spark._jvm.org.apache.spark.sql.delta.DeltaLog.toString()  # type: ignore[union-attr]
        except (Py4JError, TypeError) as error:
            raise ConfigError(
                f"This Spark session has no Delta Lake. Make it with spark.sql.extensions={EXTENSION} and Delta's jars."
            ) from error
    clone = java.cloneSession()
    clone.sessionState().catalog().clearTempTables()
    own = SparkSession(spark.sparkContext, clone)
    own.conf.set(_LEAVES, "1")  # local rows are one partition, so that grouping them needs no shuffle
    for lost in _LOSING_ROWS:
        own.conf.set(lost, "false")
    own.conf.set("spark.sql.inMemoryColumnarStorage.compressed", "false")  # frames are cached for one refresh, and read a few times
    if own.conf.get(_CHECKSUMS, None) is None:
        own.conf.set(_CHECKSUMS, f"org.apache.spark.sql.execution.streaming.checkpointing.{_BY_FILE_SYSTEM}")
    return own


def refuse_untested_session(spark: SparkSession) -> None:
    """Raise ConfigError unless the session's Spark and Delta Lake are versions that Lakejoin is tested with."""
    try:
        delta = str(spark._jvm.io.delta.package.VERSION())  # type: ignore[union-attr]
    except (Py4JError, TypeError, PySparkException):
        return  # it has no Delta Lake, or no JVM, which own_session says
    refuse_untested(spark.version, delta)


@contextmanager
def active_session(spark: SparkSession) -> Iterator[None]:
    """Within it, the session is this thread's active one: Delta uses the thread's session, and a new thread has none."""
    with active(jvm_of(spark), spark._jsparkSession):
        yield


def made_frame(own: SparkSession, data: Any, schema: StructType) -> DataFrame:
    """`own.createDataFrame`, which would leave this session as the one that `SparkSession.active()` gives to the user's code."""
    before = SparkSession._activeSession
    with active_session(own):
        try:
            return own.createDataFrame(data, schema)
        finally:
            SparkSession._activeSession = before


_LOSING_ROWS = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
"""A file that can't be read is an error, whatever the settings of the caller's session."""

# Few changes are broadcast and grouped in few tasks: adaptive execution would run more jobs than it saves.
_FEW = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
_LEAVES = "spark.sql.leafNodeDefaultParallelism"
# By default Delta writes checksums by Hadoop's FileContext, which starts eight processes for each file on a local disk
_CHECKSUMS, _BY_FILE_SYSTEM = "spark.sql.streaming.checkpointFileManagerClass", "FileSystemBasedCheckpointFileManager"


@contextmanager
def few_changes(own: SparkSession) -> Iterator[Callable[[], None]]:
    """Within it, a view's session has the settings for few changes. Yields a function that ends them, for many changes."""
    with settings(own, _FEW) as end:

        def many() -> None:
            end()
            own.conf.unset(_LEAVES)

        try:
            yield many
        finally:
            own.conf.set(_LEAVES, "1")


@contextmanager
def settings(own: SparkSession, wanted: Mapping[str, str]) -> Iterator[Callable[[], None]]:
    """Within it, a view's session has the given settings. Yields a function that ends them early."""
    session, jvm = own._jsparkSession, jvm_of(own)
    before = jvm.own_active.set(session, pickle.dumps(dict(wanted), protocol=2))

    def end() -> None:
        jvm.own_active.set(session, before)

    try:
        yield end
    finally:
        end()


@contextmanager
def vacuuming(own: SparkSession) -> Iterator[None]:
    """Settings for VACUUM: it lists folders in a few tasks for each core (Delta's default is ten thousand), and its messages go to standard
    error, because standard output is for results."""
    jvm = jvm_of(own)
    getattr(getattr(jvm.scala, "Console$"), "MODULE$").setOutDirect(jvm.java.lang.System.err)
    with settings(own, {"spark.sql.sources.parallelPartitionDiscovery.parallelism": str(4 * own.sparkContext.defaultParallelism)}):
        yield
