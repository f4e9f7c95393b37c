"""How far a window looks: where all frames of a window are RANGEs between two values, a row says nothing of rows further away than that."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import types as T

from lake.catalyst import Catalyst
from lake.catalyst.nodes import Expression, Node
from lake.spark.jvm.gateway import Java, kind_of

_DAY = 86_400_000_000
"""In microseconds."""
_MONTH = 31
"""Days of the longest one."""
_SHIFT = 2
"""Days by which a frame of time is taken to be longer than it says: clocks change, and the days of months differ."""
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)


@dataclass(frozen=True)
class WindowRange:
    """A row whose `order` is x is in the frames of rows with an order from x - `before` to x + `after`, at the most, in the units of
    `Ranges`: whole numbers, days of dates, microseconds of timestamps. `order` is a column of the window's child. Rows with NULL there are
    in the frames of each other only.
    """

    order: Expression
    before: int
    after: int


def window_range(node: Node, catalyst: Catalyst) -> WindowRange | None:
    """The range of a Window, None where one of its frames has no end on one side, or counts rows, or its order has no such units."""
    orders = catalyst.list(node.plan.orderSpec())
    order = catalyst.expression(orders[0].child()) if orders else None
    if order is None or not order.plain or not isinstance(catalyst.type_of(order), (*_WHOLE, T.DateType, T.TimestampType)):
        return None
    data_type, behind, ahead = catalyst.type_of(order), 0, 0
    for alias in catalyst.list(node.plan.windowExpressions()):
        ends = _ends(alias.child(), data_type)
        if ends is None:
            return None
        behind, ahead = max(behind, -ends[0]), max(ahead, ends[1])
    # what a row has behind it sees the row ahead
    return WindowRange(order, *((ahead, behind) if str(orders[0].direction().sql()) == "ASC" else (behind, ahead)))


def _ends(window: Java, order: T.DataType) -> tuple[int, int] | None:
    """Where the frame of a window function begins and ends, as distances from a row's own order; at least as far as it does."""
    if kind_of(window) != "WindowExpression":
        return None
    frame = window.windowSpec().frameSpecification()
    if kind_of(frame) != "SpecifiedWindowFrame" or str(frame.frameType().toString()) != "RangeFrame":
        return None
    lower, upper = _distance(frame.lower(), order), _distance(frame.upper(), order)
    return None if lower is None or upper is None else (lower, upper)


def _distance(end: Java, order: T.DataType) -> int | None:
    """An end of a frame, in the units of the order, further away where these are not exact; None for no end, or one that is not known."""
    kind = kind_of(end)
    if kind == "CurrentRow$":
        return 0
    if kind.startswith("Unbounded") or not end.foldable():
        return None
    value, data_type = end.eval(None), str(end.dataType().typeName())
    if not isinstance(value, int):  # NULL, a decimal, an interval of both months and days
        return None
    if isinstance(order, _WHOLE):
        return value
    of_months = "month" in data_type or "year" in data_type
    micros = value * _MONTH * _DAY if of_months else value if data_type.startswith("interval") else value * _DAY
    sign, days = (-1 if micros < 0 else 1), -(-abs(micros) // _DAY)
    if isinstance(order, T.DateType):
        return sign * (days + (_SHIFT if of_months else 0))
    return sign * (abs(micros) + _SHIFT * _DAY)
