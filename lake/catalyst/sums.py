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
    kind = kind_of(function)
    if kind not in ("Sum", "Average"):
        return False
    mode = function.evalContext().evalMode() if kind == "Sum" else function.evalMode()
    return str(mode.toString()) == "TRY"
