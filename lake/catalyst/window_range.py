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
_SHIFT = 4
"""Days by which a frame of months, or of times whose clocks may change, is taken to be longer than it says, on both sides: a month or a day
later, an earlier row may be the later one, and Spark gives a row what the frame of one before it has reached already."""
_LONGEST = 1_000_000
"""Days of the longest frame of dates and times: the end of a longer one may be no date any more, for which Spark takes another one."""
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
    """The range of a Window, None where one of its frames has no end on one side, or counts rows, or its order has no such units.

    None as well for whole numbers outside of ANSI mode, where Spark takes another number for an end that is none of the type any more.
    """
    orders = catalyst.list(node.plan.orderSpec())
    order = catalyst.expression(orders[0].child()) if orders else None
    if order is None or not order.plain:
        return None
    data_type = catalyst.type_of(order)
    if not isinstance(data_type, (*_WHOLE, T.DateType, T.TimestampType)):
        return None
    if isinstance(data_type, _WHOLE) and catalyst.spark.conf.get("spark.sql.ansi.enabled") != "true":
        return None
    found = [_ends(alias.child(), data_type) for alias in catalyst.list(node.plan.windowExpressions())]
    ends = [each for each in found if each is not None]
    if len(ends) < len(found):
        return None
    shift = max(each.shift for each in ends)
    behind, ahead = max(0, *[-each.lower for each in ends]) + shift, max(0, *[each.upper for each in ends]) + shift
    # what a row has behind it sees the row ahead
    return WindowRange(order, *((ahead, behind) if str(orders[0].direction().sql()) == "ASC" else (behind, ahead)))


@dataclass(frozen=True)
class _Ends:
    """Where a frame begins and ends, as distances from a row's own order, and how much longer it may be."""

    lower: int
    upper: int
    shift: int


def _ends(window: Java, order: T.DataType) -> _Ends | None:
    """The ends of a window function's frame, None where there are none or they are not known."""
    if kind_of(window) != "WindowExpression":
        return None
    frame = window.windowSpec().frameSpecification()
    if kind_of(frame) != "SpecifiedWindowFrame" or str(frame.frameType().toString()) != "RangeFrame":
        return None
    lower, upper = _distance(frame.lower(), order), _distance(frame.upper(), order)
    if lower is None or upper is None:
        return None
    return _Ends(lower[0], upper[0], max(lower[1], upper[1]))


def _distance(end: Java, order: T.DataType) -> tuple[int, int] | None:
    """An end of a frame in the units of the order, and by how much these may be wrong; None for no end, or one that is not known."""
    kind = kind_of(end)
    if kind == "CurrentRow$":
        return 0, 0
    if kind.startswith("Unbounded") or not end.foldable():
        return None
    value, data_type = end.eval(None), str(end.dataType().typeName())
    if not isinstance(value, int):  # NULL, a decimal, an interval of both months and days
        return None
    if isinstance(order, _WHOLE):
        return value, 0
    of_months = "month" in data_type or "year" in data_type
    micros = value * _MONTH * _DAY if of_months else value if data_type.startswith("interval") else value * _DAY
    days = -(-abs(micros) // _DAY)
    if days > _LONGEST:
        return None
    if isinstance(order, T.DateType):
        return (-days if micros < 0 else days), (_SHIFT if of_months else 0)
    return micros, _SHIFT * _DAY
