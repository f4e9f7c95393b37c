"""Compiles Lakejoin's own Java classes into a jar at set-up, by Janino, the Java compiler in Spark. Without the jar each session compiles
what it uses (gateway.py), which takes half a second of its start.

The jar is on the driver's class path beside Delta's, and has a digest of the sources in its name and in it: a session uses the classes of
no other sources.
"""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from lake.spark.jvm.class_path import TARGET
from lake.spark.preflight import JAVA_SOURCES, own_marker
from lake.spark.watched_process import make_once

_STALLED_AFTER = 120


def make(jar: Path, on_progress: Callable[[int], None] = lambda size: None) -> str:
    """Make the jar if it does not exist; return what went wrong in one line, empty if nothing. Jars of other sources are removed."""
    return make_once(jar, "lake.spark.compiled_classes", "lakejoin-*.jar", on_progress, _STALLED_AFTER)


def _write(jar: Path) -> None:
    """Compile all sources in a JVM with the class path of a session, and put the classes and the marker into a jar."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    from lake.spark.driver_options import CLASS_PATH, driver_options
    from lake.spark.preflight import class_path, jars, spark_home

    # Without an earlier jar of these classes: the compiler takes what is on the class path for another package, and refuses its fields.
    options = {**driver_options({}, jars()), CLASS_PATH: os.pathsep.join(class_path(jars(), spark_home()))}
    gateway = launch_gateway(SparkConf().setAll(list(options.items())))  # type: ignore[no-untyped-call]
    jvm, sources = gateway.jvm, sorted(JAVA_SOURCES.glob("*.java"))
    files = gateway.new_array(jvm.java.io.File, len(sources))
    for place, source in enumerate(sources):
        files[place] = jvm.java.io.File(str(source))
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader()))
    compiler.setTargetVersion(TARGET)
    with tempfile.TemporaryDirectory() as folder:
        compiler.setDestinationDirectory(jvm.java.io.File(folder), False)
        compiler.compile(files)
        with zipfile.ZipFile(jar, "w") as written:
            for file in sorted(Path(folder).rglob("*.class")):
                written.write(file, str(file.relative_to(folder)))
            written.writestr(own_marker(), "")
    gateway.shutdown()


if __name__ == "__main__":
    try:
        _write(Path(sys.argv[1]))
    except Exception as error:  # whoever has started this process shows the last line
        from lake.spark.failures import root_cause

        sys.exit(root_cause(error))
