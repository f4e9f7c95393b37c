"""A JVM's classes and Scala's collections from Python, for the rooms that reach into the JVM (catalyst, deltalog.py, deltacommit.py)."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaPackage
from pyspark.sql import SparkSession

Java = Any  # an object that lives in the JVM
_MOST_AT_ONCE = 10
"""Java's List.of takes so many items in one call."""


class Jvm:
    """The classes of a JVM by their names, each looked for once: to py4j every part of a name is a trip and a search through all jars."""

    def __init__(self, names: Any) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._names, name)
        setattr(self, name, Jvm(found) if isinstance(found, JavaPackage) else found)
        return self.__dict__[name]

    @cached_property
    def conversions(self) -> Scala:
        """Those of this JVM: finding the methods costs trips too."""
        return Scala(self)

    @cached_property
    def own_plans(self) -> Java:
        """Plans and local rows."""
        return self.own("Plans")

    @cached_property
    def own_files(self) -> Java:
        """Rows of data files."""
        return self.own("Files")

    @cached_property
    def own_commits(self) -> Java:
        """A log's commits."""
        return self.own("Commits")

    @cached_property
    def own_changes(self) -> Java:
        """Rows that came and went."""
        return self.own("Changes")

    @cached_property
    def own_normal(self) -> Java:
        """Analysed plans without what can't change their rows."""
        return self.own("Normal")

    @cached_property
    def own_vectors(self) -> Java:
        """Deletion vectors."""
        return self.own("Vectors")

    def own(self, name: str) -> Java:
        """An object of a class in lakejoin/ beside this file, compiled by the Java compiler that Spark brings (Janino)."""
        return self._loader.loadClass(f"lakejoin.{name}").newInstance()

    @cached_property
    def _loader(self) -> Java:
        folders = self.java.lang.reflect.Array.newInstance(self.java.lang.Class.forName("java.io.File"), 1)
        self.java.lang.reflect.Array.set(folders, 0, self.java.io.File(str(Path(__file__).parent)))
        above = self.java.lang.Thread.currentThread().getContextClassLoader()  # it knows the jars of `--jars`, Delta's among them
        loader = self.org.codehaus.janino.JavaSourceClassLoader(above, folders, "UTF-8")
        loader.setTargetVersion(_JAVA)
        return loader


_JAVA = 8
"""The version of the language that Janino knows."""
_jvms: weakref.WeakKeyDictionary[Any, Jvm] = weakref.WeakKeyDictionary()
_OF_PYSPARK = ("PythonUtils", "PythonSQLUtils", "functions", "org.apache.spark.sql.functions", "org.apache.spark.sql.classic.SparkSession")
"""What PySpark itself asks for by these names, at each column and each select."""


def jvm_of(spark: SparkSession) -> Any:
    """The JVM of a session. PySpark, too, finds its own classes at once from then on: otherwise py4j looks through all jars each time."""
    names: Any = spark._jvm
    if names not in _jvms:
        for name in _OF_PYSPARK:
            setattr(names, name, getattr(names, name))
        _jvms[names] = Jvm(names)
        _jvms[names].own("Answers").hasten(spark.sparkContext._gateway.java_gateway_server)  # type: ignore[union-attr]
    return _jvms[names]


@contextmanager
def active(jvm: Any, session: Java) -> Iterator[None]:
    """Make a session the thread's active one for a while: what Spark and Delta make in it takes that session's settings."""
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(session)
    try:
        yield
    finally:
        sessions.setActiveSession(before.get()) if before.isDefined() else sessions.clearActiveSession()


class Scala:
    """Conversions between Python's collections and Scala's. Each element is a trip over the gateway: for short ones only."""

    def __init__(self, jvm: Any) -> None:
        self._converters = jvm.scala.jdk.javaapi.CollectionConverters
        self._array_list, self._list_of = jvm.java.util.ArrayList, jvm.java.util.List.of
        self._to_seq = jvm.org.apache.spark.api.python.PythonUtils.toSeq
        self._to_json = jvm.org.apache.spark.sql.delta.util.JsonUtils.toJson
        self._for_name = jvm.java.lang.Class.forName
        self._classes: dict[str, Java] = {}
        self.some, self.none = jvm.scala.Option.apply, jvm.scala.Option.empty()

    def list(self, sequence: Java) -> list[Any]:
        """A Scala sequence as a Python list."""
        items = self.java_list(sequence)
        return [items.get(i) for i in range(items.size())]  # not its iterator, whose end is an exception across the gateway

    def java_list(self, sequence: Java) -> Java:
        """A Scala sequence as a Java list, whose items stay where they are until they are asked for."""
        return self._converters.asJava(sequence)

    def seq(self, items: Iterable[Any]) -> Java:
        """A Python list as a Scala immutable sequence."""
        some = list(items)
        array = self._list_of(*some[:_MOST_AT_ONCE])
        if len(some) > _MOST_AT_ONCE:
            array = self._array_list(array)
            for start in range(_MOST_AT_ONCE, len(some), _MOST_AT_ONCE):
                array.addAll(self._list_of(*some[start : start + _MOST_AT_ONCE]))
        return self._to_seq(array)

    def immutable(self, java_list: Java) -> Java:
        """A Java list as a Scala immutable sequence."""
        return self._to_seq(java_list)

    def dict(self, scala_map: Java) -> dict[str, str]:
        """A Scala map of strings as a dict."""
        found: dict[str, str] = json.loads(self._to_json(scala_map, None))
        return found

    def is_a(self, java: Java, class_name: str) -> bool:
        """Whether the object is an instance of the class."""
        if class_name not in self._classes:
            self._classes[class_name] = self._for_name(class_name)
        return bool(self._classes[class_name].isInstance(java))
