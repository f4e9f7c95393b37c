"""Access to the JVM's classes and to Scala's collections, for the rooms spark, delta and catalyst."""

from __future__ import annotations

import json
import pickle
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaObject, JavaPackage
from pyspark.sql import SparkSession

from lake.errors import ConfigError
from lake.spark.jvm.class_path import TARGET
from lake.spark.preflight import own_marker

Java = Any  # an object that lives in the JVM
_MOST_AT_ONCE = 10
"""The number of items that Java's List.of takes in one call."""


class Jvm:
    """The classes of a JVM by their names. Each is looked up once: py4j searches all jars for each part of a name."""

    def __init__(self, names: Any, gateway: Any = None) -> None:
        self._names = names
        self._gateway = gateway

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._names, name)
        setattr(self, name, Jvm(found) if isinstance(found, JavaPackage) else found)
        return self.__dict__[name]

    @cached_property
    def conversions(self) -> Scala:
        """The conversions between Python's and Scala's collections."""
        return Scala(self)

    @cached_property
    def own_trees(self) -> Java:
        """Tells of plans and expressions, much in one call."""
        return self.own("Trees").of(self._gateway.java_gateway_server)

    def held(self, name: str, kind: str) -> Java:
        """An object by its name in the gateway, where the JVM keeps it for Python, and the simple name of its class."""
        found = JavaObject(name, self._gateway._gateway_client)
        found._kind = kind
        return found

    @cached_property
    def own_plans(self) -> Java:
        """Builds plans, and reads local rows."""
        return self.own("Plans")

    @cached_property
    def own_steps(self) -> Java:
        """Operators on frames, several in one call."""
        return self.own("Steps")

    @cached_property
    def own_rows(self) -> Java:
        """Adds up and pairs rows on the driver."""
        return self.own("LocalRows")

    @cached_property
    def own_margin(self) -> Java:
        """Rows on the driver as a text."""
        return self.own("Margin")

    @cached_property
    def own_active(self) -> Java:
        """The thread's active session."""
        return self.own("ActiveSession")

    @cached_property
    def own_versions(self) -> Java:
        """What Delta knows of a table and its versions."""
        return self.own("Versions")

    @cached_property
    def own_files(self) -> Java:
        """Reads rows of chosen data files."""
        return self.own("Files")

    @cached_property
    def own_folders(self) -> Java:
        """What is in a table's folder, and its removal."""
        return self.own("Folders")

    @cached_property
    def own_new_file(self) -> Java:
        """Creates files on S3 only where there are none."""
        return self.own("NewFile")

    @cached_property
    def own_commits(self) -> Java:
        """Reads commits of a log."""
        return self.own("Commits")

    @cached_property
    def own_changes(self) -> Java:
        """Rows that came and went."""
        return self.own("Changes")

    @cached_property
    def own_normal(self) -> Java:
        """Normalises analysed plans for fingerprints."""
        return self.own("NormalForm")

    @cached_property
    def own_functions(self) -> Java:
        """Functions of users."""
        return self.own("Functions")

    @cached_property
    def own_schema_names(self) -> Java:
        """Relations with a schema in their names."""
        return self.own("SchemaNames")

    @cached_property
    def own_vectors(self) -> Java:
        """Writes deletion vectors."""
        return self.own("DeletionVectors")

    @cached_property
    def own_small_file(self) -> Java:
        """Writes few rows as one data file."""
        return self.own("SmallFile")

    def own(self, name: str) -> Java:
        """An object of a class in the folder lakejoin/ beside this file: from the jar that set-up has made (compiled_classes.py), or
        else compiled now by Janino, the Java compiler in Spark."""
        return self._loader.loadClass(f"lakejoin.{name}").newInstance()

    @cached_property
    def _loader(self) -> Java:
        above = self.java.lang.Thread.currentThread().getContextClassLoader()  # it has the jars of `--jars`, such as Delta's
        if above.getResource(own_marker()) is not None:
            return above
        if (other := above.getResource("lakejoin/Trees.class")) is not None:  # it would be found before what is compiled here
            raise ConfigError(
                f"The Java classes of another version of Lakejoin are on Spark's class path ({other.toString()}). Take them away, or run "
                '"lakejoin setup", and start Spark again.'
            )
        folders = self.java.lang.reflect.Array.newInstance(self.java.lang.Class.forName("java.io.File"), 1)
        self.java.lang.reflect.Array.set(folders, 0, self.java.io.File(str(Path(__file__).parent)))
        loader = self.org.codehaus.janino.JavaSourceClassLoader(above, folders, "UTF-8")
        loader.setTargetVersion(TARGET)
        return loader


_jvms: weakref.WeakKeyDictionary[Any, Jvm] = weakref.WeakKeyDictionary()
_opening = threading.Lock()
_OF_PYSPARK = ("PythonUtils", "PythonSQLUtils", "functions", "org.apache.spark.sql.functions", "org.apache.spark.sql.classic.SparkSession")
"""Names that PySpark itself resolves for each column and each select."""


def jvm_of(spark: SparkSession) -> Any:
    """The JVM of a session. Afterwards PySpark also resolves its own classes without a search through all jars."""
    names: Any = spark._jvm
    found = _jvms.get(names)
    if found is not None:
        return found
    with _opening:  # two loaders would make two classes of each of ours
        if names not in _jvms:
            for name in _OF_PYSPARK:
                setattr(names, name, getattr(names, name))
            gateway: Any = spark.sparkContext._gateway
            opened = Jvm(names, gateway)
            opened.own("Answers").hasten(gateway.java_gateway_server)
            _jvms[names] = opened
        return _jvms[names]


@contextmanager
def active(jvm: Any, session: Java) -> Iterator[None]:
    """Within it, a session is the thread's active one, whose settings Spark and Delta use."""
    before = jvm.own_active.swap(session)
    try:
        yield
    finally:
        jvm.own_active.swap(before)


def kind_of(java: Java) -> str:
    """The simple name of an object's class, asked for once."""
    if "_kind" not in java.__dict__:
        java._kind = str(java.getClass().getSimpleName())
    return str(java._kind)


class Scala:
    """Conversions between Python's collections and Scala's, for short ones."""

    def __init__(self, jvm: Any) -> None:
        self._held = jvm.held
        self._trees = jvm.own_trees
        self._as_java = jvm.scala.jdk.javaapi.CollectionConverters.asJava
        self._array_list, self._list_of = jvm.java.util.ArrayList, jvm.java.util.List.of
        self._to_seq = jvm.org.apache.spark.api.python.PythonUtils.toSeq
        self._to_json = jvm.org.apache.spark.sql.delta.util.JsonUtils.toJson
        self._for_name = jvm.java.lang.Class.forName
        self._classes: dict[str, Java] = {}
        self.some, self.none = jvm.scala.Option.apply, jvm.scala.Option.empty()

    def list(self, sequence: Java) -> list[Any]:
        """A Scala sequence as a Python list."""
        found = self._trees.items(sequence)
        if found is not None:
            return [self._held(*item) for item in pickle.loads(found)]
        items = self.java_list(sequence)
        return [items.get(i) for i in range(items.size())]  # not its iterator, whose end is an exception across the gateway

    def java_list(self, sequence: Java) -> Java:
        """A Scala sequence as a Java list. Its items stay in the JVM until they are read."""
        return self._as_java(sequence)

    def seq(self, items: Iterable[Any]) -> Java:
        """A Python list as a Scala immutable sequence."""
        return self._to_seq(self.listed(list(items)))

    def listed(self, items: Sequence[Any]) -> Java:
        """A Python list as a Java list."""
        array = self._list_of(*items[:_MOST_AT_ONCE])
        if len(items) > _MOST_AT_ONCE:
            array = self._array_list(array)
            for start in range(_MOST_AT_ONCE, len(items), _MOST_AT_ONCE):
                array.addAll(self._list_of(*items[start : start + _MOST_AT_ONCE]))
        return array

    def immutable(self, java_list: Java) -> Java:
        """A Java list as a Scala immutable sequence."""
        return self._to_seq(java_list)

    def dict(self, java_map: Java) -> dict[str, Any]:
        """A Scala or Java map of texts, numbers or lists of them as a dict, in one call."""
        found: dict[str, Any] = json.loads(self._to_json(java_map, None))
        return found

    def is_a(self, java: Java, class_name: str) -> bool:
        """Whether the object is an instance of the class."""
        if class_name not in self._classes:
            self._classes[class_name] = self._for_name(class_name)
        return bool(self._classes[class_name].isInstance(java))
