"""The Spark session that Lakejoin makes where the caller brings none, and the session of its own that each view works in."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from delta import configure_spark_with_delta_pip
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from lake.errors import ConfigError
from lake.spark.jars import at_first_use
from lake.spark.jvm.gateway import active, jvm_of
from lake.spark.preflight import AT_START, class_archive, class_path, jars, spark_home
from lake.spark.session_digest import defaults_text, session_of

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

WRITTEN = "spark.lakejoin.written"
"""What a session was made of (lake/spark/session_digest.py), where nobody but Lakejoin had a say in it."""
_JAVA_OPTIONS, _CLASS_PATH = "spark.driver.extraJavaOptions", "spark.driver.extraClassPath"
_OPTIONS_OF_JAVA = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS")
_FOR_SMALL_WORK = {
    # G1, Java's default, works beside a refresh for a tenth of its CPU seconds, for the sake of short pauses that nobody waits for here.
    r"-XX:\+Use\w+GC\b": "-XX:+UseParallelGC",
    # Planning runs through a great deal of code, each piece of it some thousand times an hour: to optimise what is hardly warm never pays.
    # Inner loops are found by their turns, and optimised as ever. Java's own numbers: 5000, 600, 15000.
    r"-XX:[+-]?Tier": "-XX:Tier4InvocationThreshold=30000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=60000",
}
"""What the JVM is told, by the options of a user's that leave it out (decisions 18 and 21)."""
_GATEWAY = "PYSPARK_GATEWAY_PORT"  # set where spark-submit, or another launcher, has started the JVM

# Small changes want few tasks; a user's own settings (`spark:` in lakejoin.yml) come after these.
_DEFAULTS = {
    "spark.app.name": "lakejoin",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # it asks the JVM five times at each call that makes a column
    **AT_START,
    "spark.sql.ui.explainMode": "simple",  # of each plan a text is made for that page
    "spark.sql.ui.retainedExecutions": "50",  # plans of the past, a thousand of them, kept for a page that is not shown
    "spark.sql.codegen.cache.maxEntries": "5000",  # a refresh runs the same hundred pieces of generated code each time
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.extensions": EXTENSION,
    "spark.sql.catalog.spark_catalog": CATALOG,
}


def make_session(settings: Mapping[str, str]) -> SparkSession:
    """A session with Delta, with the given settings over those of spark-submit, and these over Lakejoin's defaults."""
    builder, started_here = SparkSession.builder, SparkContext._active_spark_context is None
    submitted, named = _submitted(), bool({"spark.jars.packages", "spark.jars"} & settings.keys())
    resolved = at_first_use() if started_here and not submitted and not named else jars()
    written = {WRITTEN: session_of(settings)} if started_here and not submitted else {}
    here = [] if submitted else class_path(resolved, spark_home())
    asked, logs = settings.get(_JAVA_OPTIONS, ""), f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}"
    options = [_from_archive(asked) if here else "", java_options(settings), logs, asked]
    if here:
        settings = {**settings, _CLASS_PATH: os.pathsep.join(filter(None, [*here, settings.get(_CLASS_PATH)]))}
    settings = {**submitted, **settings, **({} if submitted else {_JAVA_OPTIONS: " ".join(filter(None, options))})}
    if "spark.master" not in settings and "SPARK_REMOTE" not in os.environ and not os.environ.get("SPARK_ENV_LOADED"):
        builder = builder.master("local[*]")
    for key, value in {**_DEFAULTS, **settings, **written}.items():
        builder = builder.config(key, value)
    if submitted:  # its JVM runs already, with its class path and its way of logging
        session = builder.config("spark.log.level", settings.get("spark.log.level", "ERROR")).getOrCreate()
        if started_here:
            _install_local_files(session)
        return session
    if resolved:
        if not here or not settings.get("spark.master", "local").startswith("local"):  # executors elsewhere have no class path of ours
            builder = builder.config("spark.jars", ",".join(filter(None, [*resolved, settings.get("spark.jars")])))
    elif not named:
        builder = configure_spark_with_delta_pip(builder)
    session = builder.getOrCreate()
    if (session.sparkContext.master or "").startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        session.sparkContext.pythonExec = sys.executable  # a user's functions find the packages that they find here; else: PATH's python3
    if started_here:
        _install_local_files(session)
    return session


def _install_local_files(session: SparkSession) -> None:
    """Write local files without a process for each (decision 23). It applies to the whole JVM: never in one that the caller started."""
    jvm_of(session).own("LocalFiles").install(session.sparkContext._jsc.hadoopConfiguration())


def java_options(settings: Mapping[str, str]) -> str:
    """The JVM's options for its collector and its compilers, each unless a user has chosen: a JVM of two collectors does not start."""
    said = [defaults_text(), *(os.environ.get(name, "") for name in _OPTIONS_OF_JAVA)]
    chosen = " ".join([*said, *(settings.get(name, "") for name in (_JAVA_OPTIONS, "spark.driver.defaultJavaOptions"))])
    return " ".join(options for pattern, options in _FOR_SMALL_WORK.items() if not re.search(pattern, chosen))


def _from_archive(options: str) -> str:
    """The options with which the JVM takes classes from the archive, as far as it fits; unless another one is asked for."""
    archive = class_archive()
    asked = "SharedArchiveFile" in options or "ArchiveClassesAtExit" in options
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:disable" if archive.exists() and not asked else ""


def _submitted() -> dict[str, str]:
    """The settings of spark-submit (its flags, its defaults file, and the master that it was given); none where there was none."""
    if _GATEWAY not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def silence_pyspark_errors() -> None:
    """Keep PySpark from printing each error as JSON beside the message that a person gets."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def own_session(spark: SparkSession) -> SparkSession:
    """A clone of the caller's session, settings included, without its temp views (trap 17)."""
    java = getattr(spark, "_jsparkSession", None)
    if java is None:
        raise ConfigError("This session is a Spark Connect client, which has no JVM to reach. Lakejoin needs a classic Spark session.")
    if EXTENSION not in (spark.sparkContext.getConf().get("spark.sql.extensions") or ""):
        try:
            spark._jvm.org.apache.spark.sql.delta.DeltaLog.toString()  # type: ignore[union-attr]
        except (Py4JError, TypeError) as error:
            raise ConfigError(
                f"This Spark session has no Delta Lake. Make it with spark.sql.extensions={EXTENSION} and Delta's jars."
            ) from error
    clone = java.cloneSession()
    clone.sessionState().catalog().clearTempTables()
    own = SparkSession(spark.sparkContext, clone)
    own.conf.set(_LEAVES, "1")  # rows on the driver: one task, and no shuffle to group them
    for lost in _LOSING_ROWS:
        own.conf.set(lost, "false")
    own.conf.set("spark.sql.inMemoryColumnarStorage.compressed", "false")  # what is kept for a refresh is read a few times, and soon
    if own.conf.get(_CHECKSUMS, None) is None:
        own.conf.set(_CHECKSUMS, f"org.apache.spark.sql.execution.streaming.checkpointing.{_BY_FILE_SYSTEM}")
    return own


@contextmanager
def active_session(spark: SparkSession) -> Iterator[None]:
    """Make the session this thread's active one: Delta asks the thread for its session, and a new thread has none."""
    with active(jvm_of(spark), spark._jsparkSession):
        yield


_LOSING_ROWS = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
"""A file that can't be read is an error, whatever the caller's session does with it."""

# Few changes are broadcast, and grouped in few tasks: planning stage by stage would cost more jobs than it saves.
_FEW = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
_LEAVES = "spark.sql.leafNodeDefaultParallelism"
# Delta writes a version's checksum as Spark's streams write theirs: by Hadoop's FileContext, which starts eight processes on a local disk
_CHECKSUMS, _BY_FILE_SYSTEM = "spark.sql.streaming.checkpointFileManagerClass", "FileSystemBasedCheckpointFileManager"


@contextmanager
def few_changes(own: SparkSession) -> Iterator[Callable[[], None]]:
    """Settings of a view's own session for a refresh of few changes. Yields what ends them early, where there are many."""
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
    """Settings of a view's own session, for a time. Yields what ends them early."""
    before = {key: own.conf.get(key, None) for key in wanted}

    def end() -> None:
        for key, value in before.items():
            own.conf.unset(key) if value is None else own.conf.set(key, value)

    for key, value in wanted.items():
        own.conf.set(key, value)
    try:
        yield end
    finally:
        end()


@contextmanager
def vacuuming(own: SparkSession) -> Iterator[None]:
    """For a VACUUM: folders are listed in a few tasks a core (Delta makes ten thousand), and what it prints for a person goes
    to standard error, from this thread on: standard output is for answers."""
    jvm = jvm_of(own)
    getattr(getattr(jvm.scala, "Console$"), "MODULE$").setOutDirect(jvm.java.lang.System.err)
    with settings(own, {"spark.sql.sources.parallelPartitionDiscovery.parallelism": str(4 * own.sparkContext.defaultParallelism)}):
        yield
