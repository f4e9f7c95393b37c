"""Types of columns as a table stores them: NULL allowed at every level, without the metadata of where they come from."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pyspark
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from lake.spark.versions import minor

_IN_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
"""Before Spark 4.2 that is the default, and the argument is not known."""

INHERITED_METADATA = minor(pyspark.__version__) == "4.0"
"""Whether PySpark takes an alias with empty metadata for one that keeps its column's. A cast has none."""


def arrow_schema(schema: T.StructType) -> Any:
    """The schema as pyarrow's, its timestamps in UTC."""
    return to_arrow_schema(schema, **_IN_UTC)


def nullable(data_type: T.DataType) -> T.DataType:
    """The type with fields, elements and values that may be NULL at every level, as Spark's own writers store it.

    Metadata of nested fields (Delta's column mapping ids, changes of types) is left out: it belongs to the table that the rows come from.

    >>> nullable(T.StructType([T.StructField("n", T.LongType(), False, {"delta.columnMapping.id": 7})])).jsonValue()["fields"]
    [{'name': 'n', 'type': 'long', 'nullable': True, 'metadata': {}}]
    """
    match data_type:
        case T.StructType():
            return T.StructType([T.StructField(f.name, nullable(f.dataType), True) for f in data_type.fields])
        case T.ArrayType():
            return T.ArrayType(nullable(data_type.elementType), True)
        case T.MapType():
            return T.MapType(nullable(data_type.keyType), nullable(data_type.valueType), True)
        case _:
            return data_type


def allows_null(data_type: T.DataType) -> bool:
    """Whether all nested fields, elements and values of the type may be NULL.

    >>> allows_null(T.ArrayType(T.LongType(), False)), allows_null(T.LongType())
    (False, True)
    """
    match data_type:
        case T.StructType():
            return all(f.nullable and allows_null(f.dataType) for f in data_type.fields)
        case T.ArrayType():
            return data_type.containsNull and allows_null(data_type.elementType)
        case T.MapType():
            return data_type.valueContainsNull and allows_null(data_type.keyType) and allows_null(data_type.valueType)
        case _:
            return True


def is_nested(data_type: T.DataType) -> bool:
    """Whether values of the type have fields, elements or entries."""
    return isinstance(data_type, T.StructType | T.ArrayType | T.MapType)


def comparable(data_type: T.DataType) -> bool:
    """Whether Spark can group by values of the type.

    >>> comparable(T.DoubleType()), comparable(T.ArrayType(T.VariantType()))
    (True, False)
    """
    match data_type:
        case T.ArrayType():
            return comparable(data_type.elementType)
        case T.StructType():
            return all(comparable(f.dataType) for f in data_type.fields)
        case _:
            return not isinstance(data_type, T.MapType | T.VariantType | T.CalendarIntervalType)


def exactly_comparable(data_type: T.DataType) -> bool:
    """Whether two values of the type that are equal to Spark are the same bit by bit: not -0.0 and 0.0, nor strings of a collation.

    >>> exactly_comparable(T.StringType()), exactly_comparable(T.StructType([T.StructField("x", T.DoubleType())]))
    (True, False)
    """
    match data_type:
        case T.ArrayType():
            return exactly_comparable(data_type.elementType)
        case T.StructType():
            return all(exactly_comparable(f.dataType) for f in data_type.fields)
        case T.StringType():
            return data_type.collation == "UTF8_BINARY"
        case _:
            return comparable(data_type) and not isinstance(data_type, T.FloatType | T.DoubleType)
