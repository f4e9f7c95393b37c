"""Columns that Spark has no SQL function for: a method of the Java value that a column has, or of a Java class, called on each row."""

from __future__ import annotations

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql import types as T

from lake.spark.jvm.gateway import Java


def variant_bytes(value: Column) -> tuple[Column, Column]:
    """The two binaries that a VARIANT is: its value, and the dictionary of the names of its fields."""
    return _method(value, "getValue"), _method(value, "getMetadata")


def double_bits(value: Column) -> Column:
    """A DOUBLE's 64 bits as a BIGINT, by IEEE 754; one NaN."""
    return _static(value, "java.lang.Double", "doubleToLongBits", T.LongType())


def float_bits(value: Column) -> Column:
    """A FLOAT's 32 bits as an INT, by IEEE 754; one NaN."""
    return _static(value, "java.lang.Float", "floatToIntBits", T.IntegerType())


def _method(value: Column, name: str) -> Column:
    jvm, none = _jvm(), _no_items()
    made = jvm.org.apache.spark.sql.catalyst.expressions.objects.Invoke
    return _column(made(_expression(value), name, _type(T.BinaryType()), none, none, True, True, True))


def _static(value: Column, class_name: str, name: str, returns: T.DataType) -> Column:
    jvm = _jvm()
    made = jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
    items = jvm.java.util.List.of(_expression(value))
    arguments = jvm.org.apache.spark.api.python.PythonUtils.toSeq(items)
    of_class = jvm.java.lang.Class.forName(class_name)
    nothing = jvm.scala.Option.empty()
    return _column(made(of_class, _type(returns), name, arguments, _no_items(), True, True, True, nothing))


def _jvm() -> Java:
    context = SparkContext._active_spark_context
    assert context is not None, "a column was made, so there is a Spark context"
    return context._jvm


def _no_items() -> Java:
    jvm = _jvm()
    return jvm.org.apache.spark.api.python.PythonUtils.toSeq(jvm.java.util.ArrayList())


def _type(data_type: T.DataType) -> Java:
    return _jvm().org.apache.spark.sql.types.DataType.fromDDL(data_type.simpleString())


def _expression(value: Column) -> Java:
    return _jvm().org.apache.spark.sql.classic.ExpressionUtils.expression(value._jc)


def _column(expression: Java) -> Column:
    return Column(_jvm().org.apache.spark.sql.classic.ExpressionUtils.column(expression))
