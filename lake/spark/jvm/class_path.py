"""Puts a Java class that others find by its name on the class path of a running JVM: Delta and Hadoop load theirs by settings.

`Jvm.own` compiles into a class loader of its own, in which nobody else looks.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

_EXTENDED = "org.apache.spark.util.MutableURLClassLoader"
"""The class loader that spark-submit, and PySpark with it, makes for an application."""
TARGET = 8
"""The version of Java that Janino compiles."""


def loader(jvm: Any) -> Any:
    """The class loader of the application, to which classes can be added; None if something else has started the JVM."""
    found = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return found if found is not None and found.getClass().getName() == _EXTENDED else None


def put(jvm: Any, into: Any, source: Path) -> str:
    """Compile a class by Janino, load it with a class loader, and return its full name.

    The file is in a folder with the name of its package.
    """
    compiler, name = jvm.org.codehaus.janino.SimpleCompiler(), f"{source.parent.name}.{source.stem}"
    compiler.setParentClassLoader(into)
    compiler.setTargetVersion(TARGET)
    compiler.cook(source.read_text())
    compiled = compiler.getBytecodes()
    with tempfile.TemporaryDirectory() as folder:
        for each in compiled:
            file = Path(folder, f"{each.replace('.', '/')}.class")
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(compiled[each])
        into.addURL(jvm.java.io.File(folder).toURI().toURL())
        for each in compiled:
            into.loadClass(each)  # after that its file is not needed
    return name
