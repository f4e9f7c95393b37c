"""Finds the functions in a query that are not Spark's own: a view's rows depend on their code, which the query's text only names."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from lake.catalyst.definitions import Catalyst
from lake.spark.jvm.gateway import Java, jvm_of

_PYTHON = ("PythonUDF", "PythonUDAF", "PythonUDTF")
_JVM = {"ScalaUDF": "function", "ScalaAggregator": "agg", "ScalaUDAF": "udaf"}
_FOREIGN = ("ApplyFunctionExpression", "V2Aggregator", "HiveSimpleUDF", "HiveGenericUDF", "HiveGenericUDTF", "HiveUDAFFunction")


@dataclass(frozen=True)
class UserFunction:
    """A function of a user's in a query. `shape`: its kind and its type; `pickled`: the function, where it is one of Python;
    `digest`: of its code, where it runs on the JVM and its code can be read."""

    name: str
    shape: str
    pickled: bytes | None = None
    digest: str | None = None


def user_functions(plan: Java, catalyst: Catalyst) -> list[UserFunction]:
    """The functions of users in an analysed plan, also in its subqueries, in the plan's order; each as often as it is called."""
    found = []
    for kind, java in catalyst.census(plan).of((*_PYTHON, *_JVM, *_FOREIGN)):
        if kind in _PYTHON:
            shape = f"{kind} {java.evalType()} {_type(kind, java)}"
            found.append(UserFunction(str(java.name()), shape, pickled=bytes(_of(catalyst.spark).command(java.func()))))
        elif kind in _JVM:
            digest = _of(catalyst.spark).digest(getattr(java, _JVM[kind])())
            found.append(UserFunction(_name(java), f"{kind} {java.dataType().json()}", digest=digest))
        else:
            found.append(UserFunction(_name(java), kind))
    return found


def registered_functions(spark: SparkSession) -> str:
    """A text that changes when a function is registered in the session, replaced or dropped."""
    return str(_of(spark).registered(spark._jsparkSession))


def _type(kind: str, java: Java) -> str:
    return str((java.elementSchema() if kind == "PythonUDTF" else java.dataType()).json())


def _name(java: Java) -> str:
    return str(java.name() if hasattr(java, "name") else java.prettyName())


def _of(spark: SparkSession) -> Java:
    return jvm_of(spark).own_functions
