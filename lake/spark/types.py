"""Types of columns as a table stores them: NULL allowed at every level, without the metadata of where they come from."""

from __future__ import annotations

from pyspark.sql import types as T


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
