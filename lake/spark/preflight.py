"""Checks whether Lakejoin can run on this machine; used by `make setup`, before anything is installed, and by `lakejoin doctor`.

Run as a script it imports nothing of Lakejoin, and its syntax is old, so that a too old Python can say so.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

PYTHON = (3, 11)
JAVA = 17
_JARS = (
    ("org.apache.hadoop.fs.s3a", "org.apache.hadoop:hadoop-aws:HADOOP"),
    ("s3", "org.apache.hadoop:hadoop-aws:HADOOP, whose scheme is s3a"),
    ("software.amazon.awssdk", "software.amazon.awssdk:bundle, in the version that hadoop-aws:HADOOP names"),
    ("software.amazon.s3.analyticsaccelerator", "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3"),
    ("org.apache.hadoop.fs.azurebfs", "org.apache.hadoop:hadoop-azure:HADOOP"),
    ("abfs", "org.apache.hadoop:hadoop-azure:HADOOP"),
    ("com.google.cloud.hadoop", "the Cloud Storage connector, com.google.cloud.bigdataoss:gcs-connector"),
    ("gs", "the Cloud Storage connector, com.google.cloud.bigdataoss:gcs-connector"),
    ("org.apache.spark.sql.delta", "Delta's, io.delta:delta-spark_SPARK_2.13"),
    ("io.delta", "Delta's, io.delta:delta-spark_SPARK_2.13"),
)
"""How the name of a class, or the scheme of a URI, begins, and the jar that has it."""
JAVA_SOURCES = Path(__file__).parent / "jvm" / "lakejoin"
"""The sources of Lakejoin's Java classes, in the folder of their package."""
AT_START = {"spark.buffer.pageSize": "4m"}
"""Settings that Spark reads only when its JVM starts. With pages of the default size, each broadcast table takes 64 MB of the driver's
memory, however small it is, until it is garbage-collected."""


def python_problem() -> "str | None":
    """Why this Python can't be used; None if it can."""
    if sys.version_info >= PYTHON:
        return None
    return "Python %d.%d or newer is needed, this is %s: set PYTHON=... to a newer one (make setup PYTHON=python3.12)." % (
        PYTHON[0],
        PYTHON[1],
        sys.version.split()[0],
    )


def java_version() -> "int | None":
    """The major version of the Java of JAVA_HOME, or else of the path; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        return None
    release = Path(os.path.realpath(java)).parent.parent / "release"  # reading it takes no time, starting Java does
    found = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release.read_text(errors="replace"), re.MULTILINE) if release.is_file() else None
    if found is None:
        try:
            text = subprocess.run([java, "-version"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, check=False).stderr.decode()
        except OSError:
            return None
        found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def java_problem() -> "str | None":
    """Why this Java can't be used; None if it can."""
    found = java_version()
    if found is not None and found >= JAVA:
        return None
    home = os.environ.get("JAVA_HOME")
    if home:
        here = "JAVA_HOME (%s) has %s" % (home, "no bin/java that runs" if found is None else "Java %d" % found)
        return "Java %d or newer is needed, and %s: set JAVA_HOME to a newer one, or unset it to use the Java on the path." % (JAVA, here)
    here = "there is none on the path" if found is None else "this is Java %d" % found
    return "Java %d or newer is needed, %s: install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME." % (JAVA, here)


def jar_folder() -> "Path":
    """The folder of Delta's jars: LAKEJOIN_JARS, or a folder in the virtual environment."""
    return Path(os.environ.get("LAKEJOIN_JARS") or os.path.join(sys.prefix, "share", "lakejoin", "jars"))


def jars() -> "list[str]":
    """The downloaded jars. If there are none, Spark resolves them itself."""
    return sorted(str(jar) for jar in jar_folder().glob("*.jar"))


def spark_home() -> "Path":
    """The folder of Spark: SPARK_HOME, or that of PySpark, which is not loaded for this."""
    from importlib.util import find_spec

    return Path(os.environ.get("SPARK_HOME") or find_spec("pyspark").submodule_search_locations[0])


def class_path(resolved: "list[str]", spark: "Path") -> "list[str]":
    """The downloaded jars without those that Spark has itself, in any version: on the class path these would hide Spark's own."""
    own = {artifact(jar.name) for jar in spark.joinpath("jars").glob("*.jar")}
    found = [jar for jar in resolved if artifact(Path(jar).name.partition("_")[2]) not in own | {"commons-logging"}]
    return found if own else []  # Spark has jcl-over-slf4j in place of commons-logging


def artifact(jar: str) -> str:
    """A jar's name without its version."""
    return re.sub(r"-\d[\w.+-]*\.jar$", "", jar)


def jar_of(missing: str) -> str:
    """The jar of a class that was not found, or of the file system of a scheme, as words in brackets; empty if it is none of these."""
    found = next((jar for start, jar in _JARS if missing.startswith(start)), None)
    if not found:
        return ""
    hadoop, spark = _version_of("hadoop-client-api-") or "VERSION of Spark's Hadoop", _version_of("spark-core_2.13-") or "VERSION of Spark"
    return " (%s)" % found.replace("HADOOP", hadoop).replace("SPARK", ".".join(spark.split(".")[:2]))


def _version_of(jar: str) -> str:
    """The version of one of Spark's own jars; empty for a Spark without it, or none."""
    try:
        return next(spark_home().joinpath("jars").glob(jar + "*.jar")).stem.replace(jar, "")
    except (StopIteration, AttributeError):
        return ""


def class_archive() -> "Path":
    """The file of the class archive (lake/cli/class_archive.py)."""
    return jar_folder() / ("classes-%s.jsa" % _classes())


def own_classes() -> "Path":
    """The jar of Lakejoin's compiled Java classes (lake/spark/compiled_classes.py), in a folder of its own: it is none of Delta's."""
    return jar_folder() / "own" / ("lakejoin-%s.jar" % _classes())


def own_marker() -> str:
    """The name of a file in that jar, by which a JVM knows whether it has the classes of these sources."""
    return "lakejoin/classes-%s" % _classes()


@lru_cache(maxsize=1)
def _classes() -> str:
    """The versions and the digest of the sources of which the classes are."""
    from importlib.metadata import version

    digest = hashlib.sha256()
    for source in sorted(JAVA_SOURCES.glob("*.java")):
        digest.update(source.name.encode() + b"\n" + source.read_bytes())
    return "%s-%s-%s" % (version("pyspark"), version("delta-spark"), digest.hexdigest()[:12])


if __name__ == "__main__":
    problems = [p for p in (python_problem(), java_problem()) if p]
    if problems:
        sys.exit("\n".join(problems))
