"""Converts rows for display and JSON: times in the session's time zone, structs with field names, NaN and Infinity as text."""

from __future__ import annotations

import math
from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from pyspark.sql import DataFrame
from pyspark.sql import types as T


def shown_rows(frame: DataFrame, limit: int) -> list[dict[str, Any]]:
    """The first rows, as values that can be written as JSON (dates, times and decimals become text when they are written)."""
    zone = _zone(str(frame.sparkSession.conf.get("spark.sql.session.timeZone")))
    return [_shown(row, frame.schema, zone) for row in frame.limit(limit).collect()]


def _shown(value: Any, data_type: T.DataType, zone: tzinfo) -> Any:
    match data_type:
        case _ if value is None:
            return None
        case T.StructType():
            return {field.name: _shown(item, field.dataType, zone) for field, item in zip(data_type.fields, value, strict=True)}
        case T.ArrayType():
            return [_shown(item, data_type.elementType, zone) for item in value]
        case T.MapType():  # of which JSON has only those with texts as keys
            pairs = [(_shown(k, data_type.keyType, zone), _shown(v, data_type.valueType, zone)) for k, v in value.items()]
            return {str(k): v for k, v in pairs}
        case T.TimestampType():
            return _in_zone(value, zone)
        case T.FloatType() | T.DoubleType():
            return value if math.isfinite(value) else str(value).replace("inf", "Infinity").replace("nan", "NaN")
        case _:
            return value


def _in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """A time as PySpark gives it, in this machine's own time zone, as the session's clock shows it."""
    return moment.astimezone(zone).replace(tzinfo=None)


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError):  # an offset
        found = datetime.strptime(name.removeprefix("UTC").removeprefix("GMT"), "%z").tzinfo
        assert found is not None
        return found
