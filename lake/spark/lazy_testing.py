"""Keeps PySpark from loading pandas in each process: a third of a second, and half of what a refresh loads besides PySpark.

PySpark asks of each literal, and of each value for the JVM, whether it is one of NumPy's. Whether there is a NumPy it asks its tools for
tests (`pyspark.testing.utils.have_numpy`), which load pandas. In their place this module puts one that knows about NumPy, and that loads
them when it is asked for anything else.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

import pyspark

_PACKAGE, _MODULE = "pyspark.testing", "pyspark.testing.utils"


class _UntilAsked(ModuleType):
    """Stands for a module until something is asked for that it does not have."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and (self.__name__, name) != (_PACKAGE, "__path__"):
            raise AttributeError(name)
        for each in (_PACKAGE, _MODULE):
            if isinstance(sys.modules.get(each), _UntilAsked):
                del sys.modules[each]
        return getattr(importlib.import_module(self.__name__), name)


def install() -> None:
    """Do so in this process, if the tools are not loaded yet, and PySpark has them where they are expected."""
    if _PACKAGE in sys.modules or importlib.util.find_spec(_PACKAGE) is None:
        return
    package, module = _UntilAsked(_PACKAGE), _UntilAsked(_MODULE)
    vars(module)["have_numpy"] = importlib.util.find_spec("numpy") is not None
    sys.modules[_PACKAGE], sys.modules[_MODULE] = package, module
    vars(pyspark)["testing"] = package
