"""Scala's collections from Python, for the rooms that reach into the JVM (catalyst.py, deltalog.py, deltacommit.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

Java = Any  # an object that lives in the JVM


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
        # Finding a class costs a trip for each part of its name: once is enough.
        self._converters = jvm.scala.jdk.javaapi.CollectionConverters
        self._array_list = jvm.java.util.ArrayList
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
        array = self._array_list()
        for item in items:
            array.add(item)
        return self._converters.asScala(array).toSeq()

    def dict(self, scala_map: Java) -> dict[str, str]:
        """A Scala map of strings as a dict."""
        return {str(k): str(v) for k, v in self._converters.asJava(scala_map).items()}

    def is_a(self, java: Java, class_name: str) -> bool:
        """Whether the object is an instance of the class."""
        if class_name not in self._classes:
            self._classes[class_name] = self._for_name(class_name)
        return bool(self._classes[class_name].isInstance(java))
