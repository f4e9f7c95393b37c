"""What is asked of functions that add up: the types that they add up exactly, and whether they give NULL for an overflow."""

from __future__ import annotations

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
