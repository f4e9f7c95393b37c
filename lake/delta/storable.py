"""Which types a Delta table can store: those that Delta 4.4 was seen to write and read back as they were."""

from __future__ import annotations

from pyspark.sql import types as T

_PLAIN = (T.NumericType, T.BooleanType, T.BinaryType, T.DateType, T.TimestampType, T.TimestampNTZType, T.VariantType)
_TEXT = (T.CharType, T.VarcharType)


def storable(data_type: T.DataType) -> bool:
    """Whether a table can have a column of this type. No: intervals, TIME, VOID, GEOGRAPHY, collations, structs without fields."""
    match data_type:
        case T.ArrayType():
            return storable(data_type.elementType)
        case T.MapType():
            return storable(data_type.keyType) and storable(data_type.valueType)
        case T.StructType():
            return bool(data_type.fields) and all(storable(field.dataType) for field in data_type.fields)
        case T.UserDefinedType():
            return storable(data_type.sqlType())
        case T.StringType():
            return data_type.collation == "UTF8_BINARY"
        case _:
            return isinstance(data_type, (*_PLAIN, *_TEXT))
