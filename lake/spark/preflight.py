"""Is this machine fit to run Lakejoin? One line a finding; run by `make setup` before anything is installed, and by `doctor`.

Run as a script it imports nothing of Lakejoin, and its syntax is old, so that a too old Python can say so.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

PYTHON = (3, 11)
JAVA = 17
AT_START = {"spark.buffer.pageSize": "4m"}
"""Settings that Spark reads as its JVM starts. In pages of the default size the smallest table that is broadcast takes 64 MB of the driver
until the collector finds it unused."""


def python_problem() -> "str | None":
    """What is wrong with this Python, None if nothing."""
    if sys.version_info >= PYTHON:
        return None
    return "Python %d.%d or newer is needed, this is %s: set PYTHON=... to a newer one (make setup PYTHON=python3.12)." % (
        PYTHON[0],
        PYTHON[1],
        sys.version.split()[0],
    )


def java_version() -> "int | None":
    """The major version of the Java on the path (or of JAVA_HOME), None where there is none."""
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    try:
        text = subprocess.run([java, "-version"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, check=False).stderr.decode()
    except OSError:
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def java_problem() -> "str | None":
    """What is wrong with this Java, None if nothing."""
    found = java_version()
    if found is not None and found >= JAVA:
        return None
    here = "there is none on the path" if found is None else "this is Java %d" % found
    return "Java %d or newer is needed, %s: install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME." % (JAVA, here)


def jar_folder() -> "Path":
    """Where `make setup` keeps Delta's jars: in the virtual environment, or where LAKEJOIN_JARS says."""
    return Path(os.environ.get("LAKEJOIN_JARS") or os.path.join(sys.prefix, "share", "lakejoin", "jars"))


def jars() -> "list[str]":
    """The jars that were resolved at set-up, empty where there are none: Spark then resolves them itself."""
    return sorted(str(jar) for jar in jar_folder().glob("*.jar"))


def spark_home() -> "Path":
    """Where Spark is: SPARK_HOME, or PySpark's own folder. PySpark is not loaded for it."""
    from importlib.util import find_spec

    return Path(os.environ.get("SPARK_HOME") or find_spec("pyspark").submodule_search_locations[0])


def class_path(resolved: "list[str]", spark: "Path") -> "list[str]":
    """Those of the resolved jars that Spark (its home) has in no version of its own, which would come after these on the class path."""
    own = {artifact(jar.name) for jar in spark.joinpath("jars").glob("*.jar")}
    found = [jar for jar in resolved if artifact(Path(jar).name.partition("_")[2]) not in own | {"commons-logging"}]
    return found if own else []  # jcl-over-slf4j stands for commons-logging


def artifact(jar: str) -> str:
    """A jar's name without its version."""
    return re.sub(r"-\d[\w.+-]*\.jar$", "", jar)


def class_archive() -> "Path":
    """Where `make setup` keeps what the JVM has made of the classes that a refresh loads (lake/cli/class_archive.py)."""
    from importlib.metadata import version

    return jar_folder() / ("classes-%s-%s.jsa" % (version("pyspark"), version("delta-spark")))


if __name__ == "__main__":
    problems = [p for p in (python_problem(), java_problem()) if p]
    if problems:
        sys.exit("\n".join(problems))
