"""Lets Delta write commits on S3 by conditional requests, so that two drivers at once can't lose one (decision 35)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from lake.spark.jvm import class_path
from lake.spark.jvm.gateway import jvm_of

_SETTING = "spark.delta.logStore.s3a.impl"
_OTHERS = ("delta.logStore.s3a.impl", "spark.delta.logStore.class", "delta.logStore.class")
_FILES = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_CONDITIONS = "org.apache.hadoop.fs.Options$CreateFileOptionKeys"
"""A class of Hadoop 3.4.2 and newer, whose S3A has conditional requests. Spark 4.0 has 3.4.1."""
_FOLDER = Path(class_path.__file__).parent / "lakejoin"


def install(session: SparkSession) -> None:
    """Make Lakejoin's log store that of s3a: in this context, if Hadoop's S3A is there, has conditional requests, and no log store is set.

    It is set after the start, so that executors, which do not have the class, read logs by Delta's own. Where the class can't be put on the
    class path, Delta's own stays, and publishing there is refused.
    """
    jvm, conf = jvm_of(session), session._jsc.sc().conf()
    into = class_path.loader(jvm)
    if into is None or any(map(conf.contains, (_SETTING, *_OTHERS))):
        return
    if session._jsc.hadoopConfiguration().get("fs.s3a.impl") != _FILES or not all(_has(into, name) for name in (_FILES, _CONDITIONS)):
        return
    try:
        conf.set(_SETTING, put(jvm, into))
    except Py4JError:
        return


def _has(loader: Any, java_class: str) -> bool:
    return loader.getResource(f"{java_class.replace('.', '/')}.class") is not None


def put(jvm: Any, into: Any) -> str:
    """Load Lakejoin's log store with a class loader, and return the name of its class."""
    class_path.put(jvm, into, _FOLDER / "NewFile.java")
    return class_path.put(jvm, into, _FOLDER / "S3Commits.java")
