"""Functions that add up: the types that they add up exactly, whether they give NULL for an overflow, and what averages are made of."""

from __future__ import annotations

from collections.abc import Sequence

from lake.catalyst import Catalyst
from lake.spark.jvm.gateway import Java, kind_of

WHOLE = frozenset({"byte", "short", "integer", "long"})
"""Types of whole numbers, by `type_name`."""


def type_name(java: Java) -> str:
    """The name of an expression's type."""
    return str(java.dataType().typeName())


def tries(function: Java) -> bool:
    """Whether a function is try_sum or try_avg, whose NULL for an overflow can't be added to."""
    # the second argument is the mode (LEGACY, ANSI or TRY), in a NumericEvalContext where Spark is 4.1 or newer and the function is a sum
    return kind_of(function) in ("Sum", "Average") and "TRY" in str(function.productElement(1).toString())


def like(aggregate: Java, function: Java, catalyst: Catalyst) -> Java:
    """Another function under the same FILTER as an aggregate."""
    return aggregate.copy(function, aggregate.mode(), False, aggregate.filter(), catalyst.new_id())


def average_of(function: Java, parts: Sequence[Java], catalyst: Catalyst) -> Java:
    """An average by Spark's own expression, over the sum and the count of its values, which have the types of its buffers."""
    buffers = catalyst.list(function.aggBufferAttributes())
    expression = catalyst.expression(function.evaluateExpression())
    return catalyst.substituted(expression, {b.exprId().id(): part for b, part in zip(buffers, parts, strict=True)}).java
