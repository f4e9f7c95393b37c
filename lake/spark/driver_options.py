"""The settings with which the JVM of a driver on this machine starts: class path, class archive, garbage collector, compilers, logs.

Nothing here loads PySpark, so that Airflow's workers can pass the same settings to spark-submit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from lake.spark.preflight import class_archive, class_path, own_classes, spark_home
from lake.spark.session_digest import defaults_text

CLASS_PATH = "spark.driver.extraClassPath"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOCAL = re.compile(r"local(\[|$)")
_BEFORE_THESE = "spark.driver.defaultJavaOptions"
_OPTIONS_OF_JAVA = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS")
# G1, Java's default, uses a tenth of a refresh's CPU seconds to keep pauses short, which is of no use here.
_COLLECTOR = {r"-XX:\+Use\w+GC\b": "-XX:+UseParallelGC"}
_TIERS = r"-XX:[+-]?Tier"
_FOR_SMALL_WORK = {
    **_COLLECTOR,
    # Planning runs much code, each method some thousand times an hour: optimising it costs more than it saves. Loops are still optimised,
    # by the number of their iterations. Java's defaults: 5000, 600, 15000.
    _TIERS: "-XX:Tier4InvocationThreshold=30000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=60000",
}
"""Options of the JVM, each with the pattern of the user's own options that replace it (decisions 18 and 21)."""
# Java's default for the first compiler alone is 48 MB of code: it would compile some methods again and again
_FOR_ONE_COMMAND = {**_COLLECTOR, _TIERS: "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"}
"""The same for a process that ends before the second compiler has paid for itself (decision 34)."""
_LOGS = f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}"


def is_local(master: str) -> bool:
    """Whether the driver's process does all the work. The executors of local-cluster[...] are processes of their own."""
    return _LOCAL.match(master) is not None


def driver_options(settings: Mapping[str, str], resolved: Sequence[str], briefly: bool = False) -> dict[str, str]:
    """Settings of the driver's class path and its JVM: Lakejoin's, then the user's, so that those of the user apply.

    `settings`: the user's, besides those of spark-defaults.conf; `resolved`: Delta's jars, as downloaded; they are not on the class path in
    a Spark that is not on this disk. `briefly`: the process runs one command on small tables, and ends.
    """
    here, asked = class_path(list(resolved), spark_home()), _asked(JAVA_OPTIONS, settings)
    options = [_from_archive(asked) if here else "", java_options(settings, briefly), _LOGS, asked]
    found = {JAVA_OPTIONS: " ".join(filter(None, options))}
    return {CLASS_PATH: os.pathsep.join(filter(None, [*here, *_own(), _asked(CLASS_PATH, settings)])), **found} if here else found


def _own() -> list[str]:
    """The jar of Lakejoin's compiled Java classes, if set-up has made it of these sources."""
    return [str(jar)] if (jar := own_classes()).exists() else []


def java_options(settings: Mapping[str, str], briefly: bool = False) -> str:
    """The JVM's options for collection and compilation, without those that a user sets: a JVM with two collectors does not start."""
    wanted = _FOR_ONE_COMMAND if briefly else _FOR_SMALL_WORK
    said = [defaults_text(), *(os.environ.get(name, "") for name in _OPTIONS_OF_JAVA)]
    chosen = " ".join([*said, *(settings.get(name, "") for name in (JAVA_OPTIONS, _BEFORE_THESE))])
    return " ".join(options for pattern, options in wanted.items() if not re.search(pattern, chosen))


def _asked(name: str, settings: Mapping[str, str]) -> str:
    """What the user has set, in the settings or else in spark-defaults.conf, where the last line counts."""
    lines = re.findall(rf"^[ \t]*{re.escape(name)}(?:[ \t]*[=:][ \t]*|[ \t]+)(.*?)[ \t]*$", defaults_text(), re.MULTILINE)
    return settings.get(name, lines[-1] if lines else "")


def _from_archive(options: str) -> str:
    """The options for loading classes from the class archive; empty if there is none, or the user names another."""
    archive = class_archive()
    asked = "SharedArchiveFile" in options or "ArchiveClassesAtExit" in options
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:disable" if archive.exists() and not asked else ""
