"""Writes values of YAML and CSV as SQL expressions of a column's type. Spark itself converts them, so every type is read as SQL reads it.

>>> expression({"a": 1.5}, struct type with a DECIMAL(10, 2))
named_struct('a', CAST('1.5' AS decimal(10,2)))
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from pyspark.sql import types as T

from lake.core.sql import quoted

SETTINGS = {
    "spark.sql.ansi.enabled": "true",  # a value that does not fit is an error, not NULL
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.variable.substitute": "false",  # "${x}" is a text
}
"""Settings of a session that evaluates these expressions."""


class UnfitError(ValueError):
    """A value that a column can't hold; the text continues "value ..."."""


def expression(value: Any, of: T.DataType) -> str:
    """A value as SQL. Raises UnfitError; a text that is no value of the type is found when Spark evaluates it."""
    if value is None:
        return f"CAST(NULL AS {sql_type(of)})"
    match of:
        case T.StructType() | T.MapType() | T.ArrayType():
            return _nested(json_of(value, of) if isinstance(value, str) else value, of)
        case T.VariantType():
            return f"parse_json({text(json.dumps(value, default=str))})"
        case T.StringType():
            return _string(value, of)
        case T.BinaryType() if isinstance(value, bytes):
            return f"X'{value.hex()}'"
        case _:
            return f"CAST({text(_scalar(value, of))} AS {sql_type(of)})"


def text(value: str) -> str:
    """A text as SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def sql_type(of: T.DataType) -> str:
    """A type as SQL."""
    match of:
        case T.StructType():
            return f"struct<{', '.join(f'{quoted(field.name)}: {sql_type(field.dataType)}' for field in of.fields)}>"
        case T.ArrayType():
            return f"array<{sql_type(of.elementType)}>"
        case T.MapType():
            return f"map<{sql_type(of.keyType)}, {sql_type(of.valueType)}>"
        case _:
            return str(of.simpleString())


def type_of(values: list[Any]) -> T.DataType | None:
    """The type that holds all values, as YAML has them; None if they are all empty. Raises UnfitError where there is none."""
    kinds = [_kind(value) for value in values if value is not None]
    found = [kind for kind in kinds if kind is not None]
    if any(kind == T.DoubleType() for kind in found):
        found = [T.DoubleType() if kind == T.LongType() else kind for kind in found]
    if any(kind != found[0] for kind in found):
        shown = " and ".join(dict.fromkeys(sql_type(kind).upper() for kind in found))
        raise UnfitError(f"values of different types: {shown}")
    return found[0] if found else None


def _kind(value: Any) -> T.DataType | None:
    match value:
        case bool():
            return T.BooleanType()
        case int():
            return T.LongType()
        case float():
            return T.DoubleType()
        case datetime():
            return T.TimestampType()
        case date():
            return T.DateType()
        case bytes():
            return T.BinaryType()
        case list():
            inner = type_of(value)
            return None if inner is None else T.ArrayType(inner)
        case Mapping():
            fields = {str(name): type_of([inner]) for name, inner in value.items()}
            return T.StructType([T.StructField(name, kind) for name, kind in fields.items() if kind is not None])
        case _:
            return T.StringType()


def json_of(value: str, of: T.DataType) -> Any:
    """A text of JSON as a value of a struct, an array or a map. Raises UnfitError."""
    try:
        return json.loads(value)
    except ValueError as error:
        raise UnfitError(f"{value!r} is no JSON of {sql_type(of).upper()}") from error


def _nested(value: Any, of: T.StructType | T.MapType | T.ArrayType) -> str:
    if isinstance(of, T.ArrayType) and isinstance(value, list | tuple):
        return f"CAST(array({', '.join(expression(each, of.elementType) for each in value)}) AS {sql_type(of)})"
    if isinstance(of, T.ArrayType) or not isinstance(value, Mapping):
        raise UnfitError(f"{value!r} is no {sql_type(of).upper()}: write {'a list' if isinstance(of, T.ArrayType) else 'values by name'}")
    if isinstance(of, T.MapType):
        pairs = [expression(each, kind) for item in value.items() for each, kind in zip(item, (of.keyType, of.valueType), strict=True)]
        return f"CAST(map({', '.join(pairs)}) AS {sql_type(of)})"
    unknown = [str(name) for name in value if str(name) not in of.names]
    if unknown:
        raise UnfitError(f"{value!r} has a field {unknown[0]!r}, and the struct has {', '.join(of.names)}")
    given = {str(name): inner for name, inner in value.items()}
    return f"named_struct({', '.join(f'{text(f.name)}, {expression(given.get(f.name), f.dataType)}' for f in of.fields)})"


def _string(value: Any, of: T.StringType) -> str:
    if not isinstance(value, str):
        kind = "a boolean" if isinstance(value, bool) else "a date" if isinstance(value, date) else f"a {type(value).__name__}"
        raise UnfitError(f"{value} is read by YAML as {kind}, and the column holds texts: write it in quotes")
    return text(value) if of == T.StringType() else f"CAST({text(value)} AS {sql_type(of)})"


def _scalar(value: Any, of: T.DataType) -> str:
    if isinstance(value, list | tuple | Mapping):
        raise UnfitError(f"{value!r} is no single value of {sql_type(of).upper()}")
    written = str(value).lower() if isinstance(value, bool) else value.decode() if isinstance(value, bytes) else str(value).strip()
    if isinstance(of, T.DateType) and ":" in written:
        raise UnfitError(f"{written!r} has a time, and the column holds dates")
    if isinstance(of, T.TimestampNTZType) and isinstance(value, datetime) and value.tzinfo is not None:
        raise UnfitError(f"{written!r} has a time zone, and the column holds times without one")
    if isinstance(of, T.DecimalType) and _loses_digits(written, of):
        raise UnfitError(f"{written} has more decimal places than {sql_type(of).upper()}")
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(written, written)


def _loses_digits(written: str, of: T.DecimalType) -> bool:
    try:
        exponent = Decimal(written).normalize().as_tuple().exponent
    except InvalidOperation:  # Spark says that it is no number
        return False
    return isinstance(exponent, int) and -exponent > of.scale
